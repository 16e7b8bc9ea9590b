"""manifest.db in the home: the list of files that hivepipe made in the exports' folder.

    facts   when hivepipe was installed here; whether the archives of 1.0.0 were adopted
    files   a file that hivepipe made, by its path below the exports' folder; if hivepipe
            replaces the file as a whole, the SHA-256 of its content and of its previous content
    aside   a file that hivepipe renamed to claim its name: the old and the new name
    found   the result of importing an archive or export of a predecessor, by its SHA-256

The manifest is in the home, not beside the files. A repository can bring files with the same names,
but not the manifest.
"""

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import closing, contextmanager
from hashlib import sha256
from typing import Any, NamedTuple

from hivepipe.errors import StoreError
from hivepipe.files.regular_file import regular
from hivepipe.files.sqlite_file import open_to_write
from hivepipe.home import make_folders, short_hash, state_folder

FILE = "manifest.db"
SESSION_FILE = "../session.yaml"  # beside the exports' folder, for a home inside a project
BUSY_SECS = 10.0
LONGEST_HOME_BYTES = 480  # SQLite opens no path of more than 512 bytes

# Each of these files shows that the home was used before manifests existed.
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
    """One imported file of a predecessor."""

    digest: str
    kind: str
    path: str
    stamp: str
    key: str  # key of the archive that holds the file's lines
    at: float


_FOUND = ", ".join(Found._fields)


class OwnFile(NamedTuple):
    """One file that hivepipe made. The digests are empty unless the file is replaced as a whole."""

    made_at: float
    digest: str
    before: str


class Manifest:
    """The manifest of one home. Every call is a separate transaction and may raise StoreError."""

    def __init__(self, home: str) -> None:
        """Set the manifest's path. The file is made and opened on first use."""
        self._home = home
        is_too_long = len(os.fsencode(home)) > LONGEST_HOME_BYTES
        folder = f"{state_folder()}/databases/{short_hash(home)}" if is_too_long else home
        self.path = f"{folder}/{FILE}"
        self._known: tuple[tuple[int, ...], set[str]] | None = None

    # ---- the installation

    def begin(self) -> None:
        """Make the manifest if it is missing.

        If the home was used before manifests existed, `adopts` becomes true.
        """
        if self.fact("installed_at"):
            return
        is_older = any(os.path.lexists(f"{self._home}/{name}") for name in _TRACES)
        with self._open() as db:
            sql = "INSERT OR IGNORE INTO facts VALUES (?, ?)"
            db.execute(sql, ("installed_at", str(time.time())))
            db.execute(sql, ("adopts", "1" if is_older else ""))

    def installed_at(self) -> float:
        """Return when this manifest was made, in seconds since 1970."""
        self.begin()
        return float(self.fact("installed_at") or 0)

    @property
    def adopts(self) -> bool:
        """Tell whether to add archives of hivepipe that the manifest does not list."""
        self.begin()
        return bool(self.fact("adopts"))

    def set_adopts(self, adopts: bool) -> None:
        """Set whether to add archives of hivepipe that the manifest does not list."""
        self._write("REPLACE INTO facts VALUES ('adopts', ?)", "1" if adopts else "")

    def remember(self, name: str, value: str) -> None:
        """Store the value of a fact, unless a value is stored already."""
        self._write("INSERT OR IGNORE INTO facts VALUES (?, ?)", name, value)

    def fact(self, name: str) -> str:
        """Return the value of a fact, or "" if none is stored."""
        rows = self._rows("SELECT value FROM facts WHERE name = ?", name)
        return str(rows[0][0]) if rows else ""

    # ---- files that hivepipe made

    def made(self) -> AbstractSet[str]:
        """Return the paths of all files that hivepipe made, cached until the manifest changes.

        `claim` adds its path to the cached set. After any other change the set is a new object.
        """
        stamp = self.stamp()
        if self._known is None or self._known[0] != stamp:
            rows = self._rows("SELECT path FROM files")
            self._known = (stamp, {path for (path,) in rows})
        return self._known[1]

    def files(self) -> dict[str, OwnFile]:
        """Return path -> `OwnFile` of each file that hivepipe made."""
        return {path: OwnFile(*rest) for path, *rest in self._rows("SELECT * FROM files")}

    def take_over(self, files: Mapping[str, OwnFile]) -> None:
        """Replace the entries of files by `files`, after a backup has restored the files.

        Entries of files outside the exports' folder (`../`) stay.
        """
        self.begin()
        rows = [(path, *record) for path, record in files.items()]
        with self._open() as db:
            db.execute("DELETE FROM files WHERE path NOT LIKE '../%'")
            db.executemany("INSERT OR IGNORE INTO files VALUES (?, ?, ?, ?)", rows)

    def claim(self, path: str) -> None:
        """Record a file before it is made. Raises OSError or StoreError if this is impossible."""
        if path in (made := self.made()):
            return
        known = self._known
        sql = "INSERT OR IGNORE INTO files VALUES (?, ?, '', '')"
        if not self._write(sql, path, time.time()):  # another process has added it
            return
        stamp = self.stamp()
        # A counter that rose by one shows that nobody else wrote meanwhile.
        if known and known[1] is made and stamp[:1] == known[0][:1] and stamp[1] == known[0][1] + 1:
            known[1].add(path)
            self._known = (stamp, known[1])

    def disown(self, path: str) -> None:
        """Remove a file from the manifest, because it was deleted or belongs to a person now."""
        self._write("DELETE FROM files WHERE path = ?", path)

    def expect(self, path: str, data: bytes, before: bytes | None) -> None:
        """Record that hivepipe will replace a file's content `before` by `data`.

        Both contents count as hivepipe's until the next call for this path.
        """
        old = digest(before) if before is not None else ""
        sql = "REPLACE INTO files VALUES (?, ?, ?, ?)"
        self._write(sql, path, time.time(), digest(data), old)

    def wrote(self, path: str, data: bytes) -> bool:
        """Tell whether `data` is the content that hivepipe wrote to `path`."""
        rows = self._rows("SELECT digest, before FROM files WHERE path = ?", path)
        return bool(rows) and digest(data) in rows[0]

    def made_at(self, path: str) -> float | None:
        """Return when a file was added (seconds since 1970), or None if it is not hivepipe's."""
        rows = self._rows("SELECT made_at FROM files WHERE path = ?", path)
        return float(rows[0][0]) if rows else None

    # ---- files that were renamed

    def record_rename(self, name: str, copy: str) -> None:
        """Record that a file was renamed from `name` to `copy`, so that hivepipe can use `name`."""
        self._write("INSERT OR IGNORE INTO aside VALUES (?, ?, ?)", name, copy, time.time())

    def renamed(self) -> dict[str, str]:
        """Return old name -> new name of the files renamed because hivepipe uses the old name."""
        return {row[0]: row[1] for row in self._rows("SELECT name, copy FROM aside")}

    def remove_rename(self, name: str) -> None:
        """Remove the entry of a rename, after the file got its old name back."""
        self._write("DELETE FROM aside WHERE name = ?", name)

    # ---- imported files

    def record_found(self, found: Found) -> None:
        """Record an imported file of a predecessor."""
        self._write(f"REPLACE INTO found ({_FOUND}, meta) VALUES (?, ?, ?, ?, ?, ?, '')", *found)

    def found(self, kind: str) -> list[Found]:
        sql = f"SELECT {_FOUND} FROM found WHERE kind = ? ORDER BY at, path"
        return [Found(*row) for row in self._rows(sql, kind)]

    def clear_metadata(self) -> None:
        """Clear the metadata of imported files.

        Releases before 2026-11-25 stored the metadata in this file.
        """
        if os.path.exists(self.path):
            with self._open() as db:
                db.execute("PRAGMA secure_delete = ON")
                db.execute("UPDATE found SET meta = '' WHERE meta <> ''")

    # ---- the file

    def stamp(self) -> tuple[int, ...]:
        """Return the manifest's inode and SQLite change counter, or () without a manifest.

        Each transaction changes the counter.
        """
        try:
            with open(self.path, "rb", buffering=0, opener=regular) as file:  # called at every turn
                counter = int.from_bytes(file.read(28)[24:], "big")
                return (os.fstat(file.fileno()).st_ino, counter)
        except FileNotFoundError:
            return ()

    def _rows(self, sql: str, *values: object) -> list[Any]:
        if not os.path.exists(self.path):
            return []
        with self._open() as db:
            return db.execute(sql, values).fetchall()

    def _write(self, sql: str, *values: object) -> int:
        """Execute a statement in a transaction; return the number of changed rows."""
        self.begin()
        with self._open() as db:
            return db.execute(sql, values).rowcount

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            if "/databases/" in self.path:  # a home with a long path: its database is there, too
                make_folders(os.path.dirname(self.path))
            with closing(open_to_write(self.path, BUSY_SECS)) as db:
                if not db.execute("PRAGMA user_version").fetchone()[0]:
                    db.executescript(_SCHEMA)
                db.isolation_level = "DEFERRED"
                with db:
                    yield db
        except sqlite3.Error as error:
            raise StoreError(f"{self.path} cannot be used: {error}") from error


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()
