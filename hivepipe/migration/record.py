"""The journal of `migrate`: a second run continues from it, and `--undo` restores from it.

<state>/hivepipe/migrated/<hash of the project>: JSON, mode 0600. Each change is recorded before the
change is made. The files themselves show whether the change was made.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from hivepipe.errors import LockHeldError, MigrationError
from hivepipe.files.folders import Folder
from hivepipe.files.typed_file import read_typed
from hivepipe.home import short_hash, state_folder
from hivepipe.install import edits
from hivepipe.migration.hooks import Pair
from hivepipe.stack.lock import locked_folder
from hivepipe.stack.runtime_folder import make_private

WAIT_SECS = 30.0  # longest wait for another process that migrates
_FOLDER = "migrated"


@dataclass(frozen=True)
class Settings:
    """A settings file that had old hooks: its previous content, and the removed hooks."""

    path: str
    before: str
    mtime_ns: int
    after_sha256: str
    hooks: list[Pair]


@dataclass(frozen=True)
class Move:
    """A file or folder of the predecessor, and its new place."""

    source: str
    target: str


@dataclass(frozen=True)
class Record:
    """The journal of one project's migration."""

    project: str
    settings: list[Settings] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    asides: list[str] = field(default_factory=list)  # folders that hold the moved files
    is_complete: bool = False

    @property
    def is_moved(self) -> bool:
        """Tell whether an old home was moved away, so that its path is free for hivepipe's home."""
        return any(os.path.isdir(each) for each in self.asides)

    def settings_of(self, path: str) -> Settings | None:
        return next((each for each in self.settings if each.path == path), None)

    def with_settings(self, changed: Settings) -> "Record":
        """Return a copy of the journal with one settings file added or replaced."""
        others = [each for each in self.settings if each.path != changed.path]
        return replace(self, settings=[*others, changed])


@contextmanager
def locked() -> Iterator[None]:
    """Hold the lock of migrations. Raises MigrationError if another process holds it."""
    folder = os.path.join(state_folder(), _FOLDER)
    make_private(folder)
    try:
        with locked_folder(folder, WAIT_SECS):
            yield
    except LockHeldError as error:
        raise MigrationError("another `hivepipe migrate` is running: wait for its end") from error


def read(project: str) -> Record | None:
    """Return a project's journal, or None. Raises MigrationError if the journal is damaged."""
    path = _path(project)
    try:
        return read_typed(path, Record)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise MigrationError(f"{path} cannot be read: {error}") from error


def write(record: Record) -> None:
    """Replace the journal of a project and sync it to disk. Raise StackError or OSError."""
    path = _path(record.project)
    make_private(str(path.parent))
    with Folder(str(path.parent)) as folder:
        folder.replace(path.name, f"{json.dumps(asdict(record), indent=2)}\n".encode())


def follow_rename(old: str, project: str) -> None:
    """Store a renamed project's journal under its new path. Raise as `read` and `write` do."""
    record = read(old)
    if record is None:
        return
    now = partial(edits.renamed, old=old, project=project)
    moved = replace(
        record,
        project=project,
        settings=[replace(each, path=now(each.path)) for each in record.settings],
        moves=[Move(now(each.source), now(each.target)) for each in record.moves],
        asides=[now(each) for each in record.asides],
    )
    write(moved)
    forget(old)


def forget(project: str) -> None:
    path = _path(project)
    path.with_name(f".{path.name}.tmp").unlink(missing_ok=True)  # a crash may have left it
    path.unlink(missing_ok=True)
    edits.remove_if_empty(str(path.parent))


def _path(project: str) -> Path:
    return Path(state_folder(), _FOLDER, short_hash(project))
