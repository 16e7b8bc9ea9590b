"""The index of a home's memory files: `memory.db`. The index can be rebuilt from the files.

folders    folders of memory files, with scope and owner
files      one row per file, with size, time and hash at the last read
chunks     the redacted text of files in chunks, each with its vector if a provider is set
words      the FTS5 table of the chunks
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from hivepipe.errors import MemoryIndexError
from hivepipe.files.sqlite_file import (
    closing_on_error,
    open_to_write,
    statements,
    transaction,
    trouble_of_index,
)

VERSION = 1
BUSY_TIMEOUT_SECS = 10.0
AGENT, SWARM = "agent", "swarm"

_SCHEMA = f"""
CREATE TABLE folders (path TEXT PRIMARY KEY, scope TEXT NOT NULL, owner TEXT NOT NULL);
CREATE TABLE files (
  path TEXT PRIMARY KEY, folder TEXT NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
  sha256 TEXT NOT NULL, forgotten INTEGER NOT NULL DEFAULT 0);
CREATE TABLE chunks (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL, position INTEGER NOT NULL, text TEXT NOT NULL,
  model TEXT, vector BLOB);
CREATE INDEX chunks_by_path ON chunks (path);
CREATE VIRTUAL TABLE words USING fts5(
  text, content='chunks', content_rowid='id',
  tokenize="unicode61 remove_diacritics 2 tokenchars '_'");
CREATE TRIGGER chunk_added AFTER INSERT ON chunks BEGIN
  INSERT INTO words (rowid, text) VALUES (new.id, new.text); END;
CREATE TRIGGER chunk_removed AFTER DELETE ON chunks BEGIN
  INSERT INTO words (words, rowid, text) VALUES ('delete', old.id, old.text); END;
PRAGMA user_version={VERSION};
"""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of memory files. `owner` is the profile or the swarm that the folder belongs to.

    A folder that the user configured for all sessions has no owner.
    """

    path: str
    scope: str
    owner: str


@dataclass(frozen=True, slots=True)
class Passage:
    """One chunk of a file, with the scope and owner of the file's folder."""

    path: str
    scope: str
    owner: str
    text: str


@dataclass(frozen=True, slots=True)
class Hit(Passage):
    """One search result. A higher score is better."""

    score: float


@contextmanager
def opened_index(path: Path) -> Iterator["MemoryIndex"]:
    """Open the index for a block; raise MemoryIndexError if it cannot be used or is damaged."""
    try:
        with closing(MemoryIndex(path)) as index:
            yield index
    except sqlite3.Error as error:
        raise MemoryIndexError(trouble_of_index(path, error)) from error


class MemoryIndex:
    """An open index. Several processes may use the same file."""

    def __init__(self, path: Path) -> None:
        """Open or create the index; raise MemoryIndexError if it cannot be used."""
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._db = open_to_write(path, BUSY_TIMEOUT_SECS)
            with closing_on_error(self._db):
                self._prepare()
        except (OSError, sqlite3.Error) as error:
            raise MemoryIndexError(trouble_of_index(path, error)) from error

    def close(self) -> None:
        self._db.close()

    def _prepare(self) -> None:
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA secure_delete=ON")
        with transaction(self._db):
            if not self._db.execute("PRAGMA user_version").fetchone()[0]:
                for statement in statements(_SCHEMA):
                    self._db.execute(statement)

    # ---- folders and files

    def remember_folder(self, folder: Folder) -> None:
        sql = "INSERT OR REPLACE INTO folders VALUES (:path, :scope, :owner)"
        self._db.execute(sql, {"path": folder.path, "scope": folder.scope, "owner": folder.owner})

    def folders(self) -> list[Folder]:
        return [Folder(*row) for row in self._db.execute("SELECT * FROM folders ORDER BY path")]

    def files(self, folder: str = "") -> list[sqlite3.Row]:
        """Return a row for each file of `folder` (default: all), with chunk and vector counts."""
        sql = """
            SELECT files.*, folders.scope, folders.owner,
              (SELECT COUNT(*) FROM chunks WHERE path = files.path) AS chunks,
              (SELECT COUNT(vector) FROM chunks WHERE path = files.path) AS vectors
            FROM files LEFT JOIN folders ON folders.path = files.folder
            WHERE :folder = '' OR folder = :folder ORDER BY files.path
        """
        return self._db.execute(sql, {"folder": folder}).fetchall()

    def put(
        self, path: str, folder: str, stamp: tuple[int, int], sha256: str, texts: Sequence[str]
    ) -> None:
        """Replace the chunks of a file. `stamp` is the file's size and modification time in ns."""
        with transaction(self._db):
            self._db.execute("DELETE FROM chunks WHERE path = ?", (path,))
            self._db.execute(
                "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, 0)",
                (path, folder, *stamp, sha256),
            )
            self._db.executemany(
                "INSERT INTO chunks (path, position, text) VALUES (?, ?, ?)",
                [(path, position, text) for position, text in enumerate(texts)],
            )

    def touch(self, path: str, stamp: tuple[int, int]) -> None:
        """Update size and time of a file whose content is unchanged."""
        sql = "UPDATE files SET size = ?, mtime_ns = ? WHERE path = ?"
        self._db.execute(sql, (*stamp, path))

    def remove(self, path: str) -> None:
        with transaction(self._db):
            self._db.execute("DELETE FROM chunks WHERE path = ?", (path,))
            self._db.execute("DELETE FROM files WHERE path = ?", (path,))

    def forget(self, path: str) -> None:
        """Delete a file's text from the index; the file is indexed again only after a change."""
        with transaction(self._db):
            self._db.execute("DELETE FROM chunks WHERE path = ?", (path,))
            self._db.execute("UPDATE files SET forgotten = 1 WHERE path = ?", (path,))

    def passages(self) -> Iterator[Passage]:
        """Yield all chunks, starting with the files that changed last."""
        sql = """
            SELECT chunks.path, COALESCE(scope, ''), COALESCE(owner, ''), text FROM chunks
            JOIN files ON files.path = chunks.path
            LEFT JOIN folders ON folders.path = files.folder
            ORDER BY mtime_ns DESC, chunks.path, position
        """
        for path, scope, owner, text in self._db.execute(sql):
            yield Passage(path, scope, owner, text)

    # ---- forgetting

    def forget_all(self, is_wanted: Callable[[str], bool], *, dry_run: bool = False) -> list[str]:
        """Forget files whose name or chunk `is_wanted` accepts; return the paths of these files."""
        sql = "SELECT path, path AS text FROM files UNION ALL SELECT path, text FROM chunks"
        found = sorted({path for path, text in self._db.execute(sql) if is_wanted(text)})
        if not dry_run:
            for path in found:
                self.forget(path)
        return found

    def clean(self) -> None:
        """Erase forgotten text from the word index, the free pages and the write-ahead log."""
        self._db.execute("INSERT INTO words (words) VALUES ('rebuild')")
        self._db.execute("VACUUM")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    # ---- vectors

    def without_vector(self, model: str, limit: int) -> list[tuple[int, str]]:
        """Return (id, text) of up to `limit` chunks without a vector of this model."""
        sql = "SELECT id, text FROM chunks WHERE model IS NOT ? ORDER BY id LIMIT ?"
        return [(row["id"], row["text"]) for row in self._db.execute(sql, (model, limit))]

    def put_vectors(self, model: str, vectors: Iterable[tuple[int, bytes]]) -> None:
        """Store vectors of chunks; leave out chunks that were replaced meanwhile."""
        sql = "UPDATE chunks SET model = ?, vector = ? WHERE id = ?"
        with transaction(self._db):
            self._db.executemany(sql, [(model, vector, id) for id, vector in vectors])

    def vectors(self, model: str) -> list[tuple[int, bytes]]:
        """Return (chunk id, vector) for every chunk with a vector of this model."""
        sql = "SELECT id, vector FROM chunks WHERE model = ?"
        return [(row["id"], row["vector"]) for row in self._db.execute(sql, (model,))]

    # ---- finding

    def find_words(self, query: str, limit: int) -> list[tuple[int, float]]:
        """Return (chunk id, score) of matching chunks, best first; or raise MemoryIndexError."""
        sql = """
            SELECT rowid, -bm25(words) AS score FROM words WHERE words MATCH ?
            ORDER BY score DESC, rowid LIMIT ?
        """
        try:
            return [(row[0], row[1]) for row in self._db.execute(sql, (query, limit))]
        except sqlite3.OperationalError as error:
            raise MemoryIndexError(f"cannot search: {error}") from error

    def hit(self, chunk: int, score: float) -> Hit | None:
        """Return a chunk as a hit, or None if it was removed after the search."""
        sql = """
            SELECT chunks.path, COALESCE(scope, ''), COALESCE(owner, ''), chunks.text FROM chunks
            JOIN files ON files.path = chunks.path
            LEFT JOIN folders ON folders.path = files.folder WHERE chunks.id = ?
        """
        row = self._db.execute(sql, (chunk,)).fetchone()
        if row is None:
            return None
        path, scope, owner, text = row
        return Hit(path, scope, owner, text, score)
