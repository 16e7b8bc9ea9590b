"""The file of the search index: its name, its removal, and the lines that are not indexed."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

INDEX_FILE = "search.db"


class Skipped(NamedTuple):
    """One line that could not be indexed; `offset` is its position, `reason` the error."""

    key: str
    offset: int
    reason: str


def skipped_lines(path: Path, limit: int) -> tuple[list[Skipped], int]:
    """Return up to `limit` lines that could not be indexed, and the number of all such lines.

    Return no lines for a missing or unreadable index. The next search reports the error.
    """
    some = """
        SELECT a.key, s.offset, s.reason FROM skipped s JOIN archives a ON a.id = s.archive
        ORDER BY a.key, s.offset LIMIT ?
    """
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
            (total,) = db.execute("SELECT count(*) FROM skipped").fetchone()
            return [Skipped(*row) for row in db.execute(some, (limit,))], int(total)
    except sqlite3.Error:
        return [], 0


def remove_index(path: Path) -> int:
    """Delete the index, which can be rebuilt; return its size in bytes."""
    freed = 0
    for suffix in ("", "-wal", "-shm"):
        part = Path(f"{path}{suffix}")
        try:
            freed += part.stat().st_size
            part.unlink()
        except FileNotFoundError:
            continue
    return freed
