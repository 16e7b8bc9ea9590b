"""Archives and summaries in the form that the search index reads, and updates of the index."""

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import orjson

from hivepipe.archive.archives import Archives
from hivepipe.archive.found_values import Learning
from hivepipe.archive.index import Entry
from hivepipe.archive.search.index import INDEX_FILE, Archived, SearchIndex
from hivepipe.archive.search.passages import SUMMARY
from hivepipe.db.listings import listings
from hivepipe.db.location import database_path
from hivepipe.db.summaries import every_summary
from hivepipe.errors import StoreError


def index_path(home: str) -> Path:
    """Return the path of a home's index."""
    return Path(home, INDEX_FILE)


def forget_index(home: str) -> None:
    """Empty the index, because indexed lines were changed and removed text must not be found."""
    if index_path(home).exists():
        with closing(SearchIndex(index_path(home))) as index:
            index.begin_anew()


def all_archived(archives: Archives) -> Iterator[Archived]:
    """Yield every archive that can be read."""
    for key, entry in archives.index.entries().items():
        found = None
        with suppress(OSError), archives.opened(entry) as kept:
            offsets, meta = kept.offsets(), archives.meta(kept) or {}
            found = offsets and Archived(
                key=key,
                session=entry["session_id"],
                agent=entry["agent_type"],
                project=str(meta.get("cwd") or ""),
                size=offsets.length,
                edition=Learning.of(kept).edition,
                began=entry["started_at"],
                lines_from=partial(_lines_from, archives, entry, offsets.length),
            )
        if found and found.size:
            yield found


def all_summaries(home: str) -> Iterator[Archived]:
    """Yield every summary as an archive of one line; a replaced summary is another archive."""
    try:
        with listings(database_path(home)) as store:
            found = every_summary(store)
    except StoreError:  # no database yet, or one of an older hivepipe
        return
    for entry in found:
        texts = [entry["summary"], entry["key_learnings"], entry["files"], entry["open_ends"]]
        line = {"type": SUMMARY, "timestamp": entry["made_at"], "said": texts}
        raw = orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
        yield Archived(
            key=f"{entry['session_id']}#{entry['state']}#{entry['made_at']}",
            session=entry["session_id"],
            agent="",
            project=entry["project"] or "",
            size=len(raw),
            began=entry["made_at"],
            lines_from=partial(_only_line, raw),
        )


def _only_line(raw: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
    if not offset:
        yield 0, raw


def line_at(archived: Archived, offset: int) -> bytes:
    """Return one line; empty if the archive is gone."""
    with suppress(OSError, StopIteration):
        return next(iter(archived.lines_from(offset)))[1]
    return b""


def _lines_from(
    archives: Archives, entry: Entry, size: int, offset: int
) -> Iterator[tuple[int, bytes]]:
    """Yield offset and content of the committed lines; lines behind them are being written."""
    with archives.opened(entry) as kept, kept.open_to_read() as file:
        file.seek(offset)
        for raw in file:
            if offset + len(raw) > size:
                return
            yield offset, raw
            offset += len(raw)


def catch_up(
    index: SearchIndex,
    found: list[Archived],
    progress: Callable[[int], None],
    should_stop: Callable[[], bool] = lambda: False,
) -> int:
    """Index new lines, in this order; return how many bytes are left after a stop.

    `progress` gets the bytes of each archive. An archive that is gone or cannot be read is left
    out; `hivepipe archive verify` reports it.
    """
    if any(map(index.has_another_edition, found)):
        index.begin_anew()
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


def keep_up(home: str, archives: Archives, should_stop: Callable[[], bool]) -> None:
    """Update the index of a home, if there is one."""
    if not index_path(home).exists():
        return
    with closing(SearchIndex(index_path(home))) as index:
        catch_up(index, newest_first(archives), lambda _bytes: None, should_stop)


def newest_first(archives: Archives) -> list[Archived]:
    """Return the archives that can be read, the one that started last first."""
    return sorted(all_archived(archives), key=lambda each: each.began, reverse=True)
