"""What `migrate` changed in a project, so that a second run goes on and `--undo` gives it back.

<state>/hivepipe/migrated/<hash of the project>: JSON, mode 0600. It is written before each change
that it names; whether that change was made, the files themselves say.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from hivepipe.errors import LockHeldError, MigrationError
from hivepipe.folders import Folder
from hivepipe.home import short_hash, state_folder
from hivepipe.install.edits import remove_if_empty
from hivepipe.predecessor.hooks import Pair
from hivepipe.regular_file import read_bytes
from hivepipe.stack.lock import locked_folder, make_private

WAIT_SECS = 30.0  # for another process that migrates
_FOLDER = "migrated"


@dataclass(frozen=True)
class Settings:
    """A settings file that held old hooks: what it was before, and those that were taken out."""

    path: str
    before: str
    mtime_ns: int
    after_sha256: str
    hooks: list[Pair]


@dataclass(frozen=True)
class Move:
    """A file or folder of the predecessor, and where it is kept."""

    source: str
    target: str


@dataclass(frozen=True)
class Record:
    """One project's migration."""

    project: str
    settings: list[Settings] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    asides: list[str] = field(default_factory=list)  # the folders that hold what was moved
    is_complete: bool = False

    @property
    def is_moved(self) -> bool:
        """Was an old home moved aside, so that hivepipe's takes its place?"""
        return any(os.path.isdir(each) for each in self.asides)

    def settings_of(self, path: str) -> Settings | None:
        """Return what is remembered of a settings file."""
        return next((each for each in self.settings if each.path == path), None)

    def with_settings(self, changed: Settings) -> "Record":
        """Return the record with one settings file added, or replaced."""
        others = [each for each in self.settings if each.path != changed.path]
        return replace(self, settings=[*others, changed])


@contextmanager
def alone() -> Iterator[None]:
    """Let no other process migrate, or take a migration back; MigrationError: one does."""
    folder = os.path.join(state_folder(), _FOLDER)
    make_private(folder)
    try:
        with locked_folder(folder, WAIT_SECS):
            yield
    except LockHeldError as error:
        raise MigrationError("another `hivepipe migrate` is at work: wait for its end") from error


def read(project: str) -> Record | None:
    """Return the record of a project; None: nothing was migrated. MigrationError: damaged."""
    path = _path(project)
    try:
        said = json.loads(read_bytes(path))
        return Record(
            project=said["project"],
            settings=[
                Settings(**{**each, "hooks": [(event, entry) for event, entry in each["hooks"]]})
                for each in said["settings"]
            ],
            moves=[Move(**each) for each in said["moves"]],
            asides=said["asides"],
            is_complete=said["is_complete"],
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise MigrationError(f"{path} cannot be read: {error}") from error


def write(record: Record) -> None:
    """Replace the record of a project, on disk before anything that follows."""
    path = _path(record.project)
    make_private(str(path.parent))
    with Folder(str(path.parent)) as folder:
        folder.replace(path.name, f"{json.dumps(asdict(record), indent=2)}\n".encode())


def forget(project: str) -> None:
    """Remove the record of a project."""
    path = _path(project)
    path.with_name(f".{path.name}.tmp").unlink(missing_ok=True)  # a kill may have left it
    path.unlink(missing_ok=True)
    remove_if_empty(str(path.parent))


def _path(project: str) -> Path:
    return Path(state_folder(), _FOLDER, short_hash(project))
