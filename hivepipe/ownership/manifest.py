"""manifest.db in the home: which files of the exports' folder hivepipe made.

    facts   when hivepipe was installed here; whether the archives of 1.0.0 were adopted
    files   a file that hivepipe made, by its path below the exports' folder; of one that is
            replaced whole the SHA-256 of its content, and of the content before
    aside   a file that was there before and whose name hivepipe took: where it lies now
    found   an archive or export of a predecessor, by its SHA-256: what became of it

It lies in the home and not beside the files: a project may bring files along, but no manifest.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from typing import Any, NamedTuple

from hivepipe.errors import StoreError
from hivepipe.home import make_folders, short_hash, state_folder
from hivepipe.regular_file import regular

FILE = "manifest.db"
SESSION_FILE = "../session.yaml"  # beside the exports' folder, of a home inside a project
BUSY_SECS = 10.0
LONGEST_HOME_BYTES = 480  # SQLite opens no path of more than 512 bytes

# Any of them: a home that was in use before there was a manifest.
_TRACES = ("hive.db", "appendonlydir", "appendonly.aof", "instances", "spool")

_SCHEMA = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS files (
  path TEXT PRIMARY KEY, made_at REAL NOT NULL, digest TEXT NOT NULL, before TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS aside (name TEXT PRIMARY KEY, copy TEXT NOT NULL, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS found (
  digest TEXT NOT NULL, kind TEXT NOT NULL, path TEXT NOT NULL, stamp TEXT NOT NULL,
  key TEXT NOT NULL, meta TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (kind, digest, path));
PRAGMA user_version = 1;
COMMIT;
"""


class Found(NamedTuple):
    """One file of a predecessor that was taken in."""

    digest: str
    kind: str
    path: str
    stamp: str
    key: str  # of the archive that has its lines
    meta: str  # the predecessor's own metadata, redacted, as JSON
    at: float


class Manifest:
    """The manifest of one home; every call is a transaction of its own. StoreError."""

    def __init__(self, home: str) -> None:
        """Nothing is made or read yet."""
        self._home = home
        is_too_long = len(os.fsencode(home)) > LONGEST_HOME_BYTES
        folder = f"{state_folder()}/databases/{short_hash(home)}" if is_too_long else home
        self.path = f"{folder}/{FILE}"
        self._known: tuple[tuple[int, ...], frozenset[str]] | None = None

    # ---- the installation

    def begin(self) -> None:
        """Make the manifest if there is none; the archives of an older home wait for adoption."""
        if self.fact("installed_at"):
            return
        is_older = any(os.path.lexists(f"{self._home}/{name}") for name in _TRACES)
        with self._open() as db:
            sql = "INSERT OR IGNORE INTO facts VALUES (?, ?)"
            db.execute(sql, ("installed_at", str(time.time())))
            db.execute(sql, ("adopts", "1" if is_older else ""))

    def installed_at(self) -> float:
        """Return when hivepipe began to keep this manifest, in seconds of 1970."""
        self.begin()
        return float(self.fact("installed_at") or 0)

    @property
    def adopts(self) -> bool:
        """Are archives that prove to be hivepipe's still to be entered?"""
        self.begin()
        return bool(self.fact("adopts"))

    def set_adopts(self, adopts: bool) -> None:
        """Say whether they are."""
        self.begin()
        with self._open() as db:
            db.execute("REPLACE INTO facts VALUES ('adopts', ?)", ("1" if adopts else "",))

    def remember(self, name: str, value: str) -> None:
        """Enter a fact; the first one counts."""
        with self._open() as db:
            db.execute("INSERT OR IGNORE INTO facts VALUES (?, ?)", (name, value))

    def fact(self, name: str) -> str:
        """Return a fact; empty if it is not known."""
        rows = self._rows("SELECT value FROM facts WHERE name = ?", name)
        return str(rows[0][0]) if rows else ""

    # ---- files of ours

    def made(self) -> frozenset[str]:
        """Return the paths of all files that hivepipe made; read again only if they changed."""
        stamp = self.stamp()
        if self._known is None or self._known[0] != stamp:
            paths = frozenset(row[0] for row in self._rows("SELECT path FROM files"))
            self._known = (stamp, paths)
        return self._known[1]

    def claim(self, path: str) -> None:
        """Enter a file that is about to be made; OSError where it cannot be."""
        if path in self.made():
            return
        self.begin()
        with self._open() as db:
            db.execute("INSERT OR IGNORE INTO files VALUES (?, ?, '', '')", (path, time.time()))

    def disown(self, path: str) -> None:
        """Take a file out: it is gone, or a person's now."""
        with self._open() as db:
            db.execute("DELETE FROM files WHERE path = ?", (path,))

    def expect(self, path: str, data: bytes, before: bytes | None) -> None:
        """Enter what a file is about to hold; until it is written it may hold what was before."""
        self.begin()
        old = digest(before) if before is not None else ""
        with self._open() as db:
            db.execute(
                "REPLACE INTO files VALUES (?, ?, ?, ?)", (path, time.time(), digest(data), old)
            )

    def wrote(self, path: str, data: bytes) -> bool:
        """Is this what hivepipe wrote there last?"""
        rows = self._rows("SELECT digest, before FROM files WHERE path = ?", path)
        return bool(rows) and digest(data) in rows[0]

    def made_at(self, path: str) -> float | None:
        """Return when a file was entered; None: it is not ours."""
        rows = self._rows("SELECT made_at FROM files WHERE path = ?", path)
        return float(rows[0][0]) if rows else None

    # ---- what was there before

    def put_aside(self, name: str, copy: str) -> None:
        """Enter where a file that was there before lies now."""
        self.begin()
        with self._open() as db:
            db.execute("INSERT OR IGNORE INTO aside VALUES (?, ?, ?)", (name, copy, time.time()))

    def aside(self) -> dict[str, str]:
        """Return each name that was taken, and where the file lies that had it."""
        return {row[0]: row[1] for row in self._rows("SELECT name, copy FROM aside")}

    def gave_back(self, name: str) -> None:
        """Take one out again."""
        with self._open() as db:
            db.execute("DELETE FROM aside WHERE name = ?", (name,))

    # ---- what was taken in

    def find(self, found: Found) -> None:
        """Enter a file of a predecessor."""
        self.begin()
        with self._open() as db:
            db.execute("REPLACE INTO found VALUES (?, ?, ?, ?, ?, ?, ?)", found)

    def found(self, kind: str) -> list[Found]:
        """Return all files of a kind that were taken in."""
        sql = "SELECT * FROM found WHERE kind = ? ORDER BY at, path"
        return [Found(*row) for row in self._rows(sql, kind)]

    # ---- the file

    def stamp(self) -> tuple[int, ...]:
        """Return what changes with every transaction: SQLite counts them in the file's head."""
        try:
            with open(
                self.path, "rb", buffering=0, opener=regular
            ) as file:  # it is asked at every turn
                return (os.fstat(file.fileno()).st_ino, *file.read(28)[24:])
        except FileNotFoundError:
            return ()

    def _rows(self, sql: str, *values: object) -> list[Any]:
        if not os.path.exists(self.path):
            return []
        with self._open() as db:
            return db.execute(sql, values).fetchall()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            _make_private(self.path)
            with closing(sqlite3.connect(self.path, timeout=BUSY_SECS)) as db:
                if not db.execute("PRAGMA user_version").fetchone()[0]:
                    db.executescript(_SCHEMA)
                with db:
                    yield db
        except sqlite3.Error as error:
            raise StoreError(f"{self.path} cannot be used: {error}") from error


def digest(data: bytes) -> str:
    """Return the SHA-256 of a content."""
    return sha256(data).hexdigest()


def _make_private(path: str) -> None:
    if "/databases/" in path:  # the folder of a home with a long path, as its database's
        make_folders(os.path.dirname(path))
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
