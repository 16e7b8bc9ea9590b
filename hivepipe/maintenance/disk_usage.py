"""Disk usage: the kinds of data in a home, their sizes, and how long each is kept."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from hivepipe.config.retention import Limits, limits_of
from hivepipe.db.location import database_path
from hivepipe.files.known_hives import known
from hivepipe.home import Place, kept_folder, logs_folder
from hivepipe.install.data import size_of
from hivepipe.operations import memory
from hivepipe.operations.search import index_path


class Store(NamedTuple):
    """The size of one kind of data.

    `name` is for scripts, and `keeps` describes the data to people.
    """

    name: str
    keeps: str
    size_bytes: int


@dataclass(frozen=True)
class DiskUsage:
    """The size of each kind of data in a home, including empty kinds, and the retention limits."""

    stores: list[Store]
    limits: Limits

    @property
    def total(self) -> int:
        """Return the sum of all sizes in bytes."""
        return sum(store.size_bytes for store in self.stores)

    @property
    def kept(self) -> str:
        """Return a text that says how long each kind of data is kept."""
        limits = self.limits
        return (
            f"archives {limits.archives:g} days, logs {limits.logs:g} days, events on disk "
            f"{limits.spool:g} days and at most {limits.spool_mb:g} MB, archived workers "
            f"{limits.workers:g} days"
        )

    def entry(self) -> dict[str, Any]:
        """Return the fields of `hivepipe disk --json`."""
        return {
            "stores": {store.name: store.size_bytes for store in self.stores},
            "total": self.total,
            "retention": self.limits._asdict(),
        }


def disk_usage(place: Place) -> DiskUsage:
    """Return the size of each kind of data. Raises RetentionError if the limits are invalid."""
    limits = limits_of(place.home)
    return DiskUsage(_stores(place), limits)


def _stores(place: Place) -> list[Store]:
    home, kept = Path(place.home), Path(kept_folder(place.home))
    database = database_path(place.home)
    hives = [Path(root) for root in known(place.home)]
    workers = [hive / name for hive in hives for name in ("workers", "state")]
    search, memories = index_path(place.home), memory.index_path(place.home)
    logs = {
        *home.glob("logs/*.log*"),
        *kept.glob("*.log*"),
        *Path(logs_folder(place.home)).glob("*.log*"),
    }
    return [
        _store("database", "rows", [database]),
        _store("wal", "rows not in the database file yet", _with_logs(database)[1:]),
        _store("backups", "the database before each migration", [database.parent / "backups"]),
        _store("aof", "the file of Redis: waiting and failed jobs", [*home.glob("append*")]),
        _store("spool", "events that wait on disk, and unreadable ones", [home / "spool"]),
        _store("archives", "transcripts of sessions", [kept / "main-session"]),
        _store("subagents", "transcripts of subagents", [kept / "subagent"]),
        _store("exports", "skill statistics, the archive's index", [*kept.glob("*.json")]),
        _store("search", "the index of `hivepipe search`; can be deleted", _with_logs(search)),
        _store(
            "memory",
            "the index of memory files, and the texts for prompts; can be deleted",
            [*_with_logs(memories), home / "recall"],
        ),
        _store("workers", "folders of hive workers", workers),
        _store("old_workers", "archived hive workers", [hive / "archive" for hive in hives]),
        _store("logs", "logs of processes, hooks and redaction", [*logs]),
    ]


def _store(name: str, keeps: str, paths: list[Path]) -> Store:
    return Store(name, keeps, sum(map(_size, paths)))


def _size(path: Path) -> int:
    """Return the size in bytes, or 0 for a file that was deleted meanwhile, like a rotated log."""
    try:
        return size_of(str(path))
    except FileNotFoundError:
        return 0


def _with_logs(database: Path) -> list[Path]:
    return [database, Path(f"{database}-wal"), Path(f"{database}-shm")]
