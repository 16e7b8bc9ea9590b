"""The trusted state of workers, kept in the user's state folder outside every project.

    <state>/hivepipe/hives/<hash of the .hive's real path>/
      hive             path, device and inode of the .hive; written last
      workers/<id>/    the state of a worker: hivepipe.orchestrator.worker
      archive/<id>/    the state of an archived worker
      projects.json    names and paths; the file in .hive is a copy for other programs

An earlier version kept the state in `.hive/state`, where a worker could write if its project
contains the `.hive`. That state is migrated once, as copies of regular files. Permission flags that
the user has not chosen are replaced. A recorded process that does not run the worker's session is
treated as ended.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

from hivepipe.errors import HiveError, LockHeldError
from hivepipe.events.claude_code import valid_id
from hivepipe.files.known_hives import trusted_state_folder
from hivepipe.files.typed_file import read_or, read_typed, write_typed
from hivepipe.home import make_folders, read_small, write_small
from hivepipe.orchestrator.plain_file import open_regular
from hivepipe.orchestrator.rights import EDITS, default_flags
from hivepipe.orchestrator.run import read_run
from hivepipe.orchestrator.worker import Card, Worker
from hivepipe.stack.lock import acquire_lock, locked_file
from hivepipe.times import now

PROJECTS = "projects.json"
_MARK = "hive"
_LARGEST_BYTES = 1 << 22  # bytes per file; a prompt contains a task of up to a megabyte
_LARGEST_LIST = 1 << 20
_LOCK_SECS = 30.0


@dataclass(frozen=True)
class Identity:
    """Path, device and inode of a `.hive`."""

    path: str
    device: int
    number: int


def folder_of(root: Path) -> Path:
    """Return the state folder of a `.hive`, derived from its real path."""
    return Path(trusted_state_folder(str(root)))


def forget_deleted(root: Path) -> None:
    """Drop the identity of a deleted `.hive` before a new `.hive` is made at its path.

    The states of workers stay. The list of projects stays if one of the workers may be running. A
    missing state folder is made, because otherwise `_follow_moved` could give the new hive the
    folder of a deleted `.hive` that had the same inode. Raise HiveError if the state folder cannot
    be written.
    """
    folder = folder_of(root)
    with _locked(folder):
        make_folders(str(folder))
        (folder / _MARK).unlink(missing_ok=True)
        runs = [Worker(state, state).last_run() for state in _folders(folder / "workers")]
        if not any(run and run.is_at_work() is not False for run in runs):
            (folder / PROJECTS).unlink(missing_ok=True)


def migrate_state(root: Path) -> list[str]:
    """Migrate workers' old state in a `.hive`; return notes for the user. May raise HiveError."""
    folder = folder_of(root)
    if (folder / _MARK).exists():
        return []
    with _locked(folder):
        if (folder / _MARK).exists():
            return []
        _follow_moved(root, folder)
        notes = _migrate(root, folder)
        write_typed(folder / _MARK, _identity(root))
        return notes


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    try:
        make_folders(str(folder.parent))
        with locked_file(f"{folder}.lock", _LOCK_SECS):
            yield
    except (OSError, LockHeldError) as error:
        raise HiveError(f"{folder} cannot be made: {error}") from None


def _identity(root: Path) -> Identity:
    status = os.stat(root)
    return Identity(str(root), status.st_dev, status.st_ino)


def _follow_moved(root: Path, folder: Path) -> None:
    """Rename the state folder if the `.hive` was moved.

    A moved `.hive` has the recorded device and inode, and the recorded path no longer exists. A
    deleted `.hive` may have had the same inode. So if several state folders match, the folder with
    the newest file `hive` is used.
    """
    here, found = _identity(root), []
    for mark in folder.parent.glob(f"*/{_MARK}"):
        with suppress(ValueError):
            before = read_typed(mark, Identity)
            if replace(here, path=before.path) == before and not os.path.lexists(before.path):
                found.append(mark)
    if found and not folder.exists():
        max(found, key=os.path.getmtime).parent.rename(folder)


def _migrate(root: Path, folder: Path) -> list[str]:
    notes = []
    for kind in ("workers", "archive"):
        make_folders(str(folder / kind))
    if not (folder / PROJECTS).exists():
        found = read_small(str(root / PROJECTS), _LARGEST_LIST) or "{}\n"
        write_small(str(folder / PROJECTS), found)
    for old, target in _old_states(root, folder):
        if not target.exists():
            new = folder / "new"
            _copy(old, new)
            notes += _replace_forged(new, target.name)
            new.rename(target)
        _remove_old(old, target)
    with suppress(OSError):
        (root / "state").rmdir()
    return notes


def _old_states(root: Path, folder: Path) -> list[tuple[Path, Path]]:
    """Return the workers' states found in a `.hive`, each with its target folder."""
    found = [(path, folder / "workers" / path.name) for path in _folders(root / "state")]
    for path in _folders(root / "archive"):
        states = [each for each in _folders(path) if each.name == "state"]
        found += [(state, folder / "archive" / path.name) for state in states]
    return [(old, target) for old, target in found if valid_id(target.name) == target.name]


def _folders(path: Path) -> list[Path]:
    """Return the subfolders of a folder; symbolic links are ignored."""
    if path.is_symlink() or not path.is_dir():
        return []
    return sorted(each for each in path.iterdir() if each.is_dir() and not each.is_symlink())


def _copy(old: Path, new: Path) -> None:
    """Copy the regular files of an old state to the folder `new`, which is emptied first."""
    shutil.rmtree(new, ignore_errors=True)
    make_folders(str(new / "runs"))
    for part in (old, old / "runs"):
        if part.is_symlink() or not part.is_dir():
            continue
        for path in part.iterdir():
            with suppress(OSError), open(path, "rb", opener=open_regular) as file:
                data = file.read(_LARGEST_BYTES)
                with open(new / path.relative_to(old), "xb", opener=open_regular) as copy:
                    copy.write(data)


def _replace_forged(state: Path, id: str) -> list[str]:
    """Replace data that a worker may have forged in a copied state; return notes for the user.

    Permission flags that the user did not choose are replaced. If the process of a run does not
    have the session in its arguments, the run is marked as lost. So no unrelated process is
    signalled.
    """
    card = read_or(state / "worker.json", Card, None, _LARGEST_BYTES)
    if card is None:
        return []
    for path in (state / "runs").glob("*.json"):
        run = read_run(path)
        if run and run.process_lives() and not _is_on(run.pid, card.session):
            run.ended_at, run.is_lost = now()[0], True
            write_typed(path, run)
    may_have = _flags_of_the_user()
    if card.flags in (may_have, EDITS.flags):
        return []
    write_typed(state / "worker.json", replace(card, flags=may_have))
    text = f"a file that {id} could write gave it other rights than you chose"
    return [f"{text}; it keeps the rights that you chose"]


def _flags_of_the_user() -> tuple[str, ...]:
    try:
        return default_flags()
    except HiveError:  # the user has not chosen rights yet: allow only edits
        return EDITS.flags


def _is_on(pid: int, session: str) -> bool:
    psutil = import_module("psutil")  # only a migration needs it; every worker imports this module
    try:
        return bool(session) and session in psutil.Process(pid).cmdline()
    except psutil.Error:
        return False


def _remove_old(old: Path, target: Path) -> None:
    """Remove a worker's old state after its migration.

    If a runner still holds the lock, replace the state by a symbolic link to the new state, so that
    the runner can write the end of its run.
    """
    try:
        lock = acquire_lock(str(old / "run.lock"), 0)
    except (LockHeldError, OSError):
        aside = old.with_name(f".{old.name}")
        old.rename(aside)
        old.symlink_to(target)
        shutil.rmtree(aside, ignore_errors=True)
        return
    try:
        shutil.rmtree(old)
    finally:
        os.close(lock)
