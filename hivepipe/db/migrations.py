"""Bring the schema up to date; each step is committed together with the row that names it."""

import os
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from hivepipe.errors import StoreError
from hivepipe.files.regular_file import read_text
from hivepipe.files.sqlite_file import statements, transaction


def _steps() -> Iterator[tuple[str, str]]:
    """Yield name and script of each migration step in schema.sql."""
    _, *steps = read_text(Path(__file__).with_name("schema.sql")).split("\n-- step ")
    for step in steps:
        name, _, script = step.partition("\n")
        yield name, script


# Read at import, because an upgrade may replace the file of a running process.
MIGRATIONS = tuple(_steps())

_CHECKED = re.findall(r"CHECK \(\w+ IN \(([^)]*)\)", "".join(script for _, script in MIGRATIONS))
# The words that columns with a CHECK accept
WORDS = frozenset(re.findall(r"'(\w+)'", "".join(_CHECKED)))

_RECORDS = """
CREATE TABLE IF NOT EXISTS schema_migrations (id TEXT PRIMARY KEY, applied_at TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS applied (job_id TEXT PRIMARY KEY, applied_at TEXT NOT NULL)
  WITHOUT ROWID;
"""
_NOW = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"


def migrate(connection: sqlite3.Connection, backups: Path) -> None:
    """Bring the schema up to date.

    Raise StoreError if a newer hivepipe or another program made the database.
    A database with earlier migrations is first copied to the `backups` folder.
    """
    pending = _pending(connection)
    if pending:
        if len(pending) < len(MIGRATIONS):
            _back_up(connection, backups, pending[0][0])
        with transaction(connection):
            for statement in statements(_RECORDS):
                connection.execute(statement)
            # Checked again under the lock: another process may have migrated.
            for name, script in _pending(connection):
                for statement in statements(script):
                    connection.execute(statement)
                connection.execute(f"INSERT INTO schema_migrations VALUES (?, {_NOW})", (name,))


def _pending(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    # Read before `has_records`, because another process may be creating all tables.
    has_tables = _has_tables(connection)
    has_records = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations'"
    ).fetchone()
    done = (
        {row[0] for row in connection.execute("SELECT id FROM schema_migrations")}
        if has_records
        else set()
    )
    if not has_records and has_tables:
        raise StoreError(
            "the database was not made by hivepipe: `hivepipe migrate` takes over the one of the "
            "bash hooks"
        )
    if newer := made_by_newer(done):
        raise StoreError(newer)
    return [(name, script) for name, script in MIGRATIONS if name not in done]


def _has_tables(connection: sqlite3.Connection) -> bool:
    sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    return connection.execute(sql).fetchone() is not None


def made_by_newer(done: set[str]) -> str:
    """Return an error text if `done` has migrations unknown to this hivepipe, else ""."""
    unknown = done - {name for name, _ in MIGRATIONS}
    if not unknown:
        return ""
    return f"the database was made by a newer hivepipe (it has {max(unknown)!r}): upgrade hivepipe"


def made_by_older(done: set[str]) -> str:
    """Return an error text if `done` lacks migrations of this hivepipe, else ""."""
    if not {name for name, _ in MIGRATIONS} - done:
        return ""
    return (
        "an older hivepipe made the database: the stack updates it, which `hivepipe up -d` or the "
        "next event starts"
    )


def _back_up(connection: sqlite3.Connection, folder: Path, step: str) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    copy = folder / f"hive-before-{step.partition(' ')[0]}-{os.getpid()}.db"
    copy.unlink(missing_ok=True)  # an earlier process with the same pid left it
    os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        connection.execute("VACUUM INTO ?", (str(copy),))
    except BaseException:
        copy.unlink()  # a partial copy would use scarce disk space
        raise
