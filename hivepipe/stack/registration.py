"""Register a project: write the record that hooks and commands trust, and make its folders."""

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from itertools import chain, count
from pathlib import Path
from secrets import token_hex

from hivepipe import git
from hivepipe.db.foreign import is_foreign, is_own
from hivepipe.db.location import database_in, database_path
from hivepipe.db.tree import recorded_tree, refuse_shipped
from hivepipe.errors import RegistrationError
from hivepipe.files.folders import Folder
from hivepipe.files.logs import NAMES, claim_names
from hivepipe.files.manifest import Manifest
from hivepipe.home import (
    IN_PROJECT,
    OWN_FOLDERS,
    data_folder,
    default_home,
    is_in_project,
    is_private_folder,
    kept_folder,
    parse_record,
    project_of,
    read_record,
    read_small,
    real_path,
    record_path,
    tree_of,
    user_folder,
    write_small,
)
from hivepipe.stack.failed_registration import removed_if_failed
from hivepipe.stack.home_marks import has_data, has_data_to_adopt, is_whole
from hivepipe.stack.last_home import last_home
from hivepipe.stack.lock import locked_folder
from hivepipe.stack.project_records import record_files, records_folder
from hivepipe.stack.root_user import refuse_root
from hivepipe.stack.runtime_folder import Stack, make_private

_OF_HOMES = ("project", "was", "containers")  # fields that only the record of a home has
LARGEST_RECORD_BYTES = 4096  # a hook reads no more than this
WAIT_SECS = 10.0  # longest wait for another process that registers
IGNORE_ALL = "*\n"  # the text of our `.gitignore`
STATE_MODE = "mode of .claude-state"  # mode before the permissions of the folder were restricted
_FOLDERS = tuple(folder.strip("/") for folder in OWN_FOLDERS)


def register(
    project: str,
    stack: Stack,
    python: str,
    state: str = "on",
    adopt: bool = False,
    owner: str = "",
    tree: str = "",
) -> None:
    """Make the folders of a project, and write its record and its home's record.

    `tree` is the project whose work tree has the data, or "". Raise RegistrationError if a path
    cannot be recorded, if data of the predecessor must be migrated first, or if, without `adopt`,
    the project already has these folders or a home. Raise TreeError if git tracks the data.
    """
    home = stack.home
    refuse_broken_line(project)
    for folder in {home, project}:
        refuse_root(folder)
    record = {
        "home": home,
        "socket": stack.address,
        "runtime": stack.folder,
        "python": python,
        "state": state,
        "owner": owner or owner_id(home),
        "version": version("hivepipe"),
        **({"tree": tree} if tree and not is_in_project(home) else {}),
    }
    text = text_of(record)  # this may raise, so nothing is made before it
    refuse_predecessor(project, home)
    _refuse_users_folder(home)
    if tree or is_in_project(home):
        refuse_shipped(tree or project_of(home))
    # Under the lock, folders that a concurrent registration has made are known as ours.
    with _locked_records(), removed_if_failed(home):
        if not (adopt or (tree and recorded_tree(tree, home))):
            _refuse_shipped(project, home, tree)
        make_private(os.path.dirname(home))
        _claim(home)
        before = read_record(home)
        kept = {name: before[name] for name in _OF_HOMES if name in before}
        if home != project:
            kept |= {"project": project} if is_of_one_project(home) else {}
            # Only a project can be off. The record of its home has the state of the stack.
            wanted = before.get("state", "on") if state == "off" else state
            _write(home, text_of({**record, **kept, "state": wanted}))
        _take_names(home, tree)
        _write(project, text_of({**record, **kept}) if home == project else text)


@contextmanager
def _locked_records() -> Iterator[None]:
    """Keep other processes from changing records."""
    make_private(records_folder())
    with locked_folder(records_folder(), WAIT_SECS):
        yield


def _take_names(home: str, tree: str) -> None:
    """Record hivepipe's folders and files in the home's manifest."""
    manifest = Manifest(home)
    manifest.begin()
    if tree:
        claim_folders(tree, manifest)
    claim_names(kept_folder(home), manifest, NAMES)


def refuse_broken_line(*paths: str) -> None:
    """Raise RegistrationError if a path has a line break: a record has one field per line."""
    for path in paths:
        if path.splitlines() != [path]:
            raise RegistrationError(
                f"{path!r} cannot be registered, because its path has a line break: "
                "rename the folder"
            )


def is_of_one_project(home: str) -> bool:
    """Tell whether this is a home outside the work tree that belongs to a single project."""
    return home.startswith(f"{os.path.realpath(data_folder())}/projects/")


def own_home(project: str, *, adopt: bool = False) -> str:
    """Return a project's own home: the recorded one of version 1.0.0, or one outside its work tree.

    With `adopt`, a home of version 1.0.0 in the tree is returned even if it is not recorded. Raise
    RegistrationError if another user made it, or if the home outside has a database.
    """
    old = f"{project}{IN_PROJECT}"
    recorded = read_record(project).get("home", "")
    if recorded == old:
        return old
    home = recorded if is_of_one_project(recorded) else new_home(project)
    adopts = adopt and has_data_to_adopt(old)
    if adopts and os.path.lexists(database_in(home, "")):
        raise RegistrationError(
            f"{home} has a database of its own, so {old} cannot be used: run `hivepipe down`, and "
            "move one of the two folders away"
        )
    return old if adopts and is_whole(old) else home


def tree_with_data(project: str, home: str, *, adopt: bool = False) -> str:
    """Return the project if its tree has the home's database, or a database to adopt, else ""."""
    tree = tree_of(home) or recorded_tree(project, home)
    adopts = adopt and is_of_one_project(home) and is_own(Path(f"{project}{IN_PROJECT}", "hive.db"))
    return tree or (project if adopts else "")


def new_home(project: str) -> str:
    """Return the last home of a project. If another project has that home, add a number.

    The other project may have been at the path of this project before it was renamed.
    """
    first = last_home(project)
    homes = chain([first], (f"{first}-{number}" for number in count(2)))
    return next(home for home in homes if _is_free(home, project))


def _is_free(home: str, project: str) -> bool:
    owner = project_of(home)
    return owner in ("", project) or read_record(owner).get("home") != home


def refuse_predecessor(project: str, home: str) -> None:
    """Raise RegistrationError if the predecessor's home or database must be migrated first."""
    old, database = f"{project}{IN_PROJECT}", database_path(home)
    if is_foreign(database):
        raise _is_predecessors(str(database))
    if read_record(project).get("home") and not is_in_project(home):
        return  # the home is elsewhere, so files of this name from a branch do not matter
    if is_foreign(Path(old, "hive.db")):
        raise _is_predecessors(f"{old}/hive.db")
    if os.path.isdir(f"{old}/queue/pending") and not os.path.lexists(f"{old}/hive.db"):
        raise _is_predecessors(old)


def _is_predecessors(path: str) -> RegistrationError:
    return RegistrationError(
        f"{path} belongs to the bash hooks that hivepipe replaces: run `hivepipe migrate`, which "
        "moves it aside and imports it"
    )


def claim_folders(project: str, manifest: Manifest) -> None:
    """Make a project's `.hive-mind` and `.claude-state` private; record how they were before."""
    beside = f"{project}/.claude-state"
    was_ignored, mode = os.path.lexists(f"{beside}/.gitignore"), _mode(beside)
    for name in _FOLDERS:
        _claim(f"{project}/{name}")
    if mode not in ("", "0700"):
        manifest.remember(STATE_MODE, mode)
    if not was_ignored or (manifest.adopts and read_record(project)):  # 1.0.0 made the file
        manifest.claim("../.gitignore")
    _keep_out_of_git(project, manifest)


def _mode(folder: str) -> str:
    """Return the mode of a folder as four octal digits, or "" if there is none."""
    try:
        return f"{stat.S_IMODE(os.lstat(folder).st_mode):04o}"
    except FileNotFoundError:
        return ""


def _refuse_shipped(project: str, home: str, tree: str) -> None:
    """Raise RegistrationError if the project already contains data in its folder `.hive-mind`.

    Data that a branch later brings into the folder of a registered project are accepted, unless
    hivepipe's own data are about to be moved into this folder.
    """
    recorded, shipped = read_record(project), f"{tree or project}{IN_PROJECT}"
    if tree:
        is_ours = recorded.get("tree") or is_in_project(recorded.get("home", ""))
        is_empty = not os.path.isdir(shipped) or set(os.listdir(shipped)) <= {".gitignore"}
    else:
        is_used = os.path.lexists(database_in(home, ""))  # used before an `uninstall`
        is_ours = recorded.get("home") or is_used or not is_of_one_project(home)
        is_empty = not has_data(shipped) or _is_committed(project)
    if not (is_ours or is_empty):
        raise RegistrationError(
            f"{shipped} is not empty, and this project was never registered here. If it is yours "
            "(moved, renamed, or uninstalled before), add --adopt; if the bash hooks made it, run "
            "`hivepipe migrate`; else move it away"
        )


def _is_committed(project: str) -> bool:
    """Tell whether git tracks files of the project's `.hive-mind`, which is then no 1.0.0 home."""
    tracked = git.tracked_files(project, IN_PROJECT.strip("/"))
    return any(not name.endswith("/.gitignore") for name in tracked)


def _refuse_users_folder(home: str) -> None:
    """Raise RegistrationError if the home contains the user's folder: a purge would delete it."""
    user = real_path(user_folder() or "/")
    if f"{user}/".startswith(f"{home.rstrip('/')}/"):
        raise RegistrationError(f"{home} contains all of your files: name a folder for it alone")


def _keep_out_of_git(project: str, manifest: Manifest) -> None:
    """Write `.gitignore` files in hivepipe's folders; the project's own file stays unchanged."""
    if not os.path.lexists(f"{project}/.hive-mind/.gitignore"):  # else it may be the user's
        write_small(f"{project}/.hive-mind/.gitignore", IGNORE_ALL)
    state = f"{project}/.claude-state"
    if not os.path.lexists(f"{state}/.gitignore"):
        write_small(f"{state}/.gitignore", IGNORE_ALL)
    elif read_small(f"{state}/.gitignore") != IGNORE_ALL:  # other programs may use this folder, too
        with Folder(f"{state}/logs", make=True) as logs:
            if logs.status(".gitignore") is None:
                manifest.claim(".gitignore")
                logs.replace(".gitignore", IGNORE_ALL.encode())


def switch_off(project: str) -> None:
    """Switch a project off, registered or not. Raise RegistrationError if it cannot be recorded."""
    with _locked_records():
        record = read_record(project) or {"version": version("hivepipe")}
        _write(project, text_of({**record, "state": "off"}))


def switch_on(project: str) -> None:
    with _locked_records():
        record = read_record(project)
        home = record.get("home", "")
        if not home:
            _remove_record(project)
        elif record.get("state") == "off":
            of_stack = "on" if home == project else read_record(home).get("state", "on")
            _write(project, text_of({**record, "state": of_stack}))


def owner_id(home: str) -> str:
    """Return the id with which this home claims a Redis, or a new id if none is recorded."""
    return read_record(home).get("owner") or token_hex(16)


def move_records(old: str, stack: Stack, tree: str) -> None:
    """Replace the home `old` in every record; `tree` is the work tree with the data, or ""."""
    now = {"home": stack.home, "socket": stack.address, "runtime": stack.folder}
    now |= {"tree": tree} if tree else {}
    project = project_of(old)
    with _locked_records():
        own = read_record(old)
        _write(stack.home, text_of({**own, **now, "project": project, "was": old}))
        _change_locked({old}, now)
        _write(old, text_of({**own, **now, "alias": "yes"}))  # for commands that name the old home


def change_records(of_homes: Collection[str], /, **now: str) -> None:
    """Set fields in every record of the homes ("" removes a field); a state `off` stays."""
    if record_files():
        with _locked_records():
            _change_locked(of_homes, now)


def _change_locked(of_homes: Collection[str], now: dict[str, str]) -> None:
    """Change all records of these homes. A home's own record is changed first."""
    own = set(map(record_path, of_homes))
    for file in sorted(record_files(), key=lambda file: file not in own):
        record = parse_record(read_small(file))
        off = {"state": "off"} if record.get("state") == "off" else {}
        changed = {name: value for name, value in {**record, **now, **off}.items() if value}
        if record.get("home") in of_homes and changed != record:
            _replace(file, text_of(changed))


def refuse_switched_off(project: str) -> None:
    """Raise RegistrationError if the user switched this project off (`hivepipe on` undoes this)."""
    if read_record(project).get("state") == "off":
        raise RegistrationError(f"{project} is switched off: run `hivepipe on` there first")


def unregistered(project: str) -> RegistrationError:
    """Return the error for a folder without a record."""
    return RegistrationError(f"{project} is not registered: run `hivepipe init` there")


def forget(project: str, home: str) -> None:
    """Remove a project's record, and its home's record unless other projects share the home.

    The default home keeps its record, because projects without a record use this home. To undo
    `init --user`, the caller passes the default home as `project`, and its record is removed.
    """
    if not record_files():
        return
    with _locked_records():
        files = {file: parse_record(read_small(file)) for file in record_files()}
        of_home = {file: record for file, record in files.items() if record.get("home") == home}
        others = of_home.keys() - {record_path(project), record_path(home)}
        is_shared = home == default_home() != project
        if is_shared or any("alias" not in of_home[file] for file in others):
            if project != home:
                _remove_record(project)
            return
        for file in of_home.keys() - {record_path(project)}:
            os.unlink(file)
        _remove_record(project)  # last, because this record leads to the other ones


def _remove_record(folder: str) -> None:
    Path(record_path(folder)).unlink(missing_ok=True)


def text_of(record: dict[str, str]) -> str:
    """Return a record's text.

    Raise RegistrationError if a value has a line break, or hooks would not read the whole text.
    """
    refuse_broken_line(*record.values())
    text = "".join(f"{name}={value}\n" for name, value in record.items())
    if len(os.fsencode(text)) > LARGEST_RECORD_BYTES:
        raise RegistrationError(f"use shorter paths, the record is too long: {record['home']}")
    return text


def _write(path: str, text: str) -> None:
    """Write the record of a project or home. Processes with HIVEPIPE_HOME read a home's record."""
    make_private(records_folder())
    _replace(record_path(path), text)


def _replace(file: str, text: str) -> None:
    """Replace a record and sync it: an empty record after a power cut would hide a home."""
    with Folder(os.path.dirname(file)) as folder:
        folder.replace(os.path.basename(file), text.encode("utf-8", "surrogateescape"))


def _claim(folder: str) -> None:
    """Make the user's folder private. Raise RegistrationError for a link or another's folder."""
    make_private(folder)
    if is_private_folder(folder):
        return
    status = os.lstat(folder)
    ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    # A folder with another name may be a home directory or /tmp, whose mode must not change.
    in_tree = os.path.basename(folder) in _FOLDERS
    if not ours or (not in_tree and os.listdir(folder)):
        raise RegistrationError(f"{folder} must be a folder of yours with mode 0700")
    os.chmod(folder, 0o700)
    if not in_tree and not is_private_folder(folder):
        raise RegistrationError(f"other users can enter {folder}: use another file system")
