"""How long things are kept, as `[retention]` in config.toml says, and what is over its time.

    archives = 365     days since a transcript's archive grew
    logs = 30          days since a rotated log was written; the audit log keeps its own 90
    spool = 14         days that an event waits on disk
    spool_mb = 200     beyond that the oldest go

Events that are dropped are counted: `hivepipe status` shows them among the jobs without effect.
"""

import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from hivepipe import config
from hivepipe.audit_log import NAME as AUDIT_LOG
from hivepipe.errors import RetentionError
from hivepipe.handlers.archive import archives_of
from hivepipe.handlers.search import index_path
from hivepipe.home import kept_folder, logs_folder
from hivepipe.queues.spooled import spool_files
from hivepipe.search.index import remove_index
from hivepipe.store.applied import count_dropped
from hivepipe.store.database import Database
from hivepipe.store.location import database_path

DAY_SECS = 86_400.0


class Limits(NamedTuple):
    """Days, and megabytes of the spool."""

    archives: float = 365
    logs: float = 30
    spool: float = 14
    spool_mb: float = 200


class Dropped(NamedTuple):
    """How many of each went."""

    archives: int
    logs: int
    events: int


def limits_of(home: str) -> Limits:
    """Read the section of both files, the home's wins; RetentionError: it cannot be used."""
    found: dict[str, float] = {}
    for path in config.files(home):
        for name, value in _section(path).items():
            if name not in Limits._fields:
                raise RetentionError(f"{path}: [retention] has no {name!r}")
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise RetentionError(f"{path}: [retention] {name} must be a number above 0")
            found[name] = value
    return Limits(**found)


def _section(path: str) -> dict[str, Any]:
    try:
        section = tomllib.loads(Path(path).read_text("utf-8")).get("retention", {})
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise RetentionError(f"{path} cannot be read: {error}") from error
    if not isinstance(section, dict):
        raise RetentionError(f"{path}: [retention] is a section")
    return section


def retain(home: str, now: float) -> Dropped:
    """Delete what is over its time at `now` (seconds of 1970); return how many of each went."""
    limits = limits_of(home)
    return Dropped(
        _drop_archives(home, now - limits.archives * DAY_SECS),
        _drop_logs(home, now - limits.logs * DAY_SECS),
        _drop_events(home, now - limits.spool * DAY_SECS, limits.spool_mb * 1e6),
    )


def _drop_archives(home: str, before: float) -> int:
    archives = archives_of(home)
    dropped = sum(archives.remove_if_older(key, before) for key in sorted(archives.index.entries()))
    if dropped:
        remove_index(index_path(home))
    return dropped


def _drop_logs(home: str, before: float) -> int:
    folders = (f"{home}/logs", logs_folder(home), kept_folder(home))
    rotated = {path for folder in folders for path in Path(folder).glob("*.log.*")}
    old = [
        path
        for path in rotated
        if not path.name.startswith(AUDIT_LOG) and path.lstat().st_mtime < before
    ]
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)


def _drop_events(home: str, before: float, most_bytes: float) -> int:
    """The names of the files begin with the time of their event, in nanoseconds."""
    files = [(path, _size(path)) for path in spool_files(Path(home, "spool"))]
    left = sum(size for _, size in files)
    dropped = 0
    for path, size in files:
        stamp = path.name.partition("_")[0]
        is_old = stamp.isdigit() and int(stamp) < before * 1e9
        if not is_old and left <= most_bytes:
            continue
        path.unlink(missing_ok=True)
        left -= size
        dropped += 1
    if dropped:
        with closing(Database(database_path(home))) as db, db.transaction():
            count_dropped(db, "spool", dropped)
    return dropped


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except FileNotFoundError:
        return 0
