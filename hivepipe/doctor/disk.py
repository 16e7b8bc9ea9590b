"""Checks of files on disk: permissions, damage, free space."""

import os
import pwd
import shlex
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

from hivepipe import git
from hivepipe.alerts.rules import ROOM_BYTES
from hivepipe.config.asking import in_a_line, waiting
from hivepipe.db.foreign import is_foreign
from hivepipe.db.listings import listings
from hivepipe.db.location import (
    SUFFIXES,
    database_path,
    file_system_without_modes,
    is_on_shared_file_system,
)
from hivepipe.db.tree import refusal, replaced
from hivepipe.doctor.facts import Facts, Finding
from hivepipe.errors import StoreError, TreeError
from hivepipe.files.disk_room import free_bytes, is_full
from hivepipe.files.file_size import ENOUGH_BYTES, small_limit
from hivepipe.files.known_hives import known
from hivepipe.home import (
    IN_PROJECT,
    OWN_FOLDERS,
    data_folder,
    is_in_project,
    is_private_folder,
    read_small,
    record_path,
    state_folder,
    tree_of,
    user_folder,
)
from hivepipe.install.git_exclude import is_ignored
from hivepipe.install.users_folder import is_read_only, unusable_state_folder
from hivepipe.monitor import snapshot
from hivepipe.programs import run_to_end
from hivepipe.stack.conversion import tree_with_data
from hivepipe.stack.registration import IGNORE_ALL, new_home

LARGE_WAL_BYTES = 64_000_000
ENOUGH_MEMORY_BYTES = 512 << 20  # twice what Redis may use for jobs
READ_SECS = 5
CHECK_SECS = 10
_FOR_OTHERS = 0o077
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def home(facts: Facts) -> Iterator[Finding]:
    """Find a record whose home was deleted, for example by `git clean`."""
    if facts.record.get("home") and not facts.home.is_dir():
        yield Finding(f"{facts.home} was deleted with all of its data", facts.up)


def owner(facts: Facts) -> Iterator[Finding]:
    """Find files of another user in the home, for example of root after `sudo`."""
    for path, status in _ours(facts):
        if status.st_uid != os.geteuid():
            whole = facts.home if facts.home in path.parents else path
            text = f"{path} belongs to another user and cannot be used"
            yield Finding(text, f'sudo chown -R "$(id -u):$(id -g)" {shlex.quote(str(whole))}')
            return


def modes(facts: Facts) -> Iterator[Finding]:
    """Find files that others can read, except in folders that are closed to others."""
    for path, status in _ours(facts):
        is_open = not stat.S_ISLNK(status.st_mode) and status.st_mode & _FOR_OTHERS
        if is_open and not is_private_folder(str(path.parent)):
            text = f"other users can enter or read {path}"
            if kind := file_system_without_modes(str(path)):
                yield Finding(f"{text}: its file system ({kind}) keeps no modes, use another one")
            else:
                yield Finding(text, f"chmod -R go-rwx {shlex.quote(str(path))}")


def runtime(facts: Facts) -> Iterator[Finding]:
    """Find a socket folder that is full, or that is not used because other users can enter it."""
    folder = facts.stack.folder
    if os.path.lexists(folder) and not is_private_folder(folder):
        what = shlex.quote(folder)
        yield Finding(f"{folder}, the folder of the sockets, is not private", f"chmod 700 {what}")
    elif is_full(folder):
        text = f"the disk of {folder}, the folder of the sockets, is full: no stack can start"
        yield Finding(text)


def room(facts: Facts) -> Iterator[Finding]:
    """Find a disk that is nearly full, or takes no file. A full disk loses events."""
    free = free_bytes(facts.home)
    if full := next(filter(is_full, snapshot.data_folders(facts.place.home)), ""):
        yield Finding(f"the disk of {full} has no free byte or inode: delete files there")
    elif free is not None and free < ROOM_BYTES:
        text = f"{free / 1e6:.0f} MB are free on the disk of {facts.home}: a full one loses events"
        yield Finding(text)


def wal(facts: Facts) -> Iterator[Finding]:
    """Find a write-ahead log that was deleted, or that has grown large while a program reads."""
    path = Path(f"{database_path(facts.place.home)}-wal")
    if any(
        _holds(process.pid, f"{path} (deleted)") for process in chain(*facts.processes.values())
    ):
        text = f"{path} was deleted: new rows are invisible until the stack stops and stores them"
        yield Finding(text, "hivepipe restart")
    size = path.stat().st_size if path.exists() else 0
    if size > LARGE_WAL_BYTES:
        text = f"{path} has {size / 1e6:.0f} MB: a program keeps a long read transaction open"
        yield Finding(text, "hivepipe restart")


def _holds(pid: int, target: str) -> bool:
    """Tell whether a process has a file open for which /proc shows the path `target`."""
    with suppress(OSError):
        folder = f"/proc/{pid}/fd"
        return target in [os.readlink(f"{folder}/{each}") for each in os.listdir(folder)]
    return False


def database(facts: Facts) -> Iterator[Finding]:
    """Find a database that is unreadable, damaged, or of a later version."""
    path = database_path(facts.place.home)
    if not path.exists() or is_foreign(path):  # the check `predecessor` covers this case
        return
    _read_ahead(path)
    try:
        with listings(path) as store:
            if newer := store.made_by_newer():
                yield Finding(newer)
            trouble = store.trouble(CHECK_SECS)
    except StoreError as error:
        if _code(error) == sqlite3.SQLITE_INTERRUPT:
            text = f"{path} is so large that {CHECK_SECS} s were too short to check all of it"
            whole = f"sqlite3 {shlex.quote(str(path))} 'PRAGMA quick_check'"
            yield Finding(f"{text}; this checks all: {whole}", is_note=True)
            return
        if _code(error) not in _DAMAGE:
            yield Finding(f"{error}; the database itself may be intact")
            return
        trouble = str(error)
    if trouble:
        text = f"the database is damaged ({trouble}); backups are in {facts.home}/backups"
        yield Finding(text, f"hivepipe down; {_moving_aside(path, facts.now)}; {facts.up}")


def _moving_aside(database: Path, now: float) -> str:
    """Return the commands that rename a database and its log, which may contain rows."""
    names = [
        (shlex.quote(f"{database}{end}"), shlex.quote(f"{database}.damaged-{now:.0f}{end}"))
        for end in SUFFIXES
    ]
    return "; ".join(f"test ! -e {old} || mv {old} {new}" for old, new in names)


def _read_ahead(path: Path) -> None:
    """Read a file in order into the page cache, because SQLite's check reads single pages.

    A child process reads the file. If this process itself opened and closed the file, the locks
    that this process holds on the file would end.
    """
    run_to_end(["/bin/sh", "-c", 'exec cat <"$1" >/dev/null', "sh", path], READ_SECS)


def _code(error: StoreError) -> int:
    """Return the primary code of the SQLite error that caused an error, or 0."""
    return getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF


def file_size(facts: Facts) -> Iterator[Finding]:
    """Find a small `ulimit -f`, with which writes fail and SQLite reports "disk I/O error".

    Both the limit of this process and the limits of the stack's programs are examined.
    """
    limit = small_limit()
    if limit is not None:
        text = f"no file may grow beyond {limit:,} bytes in this shell (ulimit -f): writing fails"
        yield Finding(f"{text}. Start a shell without the limit; ulimit -H -f is the account's")
    soft = _limit_of_the_stack("Max file size", facts)
    if soft is not None and soft < ENOUGH_BYTES:
        text = f"no file of the stack may grow beyond {soft:,} bytes: it was started in a shell"
        text = f"{text} with ulimit -f. The database is intact, but cannot be written"
        yield Finding(text, _restart_without_limit(facts))


def memory_limit(facts: Facts) -> Iterator[Finding]:
    """Find a small `ulimit -v`, with which programs of the stack end or Redis refuses jobs."""
    soft = _limit_of_the_stack("Max address space", facts)
    if soft is not None and soft < ENOUGH_MEMORY_BYTES:
        text = f"no process of the stack may have more than {soft / 1e6:.0f} MB of memory: it was"
        text = f"{text} started in a shell with ulimit -v. Programs may end, and jobs fail"
        yield Finding(text, _restart_without_limit(facts))


def _restart_without_limit(facts: Facts) -> str:
    return f"hivepipe down; {facts.up}  # in a shell without the limit"


def _limit_of_the_stack(name: str, facts: Facts) -> int | None:
    """Return the lowest such limit of the stack's programs in bytes; None: unlimited, unknown."""
    found = [_limit(name, entry["pid"]) for entry in facts.programs]
    return min((limit for limit in found if limit is not None), default=None)


def _limit(name: str, pid: int) -> int | None:
    for line in read_small(f"/proc/{pid}/limits").splitlines():
        if line.startswith(name):
            soft = line.removeprefix(name).split()[0]
            return int(soft) if soft.isdigit() else None
    return None


def state_folder_usable(_facts: Facts) -> Iterator[Finding]:
    """Find a state folder that cannot be created or written, for example with a wrong HOME."""
    trouble = unusable_state_folder()
    if trouble:
        is_fixed = any(map(is_read_only, (state_folder(), data_folder())))
        yield Finding(trouble, "" if is_fixed else _better_home())


def _better_home() -> str:
    """Return a command that sets HOME to a usable folder from the password database, or ""."""
    try:
        folder = pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return ""
    usable = os.path.isdir(folder) and os.access(folder, os.W_OK) and folder != user_folder()
    return f"export HOME={shlex.quote(folder)}" if usable else ""


def file_system(facts: Facts) -> Iterator[Finding]:
    """Report a home on a file system that several machines can mount."""
    if is_on_shared_file_system(facts.place.home):
        where = database_path(facts.place.home)
        text = f"{facts.home} is on a network or FUSE file system: the database is {where}"
        if is_on_shared_file_system(str(where)):
            text = (
                f"{facts.home} and its database {where} are on a network or FUSE file system: use "
                "hivepipe on one machine only. Or move the database to a local disk: run "
                f"`hivepipe down`, copy {state_folder()} into a folder on that disk, set "
                "XDG_STATE_HOME to the folder, and run `hivepipe init` and `hivepipe up -d`"
            )
        yield Finding(text, is_note=True)


def tracked(facts: Facts) -> Iterator[Finding]:
    """Find files in hivepipe's folders that git tracks, added by force or by a pull."""
    folder = tree_of(facts.place.home)
    if not folder:
        return
    try:
        tracked = git.tracked_files(folder, ".hive-mind", ".claude-state/logs")
    except TreeError as error:
        yield Finding(f"{error}. No stack starts in {folder} until git answers")
        return
    # A tracked .gitignore does no harm, because hivepipe does not rely on it.
    found = [name for name in tracked if not name.endswith("/.gitignore")]
    if found:
        yield Finding(*refusal(folder, found))


def unignored(facts: Facts) -> Iterator[Finding]:
    """Find a `.gitignore` of the user in hivepipe's folder that does not ignore the database."""
    tree = tree_of(facts.place.home)
    path = f"{tree}{IN_PROJECT}/.gitignore"
    if not tree or not os.path.lexists(path) or read_small(path) == IGNORE_ALL:
        return
    for name in ("hive.db", "hive.db-wal"):
        if not is_ignored(f"{tree}{IN_PROJECT}/{name}"):
            text = f"git does not ignore {tree}{IN_PROJECT}/{name}, which `git add -A` would add"
            yield Finding(
                f"{text}: add the line `*` to {path}, because hivepipe does not change your file"
            )
            return


def data_replaced(facts: Facts) -> Iterator[Finding]:
    """Find a link instead of a data folder in the work tree, or an unknown or second database."""
    home = facts.place.home
    trouble = replaced(home)
    if trouble:
        yield Finding(trouble)
    elif is_in_project(home):
        tree_with_data(home, new_home(tree_of(home)))  # an upgrade from 1.0.0 raises the same error


def config(facts: Facts) -> Iterator[Finding]:
    """Find invalid settings."""
    for problem in facts.config.problems:
        yield Finding(f"{problem}: edit the file")


def asking(facts: Facts) -> Iterator[Finding]:
    """Find files of the repository that ask for trust and on which the user has not decided."""
    found = waiting(facts.place.home, facts.place.project)
    if found:
        text = f"files of this repository ask for something: {in_a_line(found)}"
        yield Finding(text, "hivepipe trust", is_note=True)


def _ours(facts: Facts) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the paths that must be private: folders, the home's files, the record, each `.hive`."""
    found = [facts.home, Path(record_path(facts.place.project))]
    found += map(Path, known(facts.place.home))
    tree = tree_of(facts.place.home)
    if tree:
        found += [Path(f"{tree}{each}") for each in OWN_FOLDERS]
    if facts.home.is_dir() and os.access(facts.home, os.R_OK):
        found += sorted(facts.home.iterdir())
    for path in found:
        with suppress(OSError):  # a running stack replaces files, and a hive's folder may be gone
            yield path, path.lstat()
