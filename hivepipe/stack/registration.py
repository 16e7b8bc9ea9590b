"""Registering a project: the record that hooks and commands believe, and the project's folders."""

import os
import stat
from importlib.metadata import version
from secrets import token_hex

from hivepipe.errors import RegistrationError
from hivepipe.folders import Folder
from hivepipe.home import (
    is_private_folder,
    kept_folder,
    parse_record,
    read_record,
    read_small,
    real_path,
    record_path,
    state_folder,
    user_folder,
    write_small,
)
from hivepipe.ownership.logs import NAMES, take_names
from hivepipe.ownership.manifest import Manifest
from hivepipe.stack.lock import Stack, locked_folder, make_private
from hivepipe.stack.root import refuse_root
from hivepipe.store.foreign import is_foreign
from hivepipe.store.location import database_path

LARGEST_RECORD_BYTES = 4096  # what a hook reads of it
WAIT_SECS = 10.0  # for another process that registers; it writes a few small files
IGNORE_ALL = "*\n"  # of a `.gitignore`
STATE_MODE = "mode of .claude-state"  # before it was closed to others
_FOLDERS = (".hive-mind", ".claude-state")


def register(
    project: str,
    stack: Stack,
    python: str,
    state: str = "on",
    adopt: bool = False,
    owner: str = "",
) -> None:
    """Make the folders of a project and write its record, and the one of its home.

    RegistrationError: the project came with a home of its own, and `adopt` does not say to take it.
    """
    home = stack.home
    refuse_root(home)
    record = {
        "home": home,
        "socket": stack.address,
        "runtime": stack.folder,
        "python": python,
        "state": state,
        "owner": owner or owner_id(home),
        "version": version("hivepipe"),
    }
    text = _text(record)  # refused before anything is made
    refuse_predecessor(home)
    make_private(_records_folder())
    with locked_folder(_records_folder(), WAIT_SECS):  # what another made is not somebody else's
        if not adopt:
            _refuse_shipped(project)
        _make_folders(project, home)
        if home != project:  # off is a project's own word: its home's record keeps the stack's
            wanted = read_record(home).get("state", "on") if state == "off" else state
            _write(home, _text({**record, "state": wanted}))
        _write(project, text)


def _make_folders(project: str, home: str) -> None:
    manifest = Manifest(home)
    if home == f"{project}/.hive-mind":
        _take_folders(project, manifest)
    else:
        _refuse_users_folder(home)
        _claim(home)
        manifest.begin()
    take_names(kept_folder(home), manifest, NAMES)


def refuse_predecessor(home: str) -> None:
    """RegistrationError: the home is the predecessor's, in which nothing could be stored."""
    database = database_path(home)
    has_old_queue = os.path.isdir(f"{home}/queue/pending") and not os.path.lexists(database)
    if has_old_queue or is_foreign(database):
        raise RegistrationError(
            f"{database if is_foreign(database) else home} is of the bash hooks that hivepipe "
            "replaces: run `hivepipe migrate`, which moves it aside and imports it"
        )


def _take_folders(project: str, manifest: Manifest) -> None:
    """Close both folders to others, and note what they were before."""
    beside = f"{project}/.claude-state"
    was_ignored, mode = os.path.lexists(f"{beside}/.gitignore"), _mode(beside)
    for name in _FOLDERS:
        _claim(f"{project}/{name}")
    manifest.begin()
    if mode not in ("", "0700"):
        manifest.remember(STATE_MODE, mode)
    if not was_ignored or (manifest.adopts and read_record(project)):  # 1.0.0 made it
        manifest.claim("../.gitignore")
    _keep_out_of_git(project, manifest)


def _mode(folder: str) -> str:
    """Return the mode of a folder; empty where there is none."""
    try:
        return f"{stat.S_IMODE(os.lstat(folder).st_mode):04o}"
    except FileNotFoundError:
        return ""


def _refuse_shipped(project: str) -> None:
    """A folder that came with the project is somebody else's: Redis runs what its file says."""
    if read_record(project):
        return
    home = f"{project}/.hive-mind"
    if os.path.isdir(home) and set(os.listdir(home)) - {".gitignore"}:
        raise RegistrationError(
            f"{home} is not empty, and this project was never registered here. If it is yours "
            "(moved, renamed, or uninstalled before), add --adopt; if the bash hooks made it, run "
            "`hivepipe migrate`; else move it away"
        )
    if os.path.islink(f"{project}/.claude-state/logs"):
        raise RegistrationError(f"{project}/.claude-state/logs is a link: remove it")


def _refuse_users_folder(home: str) -> None:
    """A home is deleted whole by `uninstall --purge`."""
    user = real_path(user_folder() or "/")
    if f"{user}/".startswith(f"{home.rstrip('/')}/"):
        raise RegistrationError(f"{home} holds all of yours: a home is a folder of its own")


def _keep_out_of_git(project: str, manifest: Manifest) -> None:
    """Inside the folders, so that no `.gitignore` of anybody's has to change."""
    if not os.path.lexists(f"{project}/.hive-mind/.gitignore"):  # else a person's
        write_small(f"{project}/.hive-mind/.gitignore", IGNORE_ALL)
    state = f"{project}/.claude-state"
    if not os.path.lexists(f"{state}/.gitignore"):
        write_small(f"{state}/.gitignore", IGNORE_ALL)
    elif read_small(f"{state}/.gitignore") != IGNORE_ALL:  # others may use this folder too
        with Folder(f"{state}/logs", make=True) as logs:
            if logs.status(".gitignore") is None:
                manifest.claim(".gitignore")
                logs.replace(".gitignore", IGNORE_ALL.encode())


def set_state(home: str, state: str) -> None:
    """Let every record of a home say whether its stack is wanted (on, down); off stays off."""
    _change(home, state=state)


def switch_off(project: str) -> None:
    """Opt a project out, also one without a home of its own: its record then says nothing else."""
    record = read_record(project) or {"version": version("hivepipe")}
    _write(project, _text({**record, "state": "off"}))


def switch_on(project: str) -> None:
    """Take `switch_off` back."""
    record = read_record(project)
    home = record.get("home", "")
    if not home:
        _unlink(record_path(project))
    elif record.get("state") == "off":
        of_stack = "on" if home == project else read_record(home).get("state", "on")
        write_small(record_path(project), _text({**record, "state": of_stack}))


def owner_id(home: str) -> str:
    """Return by what id this home owns a Redis; a new one if it has none."""
    return read_record(home).get("owner") or token_hex(16)


def move(stack: Stack) -> None:
    """Let every record of a home say where its sockets are now."""
    _change(stack.home, socket=stack.address, runtime=stack.folder)


def _change(home: str, **now: str) -> None:
    for file in _record_files():
        record = parse_record(file)
        off = {"state": "off"} if record.get("state") == "off" else {}
        changed = {**record, **now, **off}
        if record.get("home") == home and changed != record:
            write_small(file, _text(changed))


def refuse_switched_off(project: str) -> None:
    """RegistrationError: the user opted this project out, and nothing but `on` changes that."""
    if read_record(project).get("state") == "off":
        raise RegistrationError(f"{project} is switched off: run `hivepipe on` there first")


def unregistered(project: str) -> RegistrationError:
    """Return what to say of a folder that has no record."""
    return RegistrationError(f"{project} is not registered: run `hivepipe up` there")


def records() -> list[dict[str, str]]:
    """Return every record of the user, a home's own among them."""
    return [record for record in map(parse_record, _record_files()) if record.get("home")]


def _records_folder() -> str:
    return f"{state_folder()}/projects"


def _record_files() -> list[str]:
    folder = _records_folder()
    try:
        return [f"{folder}/{name}" for name in sorted(os.listdir(folder)) if "." not in name]
    except FileNotFoundError:
        return []


def forget(project: str, home: str) -> None:
    """Remove the record of a project, and that of its home unless other projects share it."""
    _unlink(record_path(project))
    others = [record for record in records() if record.get("home") == home]
    if len(others) <= 1:  # the home's own
        _unlink(record_path(home))


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def _text(record: dict[str, str]) -> str:
    for name, value in record.items():
        if value.splitlines() != [value]:
            raise RegistrationError(f"{name} is empty or breaks the line: {value!r}")
    text = "".join(f"{name}={value}\n" for name, value in record.items())
    if len(os.fsencode(text)) > LARGEST_RECORD_BYTES:
        raise RegistrationError(f"too long for a record: {record['home']}")
    return text


def _write(path: str, text: str) -> None:
    """Write the record of a project, or of a home, by which HIVEPIPE_HOME finds its socket."""
    target = record_path(path)
    make_private(os.path.dirname(target))
    write_small(target, text)


def _claim(folder: str) -> None:
    """Make a folder ours alone; a repository may ship one, or a link that leads elsewhere."""
    make_private(folder)
    if is_private_folder(folder):
        return
    status = os.lstat(folder)
    ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    # Any other folder that somebody named may be a home directory or /tmp: not ours to close.
    if not ours or (os.path.basename(folder) not in _FOLDERS and os.listdir(folder)):
        raise RegistrationError(f"{folder} must be a folder of yours with mode 0700")
    os.chmod(folder, 0o700)
