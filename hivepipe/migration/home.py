"""The predecessor's files in its home `.hive-mind`, the same folder name that hivepipe uses."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hivepipe.db.foreign import is_foreign
from hivepipe.db.legacy_database import LeftOut
from hivepipe.errors import MigrationError
from hivepipe.files.owner import another_owner
from hivepipe.home import read_record
from hivepipe.migration.legacy_queue import count
from hivepipe.stack.home_marks import is_marked

QUEUE_PARTS = ("pending", "processing", "failed")
# In the order of the moves: the logs first, because a log must not stay with another database.
_DATABASE = ("hive.db-shm", "hive.db-wal", "hive.db-journal", "hive.db")
# In `instances`, where the names of hivepipe's files have no dot.
_OLD_INSTANCES = (".instance_*", ".session_*", ".last_checkpoint_*", ".cleanup_checkpoint_*")
_UNKNOWN = "hivepipe does not know this file"
# Patterns of file names with the reason for not importing the file, or "" if it is imported.
_KINDS = (
    (r"hive\.db(-wal|-shm|-journal)?", ""),
    (r"queue/(pending|processing|failed)/[^/]+\.json", ""),
    (r"queue/completed/.+", "done by the old worker: its rows are in the old database"),
    (r"queue/\.tmp/.+", "never queued: its hook was killed"),
    (r"queue/[^/]+", "state of the old worker"),
    (r"\.active_session|\.session_.+|\.instance_.+|\.last_checkpoint_.+", "marker of a process"),
    (r"(\.?sessions|\.?instances)/.+|\.cleanup_checkpoint_.*", "marker of a process"),
    (r"(logs/)?[^/]+\.log", "log of the old hooks"),
    (r"\.gitignore", "setting of git"),
)


@dataclass(frozen=True)
class OldHome:
    """A home of the predecessor.

    `entries` are the names of the predecessor's files in the folder. If `is_shared`, the folder
    also has files of hivepipe, so the entries are moved one by one.
    """

    folder: Path
    entries: list[str]
    is_shared: bool = False

    @property
    def database(self) -> Path | None:
        return self.folder / "hive.db" if "hive.db" in self.entries else None

    @property
    def queue(self) -> Path | None:
        """Return the queue's folder, which contains `pending`, or None."""
        folder = self.folder / "queue"
        is_real = "queue" in self.entries and folder.is_dir() and not folder.is_symlink()
        return folder if is_real else None

    @property
    def queued(self) -> dict[str, int]:
        """Return the number of files in each part of the queue."""
        parts = (*QUEUE_PARTS, "completed")
        return {part: count(self.queue, part) for part in parts} if self.queue else {}

    def left_out(self) -> list[LeftOut]:
        """Return the files that are not imported: unknown files by name, other kinds as counts."""
        reasons = Counter[str]()
        unknown = []
        for name in self._files():
            reason = _reason(name)
            if reason == _UNKNOWN:
                unknown.append(LeftOut(f"file {name}", 1, reason))
            elif reason:
                reasons[reason] += 1
        return [*(LeftOut("files", number, text) for text, number in reasons.items()), *unknown]

    def _files(self) -> Iterator[str]:
        for entry in self.entries:
            path = self.folder / entry
            if path.is_symlink() or not path.is_dir():
                yield entry
                continue
            for folder, _, names in os.walk(path):
                for name in sorted(names):
                    yield os.path.relpath(f"{folder}/{name}", self.folder)


def find_home(project: str, is_moved: bool = False) -> OldHome | None:
    """Return the predecessor's files in `.hive-mind`, or None. Another user's files are ignored.

    If `is_moved`, the old home was moved away before, and the folder is hivepipe's. Raises
    MigrationError if the folder is a link.
    """
    folder = Path(project, ".hive-mind")
    if folder.is_symlink():
        target = os.readlink(folder)
        text = f"{folder} is a link to {target}, which is not followed"
        raise MigrationError(f"{text}: remove the link and run `hivepipe migrate --from {target}`")
    is_users = folder.is_dir() and not another_owner(str(folder))
    names = sorted(os.listdir(folder)) if is_users else []
    if not set(names) - {".gitignore"}:
        return None
    if not is_moved and not _is_ours(folder):
        return OldHome(folder, names)
    entries = _old_entries(folder, names)
    return OldHome(folder, entries, is_shared=True) if entries else None


def find_above(project: str) -> str:
    """Return the nearest parent folder with a home of the predecessor, or ""."""
    for folder in map(str, Path(project).parents):
        old = Path(folder, ".hive-mind")
        if is_foreign(old / "hive.db") or (old / "queue" / "pending").is_dir():
            return folder
    return ""


def old_home(folder: Path) -> OldHome:
    """Return the predecessor's home in a folder. Raises MigrationError if it is not a folder."""
    if folder.is_symlink() or not folder.is_dir():
        raise MigrationError(f"{folder} is not a folder")
    return OldHome(folder, sorted(os.listdir(folder)))


def _is_ours(folder: Path) -> bool:
    """Tell whether hivepipe has used this folder."""
    return read_record(str(folder.parent)).get("home") == str(folder) or is_marked(str(folder))


def _old_entries(folder: Path, names: list[str]) -> list[str]:
    found = [name for name in names if name == "queue"]
    if is_foreign(folder / "hive.db"):
        found += [name for name in _DATABASE if name in names]
    for pattern in _OLD_INSTANCES:
        found += [f"instances/{path.name}" for path in folder.glob(f"instances/{pattern}")]
    return found


def _reason(name: str) -> str:
    return next((reason for pattern, reason in _KINDS if re.fullmatch(pattern, name)), _UNKNOWN)
