"""Find a session and its home by a prefix of the id, in the database or the archive."""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from operator import itemgetter

from hivepipe.archive.archives import Archives
from hivepipe.archive.index import Entry
from hivepipe.db.listings import Listings, listings, one_of, read_store, unknown_id
from hivepipe.db.location import database_path
from hivepipe.errors import NothingRecordedError, StoreError
from hivepipe.operations.archive import archives_of
from hivepipe.reading.homes import KnownHome, settings_of

LAST = "last"
NO_ARCHIVE = "nothing is archived yet: `hivepipe archive sweep` archives transcripts"
_END_BYTES = 1 << 16
_STAMP = re.compile(rb'"timestamp": ?"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)"')
_TIME = itemgetter(0)


def home_with(homes: Iterable[KnownHome], start: str) -> KnownHome:
    """Return the first home with a session or subagent whose id begins with `start`.

    For `last`, return the first home with an archive.

    Raise StoreError if no home has the id. If a home cannot be searched, raise its error.
    """
    reason = NO_ARCHIVE if start == LAST else unknown_id("session", start)
    problem: Exception = StoreError(reason)
    for known in homes:
        try:
            with settings_of(known.home):
                if _has(known.home, start):
                    return known
        except (StoreError, OSError) as error:
            problem = error
    raise problem


def _has(home: str, start: str) -> bool:
    if start == LAST:
        return bool(_entries(home))
    entries = archives_of(home).index.entries().values()
    ids = [each for entry in entries for each in (entry["session_id"], entry["agent_id"]) if each]
    if any(each.startswith(start) for each in ids):
        return True
    with suppress(NothingRecordedError), listings(database_path(home)) as store:
        return bool(store.ids("session", start))
    return False


def session_named(home: str, start: str) -> str:
    """Return the session whose id starts with `start`, or for `last`, the one with the newest line.

    Raise StoreError if no session or several sessions match.
    """
    found = read_store(home, lambda store: store.ids("session", start), [])
    return _only_match(home, found, start)  # the archive may have it


def session_in(home: str, store: Listings, start: str) -> str:
    """Return the session as `session_named` does, but use a store that is already open.

    For `last`, the store's newest session is returned if it has a prompt and no archive yet. Such a
    session is newer than every archived session.
    """
    newest = store.sessions(with_ended=True, limit=1) if start == LAST else []
    known = {entry["session_id"] for entry in _entries(home)}
    for id in [row["id"] for row in newest if row["id"] not in known]:
        if store.titles([id])[id]["prompt"]:
            return str(id)
    return _only_match(home, store.ids("session", start), start)


def _only_match(home: str, found: list[str], start: str) -> str:
    entries = _entries(home)
    if start == LAST and entries:
        return _newest(archives_of(home), entries)
    if start == LAST and not found:
        raise StoreError(NO_ARCHIVE)
    archived = {each["session_id"] for each in entries if each["session_id"].startswith(start)}
    return one_of("session", start, sorted({*found, *archived}))


def _entries(home: str) -> list[Entry]:
    """Return the archived sessions, without their subagents."""
    found = archives_of(home).index.entries().values()
    return [entry for entry in found if not entry["agent_id"]]


def _newest(archives: Archives, entries: Iterable[Entry]) -> str:
    """Return the session whose last line is newest, or "" if there is none.

    The time of an archive's file is only an upper bound, because the sweep also copies old
    transcripts. Only an archive whose file time is later than the newest line found so far is
    opened.
    """
    copied = sorted(
        ((_copied_at(archives, each), each) for each in entries), key=_TIME, reverse=True
    )
    newest, session = -1.0, ""
    for copied_at, entry in copied:
        if copied_at <= newest:
            break
        said_at = min(_said_at(archives, entry) or copied_at, copied_at)
        if said_at > newest:
            newest, session = said_at, entry["session_id"]
    return session


def _copied_at(archives: Archives, entry: Entry) -> float:
    with suppress(OSError), archives.opened(entry) as kept:
        status = kept.lines_status()
        return status.st_mtime if status else 0.0
    return 0.0


def _said_at(archives: Archives, entry: Entry) -> float:
    """Return the time of an archive's last line, or 0 if the last bytes contain no time."""
    with suppress(OSError, ValueError), archives.opened(entry) as kept:
        if kept.is_packed:  # the archive is a month old
            return datetime.fromisoformat(str((kept.meta() or {}).get("ended_at"))).timestamp()
        with kept.open_to_read() as lines:
            lines.seek(max(lines.seek(0, os.SEEK_END) - _END_BYTES, 0))
            stamps = _STAMP.findall(lines.read()) or [b""]
        return datetime.fromisoformat(stamps[-1].decode()).timestamp()
    return 0.0
