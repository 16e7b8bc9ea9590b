"""Convert archives and summaries for the search index, and update the index."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import orjson

from hivepipe.archive.archive_files import ArchiveFiles
from hivepipe.archive.archives import Archives
from hivepipe.archive.found_values import Learning
from hivepipe.archive.index import Entry
from hivepipe.archive.search.index import Archived, SearchIndex
from hivepipe.archive.search.index_file import INDEX_FILE
from hivepipe.archive.search.passages import SUMMARY
from hivepipe.db.listings import Entry as Row
from hivepipe.db.listings import read_store
from hivepipe.db.summaries import every_summary, list_summaries, summary_keys


def index_path(home: str) -> Path:
    return Path(home, INDEX_FILE)


def archived_of(archives: Archives, key: str, entry: Entry, kept: ArchiveFiles) -> Archived | None:
    """Return an archive in the search index's form, or None if it has no lines.

    `kept` are the files of the archive.
    """
    offsets = kept.offsets()
    if not offsets or not offsets.length:
        return None
    meta = archives.meta(kept) or {}
    return Archived(
        key=key,
        session=entry["session_id"],
        agent=entry["agent_type"],
        project=str(meta.get("cwd") or ""),
        size=offsets.length,
        edition=Learning.of(kept).edition,
        began=entry["started_at"],
        lines_from=partial(_lines_from, archives, entry, offsets.length),
    )


def archived_named(home: str, archives: Archives, keys: Iterable[str]) -> dict[str, Archived]:
    """Return key -> archive or summary for those keys whose archive or summary can be read."""
    found: dict[str, Archived] = {}
    for key in dict.fromkeys(keys):
        entry = archives.index.entries().get(key)
        if entry is None:
            found |= {each.key: each for each in _summaries_of(home, key.partition("#")[0])}
            continue
        with suppress(OSError), archives.opened(entry) as kept:
            each = archived_of(archives, key, entry, kept)
            found |= {key: each} if each else {}
    return found


def new_summaries(home: str, index: SearchIndex) -> list[Archived]:
    """Return the summaries that are not indexed. A summary that replaces another has a new key."""
    known = index.keys_of_summaries()
    if all(_key_of(entry) in known for entry in read_store(home, summary_keys, [])):
        return []
    found = map(_of_summary, read_store(home, every_summary, []))
    return [each for each in found if each.key not in known]


def _summaries_of(home: str, session: str) -> list[Archived]:
    found = read_store(home, lambda store: list_summaries(store, session), [])
    return [_of_summary(entry) for entry in found]


def _key_of(entry: Row) -> str:
    return f"{entry['session_id']}#{entry['state']}#{entry['made_at']}"


def _of_summary(entry: Row) -> Archived:
    """Return a summary as an archive of one line."""
    texts = [entry["summary"], entry["key_learnings"], entry["files"], entry["open_ends"]]
    line = {"type": SUMMARY, "timestamp": entry["made_at"], "said": texts}
    raw = orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
    return Archived(
        key=_key_of(entry),
        session=entry["session_id"],
        agent="",
        project=entry.get("project") or "",
        size=len(raw),
        began=entry["made_at"],
        lines_from=partial(_only_line, raw),
    )


def _only_line(raw: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
    if not offset:
        yield 0, raw


def line_at(archived: Archived, offset: int) -> bytes:
    """Return the line at a byte offset, or b"" if the archive or the line is gone."""
    with suppress(OSError, StopIteration):
        return next(iter(archived.lines_from(offset)))[1]
    return b""


def _lines_from(
    archives: Archives, entry: Entry, size: int, offset: int
) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, line) of the lines from `offset` to `size`; later lines may be incomplete."""
    with archives.opened(entry) as kept:
        yield from kept.lines_until(size, offset)


def catch_up(
    index: SearchIndex,
    found: list[Archived],
    progress: Callable[[int], None],
    should_stop: Callable[[], bool] = lambda: False,
) -> int:
    """Index new lines of archives in order, until `should_stop`; return the number of bytes left.

    `progress` is called with the number of bytes that an archive lacked. An archive that cannot be
    read is skipped; `hivepipe archive verify` reports it.
    """
    left = 0
    for archived in found:
        missing = index.missing_bytes(archived)
        if not missing:
            continue
        if should_stop():
            left += missing
            continue
        with suppress(OSError):
            index.catch_up(archived, should_stop)
            if should_stop():
                left += index.missing_bytes(archived)
        progress(missing)
    return left
