"""A database with the schema of an older release while jobs wait, and a kill during its upgrade."""

import sqlite3
from random import Random

from hivepipe.db import migrations
from hivepipe.files.sqlite_file import statements
from tests.faults.injections.arena import Arena
from tests.faults.injections.kills import handing_over, kill_at
from tests.faults.injections.rounds import Fault
from tests.faults.injections.wave import Wave

NAMES = [name for name, _ in migrations.MIGRATIONS]
OLD = (NAMES[0], NAMES[len(NAMES) // 2], NAMES[-2])
KILLED = "writer: backup made"


def grow_old(arena: Arena, wave: Wave, step: str, rng: Random) -> str:
    """Make the writer find a database of an older schema."""
    arena.start_over()
    last = step if step in OLD else rng.choice(OLD)
    _make_old(arena, NAMES.index(last) + 1)
    if step == KILLED:
        hit = kill_at(arena, wave, step, rng)
        return hit if _names(arena) == NAMES[: NAMES.index(last) + 1] else ""
    with handing_over(arena, wave, rng):
        arena.keep("writer")
    arena.settle_all()
    backups = list((arena.home.database.parent / "backups").iterdir())
    return last if _names(arena) == NAMES and backups else ""


def _make_old(arena: Arena, steps: int) -> None:
    """Make a database with the first migrations only."""
    connection = sqlite3.connect(arena.home.database, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    for statement in statements(migrations._RECORDS):
        connection.execute(statement)
    for name, script in migrations.MIGRATIONS[:steps]:
        connection.executescript(script)
        connection.execute("INSERT INTO schema_migrations VALUES (?, '2026-01-01')", (name,))
    connection.close()


def _names(arena: Arena) -> list[str]:
    return sorted(row["id"] for row in arena.home.rows("SELECT id FROM schema_migrations"))


FAULTS = (Fault("a schema of an older release", (*OLD, KILLED), grow_old),)
