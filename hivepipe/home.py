"""Locations: registration record, project, home, logs, socket.

The record of a project is a small file outside the project. No other source about the project is
trusted:

    <state>/hivepipe/projects/<hash of the real path>     key=value lines, mode 0600
        home     folder of the database, the spool, the instance files
        socket   the unix socket of the home's own Redis, or the URL of another one
        runtime  folder of sockets and locks
        python   interpreter that has hivepipe installed
        state    on | down (hooks spool, nothing is started) | off (hooks do nothing)
        version  version of hivepipe that wrote the record
        was      old folder of a home that has moved, while this folder may still hold files
        alias    set in the record of an old home, which has moved to `home`
        tree     the project whose work tree holds database, archives and exports, if any
        project  in the record of a home: the project that it belongs to

A project's home lies in the user's data folder, because git overwrites and deletes ignored files. A
home made by 1.0.0 is the folder `.hive-mind` of the project.

`HIVEPIPE_HOME` overrides the record's home; the socket then comes from the record of that home.
Hooks import this module, so it uses `posix` instead of `os`.
"""

import posix
from _blake2 import blake2b
from _thread import RLock

from hivepipe.settings import folder_variables, variable

# A socket's path has at most 103 bytes on macOS: the rest is for the longest name of a socket,
# `/hivepipe/<hash>/supervisor.sock.<pid>`.
LONGEST_RUNTIME_DIR = 45

IN_PROJECT = "/.hive-mind"  # the home of 1.0.0, or the folder of a database in the tree
KEPT_IN_PROJECT = "/.claude-state/logs"
OWN_FOLDERS = (IN_PROJECT, "/.claude-state")
LARGEST_ENVIRONMENT = 1 << 16  # bytes of the file with the environment of a home's processes
LONGEST_SCRIPT = 1 << 14  # bytes of a script
LONGEST_NAME = 40  # characters of a project's name in the name of its home

# All threads share the working directory. An RLock, because a signal handler may need it, too.
_CHANGES_FOLDER = RLock()
_IS_FOLDER = 0o040000
_FILE_KIND = 0o170000


class Place:
    """The paths for one event: its project and home, and the home's files and sockets."""

    __slots__ = ("home", "logs", "project", "python", "recorded", "runtime", "socket", "state")

    def __init__(self, project: str, home: str, record: dict[str, str]) -> None:
        """Set the locations from the record. Missing fields get their defaults."""
        self.project = project
        self.home = self.recorded = home
        self.logs = logs_folder(home)
        socket = record.get("socket", "")
        own = socket.rpartition("/")[0] if socket.startswith("/") else ""
        self.runtime = record.get("runtime") or own or runtime_folder(home)
        self.socket = socket or f"{self.runtime}/redis.sock"
        self.python = record.get("python", "")
        self.state = record.get("state", "on")


def locate(project: str, *, of_a_hook: bool = False) -> Place:
    """Return the locations for `project`, an absolute path whose folder may be gone."""
    root = real_path(project)
    checkout, record = nearest_record(root)
    override = variable("HIVEPIPE_HOME")
    named = absolute(override) if override else ""
    home = real_path(named) if named else ""
    if home and not (of_a_hook and _is_planted(named, home, (root, checkout))):
        off = record.get("state") == "off"
        record = read_record(home)
        home = record.get("home", home)  # the home has moved
        if off:  # a project that is off stays off, whatever its home is
            record = {**record, "state": "off"}
        return Place(checkout, home, record)
    if not (home := record.get("home", "")):
        home = default_home()
        record = {**read_record(home), **record}
    return Place(checkout, home, record)


def locate_for_hook(project: str) -> Place:
    """Return the locations for a hook in a project; a hook writes nothing in a work tree."""
    place = locate(project, of_a_hook=True)
    if is_in_project(place.home):
        outside = home_of_project(project_of(place.home))
        place.home, place.logs = outside, logs_folder(outside)
    return place


def _is_planted(named: str, home: str, folders: tuple[str, ...]) -> bool:
    """Tell whether a clone may have brought this home: it is in a work tree and has no record."""
    if is_in_project(home) or read_record(home):
        return False
    for path in (home, f"{real_path(named.rpartition('/')[0])}/"):
        tops = {folder for folder in _up(path) if posix.access(f"{folder}/.git", posix.F_OK)}
        if tops or any([path.startswith(f"{folder}/") for folder in folders]):
            return True
    return False


def default_home() -> str:
    """Return the home for events outside registered projects."""
    return f"{state_folder()}/default"


def home_of_project(project: str) -> str:
    """Return the path of a project's home; the path contains the project's name."""
    name = project.rsplit("/", 1)[1]
    plain = "".join([c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in name])
    return f"{data_folder()}/projects/{plain[:LONGEST_NAME]}-{short_hash(project)}"


def is_in_project(home: str) -> bool:
    """Tell whether this is a home of 1.0.0, in the work tree of its project."""
    return home.endswith(IN_PROJECT)


def tree_of(home: str) -> str:
    """Return the project whose work tree holds a home's database, archives and exports, or ""."""
    if is_in_project(home):
        return home.removesuffix(IN_PROJECT)
    return read_record(home).get("tree", "")


def project_of(home: str) -> str:
    """Return the project that this home belongs to, or "" if it belongs to none or to several."""
    if is_in_project(home):
        return home.removesuffix(IN_PROJECT)
    return read_record(home).get("project", "")


def logs_folder(home: str) -> str:
    """Return the folder of the logs of a home's hooks."""
    if is_in_project(home):
        return home.removesuffix(IN_PROJECT) + KEPT_IN_PROJECT
    return f"{home}/logs"


def kept_folder(home: str) -> str:
    """Return the folder that holds a home's archives and exports."""
    return kept_in(home, tree_of(home))


def kept_in(home: str, tree: str) -> str:
    """Return the folder of archives and exports: below `tree`, or the home if `tree` is ""."""
    return f"{tree}{KEPT_IN_PROJECT}" if tree else f"{home}/archive"


def nearest_record(root: str) -> tuple[str, dict[str, str]]:
    """Return the nearest registered folder and its record.

    If no folder is registered, the record is {}, and the folder is the main checkout if `root` is
    in a linked worktree, else `root`. HIVEPIPE_HOME is ignored. The search goes from `root` up to
    the top of its worktree, then from the main checkout upwards, and last from above the worktree
    upwards.
    """
    top, main = _linked_worktree(root)
    for folder in (*_up(root, top), *_up(main), *_up(top)):
        record = read_record(folder)
        if record:
            return folder, record
    return main or root, {}


def _up(folder: str, top: str = "") -> list[str]:
    """Return the folder and its parents, up to `top`."""
    found = []
    while folder and top not in found:
        found.append(folder)
        folder = folder.rsplit("/", 1)[0]
    return found


def main_checkout(root: str) -> str:
    """Return the main checkout of a folder in a linked git worktree, else the folder itself."""
    return _linked_worktree(root)[1] or root


def _linked_worktree(root: str) -> tuple[str, str]:
    """Return the top of root's linked worktree and its main checkout, or ("", "").

    The worktree's `.git` file is trusted only if the main checkout names the worktree, too. A
    cloned repository could otherwise send its events to another project's home by this file.
    """
    for folder in _up(root):
        link = read_small(f"{folder}/.git")
        if link.startswith("gitdir: "):
            inner = _joined(folder, link[8:].strip())
            main, found, _ = inner.rpartition("/.git/worktrees/")
            back = _joined(inner, read_small(f"{inner}/gitdir").strip().removesuffix("/.git"))
            return (folder, main) if found and back == folder else ("", "")
    return "", ""


def _joined(folder: str, path: str) -> str:
    """Resolve a path read from a file of git: absolute, or relative to that file's folder."""
    return real_path(path if path.startswith("/") else f"{folder}/{path}")


def read_record(path: str) -> dict[str, str]:
    """Return the registration record of a folder, or {}."""
    return parse_record(read_small(record_path(path)))


def parse_record(text: str) -> dict[str, str]:
    lines = text.splitlines()
    return {key: value for key, found, value in (line.partition("=") for line in lines) if found}


def record_path(path: str) -> str:
    """Return the path of the registration record of a folder, given by its real path."""
    return f"{state_folder()}/projects/{short_hash(path)}"


def short_hash(path: str) -> str:
    """Hash a path to 16 hex digits: short enough for a socket path, long enough not to collide."""
    return blake2b(path.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def state_folder() -> str:
    """Return the user's state folder of hivepipe."""
    return _own_folder("XDG_STATE_HOME", ".local/state")


def data_folder() -> str:
    """Return the user's data folder, which contains the homes."""
    return _own_folder("XDG_DATA_HOME", ".local/share")


def user_config_folder() -> str:
    """Return the folder of the user's settings for all projects."""
    return _own_folder("XDG_CONFIG_HOME", ".config")


def _own_folder(name: str, default: str) -> str:
    base = variable(name) or ""
    return f"{base if base.startswith('/') else f'{user_folder()}/{default}'}/hivepipe"


def user_folder() -> str:
    """Return $HOME, or the folder in the password database."""
    folder = variable("HOME")
    if folder and folder.startswith("/"):
        return folder.rstrip("/")
    import pwd  # noqa: PLC0415  built in, and rarely needed

    try:
        return pwd.getpwuid(posix.geteuid()).pw_dir
    except KeyError:
        return "/nonexistent"


def runtime_folder(home: str) -> str:
    """Return the folder of a home's sockets and locks, which is short: socket paths are limited."""
    base = variable("XDG_RUNTIME_DIR") or ""
    if base.startswith("/") and len(base) <= LONGEST_RUNTIME_DIR:
        return f"{base}/hivepipe/{short_hash(home)}"
    return spare_runtime_folder(home)


def spare_runtime_folder(home: str) -> str:
    """Return the runtime folder to use without XDG_RUNTIME_DIR, in /tmp if possible."""
    base = f"/tmp/hivepipe-{posix.geteuid()}"
    is_taken = posix.access(base, posix.F_OK, follow_symlinks=False)
    if not (is_private_folder(base) if is_taken else posix.access("/tmp", posix.W_OK)):
        base = f"{state_folder()}/run"
    return f"{base}/{short_hash(home)}"


def spare_folders(home: str, runtime: str) -> tuple[str, str]:
    """Return the folders that store events if the home cannot be written, preferred one first."""
    return runtime, f"/dev/shm/hivepipe-{posix.geteuid()}/{short_hash(home)}"


def is_private_folder(path: str) -> bool:
    """Tell whether the path is a real folder of the user that no other user can enter."""
    try:
        status = posix.lstat(path)
    except OSError:
        return False
    kind_fits = status.st_mode & _FILE_KIND == _IS_FOLDER
    return kind_fits and status.st_uid == posix.geteuid() and not status.st_mode & 0o077


def owner_over_root(path: str) -> int:
    """Return the uid that owns a folder or its nearest existing parent, or 0 if not run as root."""
    if posix.geteuid():
        return 0
    while path:
        try:
            return posix.stat(path).st_uid
        except OSError:
            path = path.rpartition("/")[0]
    return 0


def environment_of(home: str) -> dict[bytes, bytes]:
    """Return the environment for processes of a home, without the variables of the calling hook.

    If the home has no recorded environment, as in a work tree, return only PATH, HIVEPIPE_HOME and
    the variables of the user's folders.
    """
    path = "" if is_in_project(home) else f"{home}/environment"
    lines = read_small(path, LARGEST_ENVIRONMENT).splitlines()
    encoded = [line.encode("utf-8", "surrogateescape").partition(b"=") for line in lines]
    found = {name: value for name, _, value in encoded}
    return {
        b"PATH": b"/usr/local/bin:/usr/bin:/bin",
        **(found or folder_variables()),
        b"HIVEPIPE_HOME": home.encode("utf-8", "surrogateescape"),
    }


def real_path(path: str) -> str:
    """Resolve links as the kernel does; a missing folder keeps its name.

    The process changes to the folder and back, which is the only portable way without `os.path`.
    """
    with _CHANGES_FOLDER:
        try:
            here = posix.open(".", posix.O_RDONLY | posix.O_CLOEXEC)
        except OSError:
            here = -1
        try:
            posix.chdir(path)
            return posix.getcwd()
        except (OSError, ValueError):
            return absolute(path).rstrip("/") or "/"
        finally:
            if here >= 0:
                posix.fchdir(here)
                posix.close(here)


def absolute(path: str) -> str:
    """Expand `~` and make the path absolute."""
    if path == "~" or path.startswith("~/"):
        return user_folder() + path[1:]
    if path.startswith("/"):
        return path
    try:
        return f"{posix.getcwd()}/{path}"
    except OSError:
        return f"/{path}"


def make_folders(path: str) -> None:
    """Make a folder and its parents with mode 0700; raise OSError on failure."""
    try:
        try:
            posix.mkdir(path, 0o700)
        except FileNotFoundError:
            make_folders(path.rsplit("/", 1)[0])
            posix.mkdir(path, 0o700)  # raises again below /proc, where no folder can be made
    except FileExistsError:  # another hook made it meanwhile
        return
    if path.endswith(OWN_FOLDERS):  # a new folder, as after `git clean`: git must ignore it
        write_small(f"{path}/.gitignore", "*\n")


def read_small(path: str, limit: int = 4096) -> str:
    """Return up to `limit` bytes of a file as text, or "" if it cannot be read."""
    descriptor = -1
    try:
        if not posix.access(path, posix.F_OK):  # faster than an error of `open`
            return ""
        descriptor = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
        # Python allocates the requested size; files in /proc report a size of 0.
        size = posix.fstat(descriptor).st_size or limit
        data = posix.read(descriptor, min(limit, max(size, 4096)))
        return data.decode("utf-8", "surrogateescape")
    except (OSError, ValueError):
        return ""
    finally:
        if descriptor >= 0:
            posix.close(descriptor)


def lua_text(path: str) -> str:
    """Return a Lua script of the package without its comment lines, or "" if it cannot be read.

    `path` is relative to the package. The hooks' bundle contains the text instead of this call.
    """
    lines = read_small(f"{__file__.rpartition('/')[0]}/{path}", LONGEST_SCRIPT).split("\n")
    return "".join([f"{line}\n" for line in lines if line and not line.lstrip().startswith("--")])


def open_or_make(path: str, flags: int) -> int:
    """Open a file; make it (mode 0600) and its folder if missing. Raise OSError for a link."""
    # O_NONBLOCK: a named pipe in place of the file must not block the hook.
    flags |= posix.O_CREAT | posix.O_CLOEXEC | posix.O_NOFOLLOW | posix.O_NONBLOCK
    try:
        return posix.open(path, flags, 0o600)
    except FileNotFoundError:
        make_folders(path.rpartition("/")[0])
        return posix.open(path, flags, 0o600)


def write_small(path: str, text: str) -> None:
    """Replace a small file (mode 0600) atomically. Readers see the old text or the new one."""
    temporary = f"{path}.{posix.getpid()}.tmp"
    flags = posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_CLOEXEC | posix.O_NOFOLLOW
    descriptor = posix.open(temporary, flags, 0o600)
    try:
        try:
            data = text.encode("utf-8", "surrogateescape")
            while data:  # a nearly full disk may accept only a part
                data = data[posix.write(descriptor, data) :]
        finally:
            posix.close(descriptor)
        posix.rename(temporary, path)
    except OSError as error:
        posix.unlink(temporary)
        error.filename = path
        raise
