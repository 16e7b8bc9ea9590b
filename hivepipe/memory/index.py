"""The index of a home's memory files: `memory.db`. Everything in it follows from the files.

folders    where memory files are looked for, and whose they are
files      one row per file, as it was read: size, time, hash
chunks     its text, redacted, in pieces; with the vector of each where a provider is set
words      FTS5 over the chunks
"""

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hivepipe.errors import MemoryIndexError

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
    """A folder of memory files: an agent's own (owner: its profile), or a swarm's.

    Without an owner it is one that the user named, for all.
    """

    path: str
    scope: str
    owner: str


@dataclass(frozen=True, slots=True)
class Hit:
    """One chunk that was found; a higher score is better."""

    path: str
    scope: str
    owner: str
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Passage:
    """One chunk of a file, and whose it is."""

    path: str
    scope: str
    owner: str
    text: str


class MemoryIndex:
    """An open index; several processes may use one."""

    def __init__(self, path: Path) -> None:
        """Open or make it; MemoryIndexError: it cannot be used."""
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not path.exists():
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._db = sqlite3.connect(path, timeout=BUSY_TIMEOUT_SECS, isolation_level=None)
            self._db.row_factory = sqlite3.Row
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA secure_delete=ON")
            with self.transaction():
                if not self._db.execute("PRAGMA user_version").fetchone()[0]:
                    for statement in _statements(_SCHEMA):
                        self._db.execute(statement)
        except (OSError, sqlite3.Error) as error:
            raise MemoryIndexError(
                f"cannot use {path}: {error}; delete it to have it made anew"
            ) from error

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    # ---- folders and files

    def remember_folder(self, folder: Folder) -> None:
        """Look for memory files here from now on."""
        sql = "INSERT OR REPLACE INTO folders VALUES (:path, :scope, :owner)"
        self._db.execute(sql, {"path": folder.path, "scope": folder.scope, "owner": folder.owner})

    def folders(self) -> list[Folder]:
        """Return where memory files are looked for."""
        return [Folder(*row) for row in self._db.execute("SELECT * FROM folders ORDER BY path")]

    def files(self, folder: str = "") -> list[sqlite3.Row]:
        """Return what is known of the files of a folder, or of all, with their chunks counted."""
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
        """Index a file anew; `stamp`: size and time of change."""
        with self.transaction():
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
        """The file was written and says the same."""
        sql = "UPDATE files SET size = ?, mtime_ns = ? WHERE path = ?"
        self._db.execute(sql, (*stamp, path))

    def remove(self, path: str) -> None:
        """The file is gone."""
        with self.transaction():
            self._db.execute("DELETE FROM chunks WHERE path = ?", (path,))
            self._db.execute("DELETE FROM files WHERE path = ?", (path,))

    def forget(self, path: str) -> None:
        """Keep nothing of a file, and do not index it again before it changes."""
        with self.transaction():
            self._db.execute("DELETE FROM chunks WHERE path = ?", (path,))
            self._db.execute("UPDATE files SET forgotten = 1 WHERE path = ?", (path,))

    def passages(self) -> Iterator[Passage]:
        """Yield all that is indexed, what changed last first."""
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
        """Forget the files of which a chunk, or the name, is wanted; return their paths."""
        sql = "SELECT path, path AS text FROM files UNION ALL SELECT path, text FROM chunks"
        found = sorted({path for path, text in self._db.execute(sql) if is_wanted(text)})
        if not dry_run:
            for path in found:
                self.forget(path)
        return found

    def clean(self) -> None:
        """Leave nothing of what was forgotten: in the index of words, free pages, the log."""
        self._db.execute("INSERT INTO words (words) VALUES ('rebuild')")
        self._db.execute("VACUUM")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    # ---- vectors

    def without_vector(self, model: str, limit: int) -> list[tuple[int, str]]:
        """Return chunks that have no vector of this model."""
        sql = "SELECT id, text FROM chunks WHERE model IS NOT ? ORDER BY id LIMIT ?"
        return [(row["id"], row["text"]) for row in self._db.execute(sql, (model, limit))]

    def put_vectors(self, model: str, vectors: Iterable[tuple[int, bytes]]) -> None:
        """Keep the vectors of chunks; one that changed meanwhile is another chunk."""
        sql = "UPDATE chunks SET model = ?, vector = ? WHERE id = ?"
        with self.transaction():
            self._db.executemany(sql, [(model, vector, id) for id, vector in vectors])

    def vectors(self, model: str) -> list[tuple[int, bytes]]:
        """Return all vectors of a model."""
        sql = "SELECT id, vector FROM chunks WHERE model = ?"
        return [(row["id"], row["vector"]) for row in self._db.execute(sql, (model,))]

    # ---- finding

    def find_words(self, query: str, limit: int) -> list[tuple[int, float]]:
        """Return chunks by words, the best first, with their scores (higher is better)."""
        sql = """
            SELECT rowid, -bm25(words) AS score FROM words WHERE words MATCH ?
            ORDER BY score DESC, rowid LIMIT ?
        """
        try:
            return [(row[0], row[1]) for row in self._db.execute(sql, (query, limit))]
        except sqlite3.OperationalError as error:
            raise MemoryIndexError(f"cannot search: {error}") from error

    def hit(self, chunk: int, score: float) -> Hit | None:
        """Return a chunk that was found; None: another process has removed it since."""
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


def _statements(script: str) -> Iterator[str]:
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
