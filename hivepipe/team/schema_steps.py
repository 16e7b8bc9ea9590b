"""Make and update the server's schema: numbered .sql files, each once, in one transaction each."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hivepipe.errors import TeamError
from hivepipe.files.regular_file import read_text
from hivepipe.team.connection import one

if TYPE_CHECKING:
    import psycopg

_FOLDER = Path(__file__).parent / "schema"
_ROLES = "001_roles.sql"  # the administrator's own rights; the others are the owner's
_RECORDS = """
    CREATE TABLE IF NOT EXISTS hivepipe.schema_steps (
      name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now());
    GRANT SELECT ON hivepipe.schema_steps TO hivepipe_admin, hivepipe_machine, hivepipe_reader
"""
# Written again at each `team init`: they follow the columns that the tables have.
_WRITTEN = "SELECT hivepipe.write_store_functions(), hivepipe.write_read_policies()"


def names() -> list[str]:
    """Return the names of the steps in order."""
    return sorted(each.name for each in _FOLDER.glob("*.sql"))


def apply(connection: "psycopg.Connection[dict[str, Any]]") -> list[str]:
    """Apply the missing steps; return their names. TeamError: a newer hivepipe made the schema."""
    with connection.transaction():
        _take_turn(connection)
        done = applied(connection)
        if unknown := done - {*names()}:
            raise TeamError(
                f"a newer hivepipe made this schema ({max(unknown)}): upgrade hivepipe here"
            )
        missing = [name for name in names() if name not in done]
        for name in missing:
            if name != _ROLES:
                connection.execute("SET LOCAL ROLE hivepipe_owner")
            connection.execute(_script(name))
            connection.execute(_RECORDS)
            connection.execute("INSERT INTO hivepipe.schema_steps VALUES (%s)", (name,))
            connection.execute("RESET ROLE")
        connection.execute("SET LOCAL ROLE hivepipe_owner")
        connection.execute(_WRITTEN)
    return missing


def _take_turn(connection: "psycopg.Connection[dict[str, Any]]") -> None:
    """Wait for another `team init`; any login may take an advisory lock: it is for the first."""
    if one(connection, "SELECT to_regclass('hivepipe.schema_steps')") is None:
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('hivepipe.schema'))")
    else:
        connection.execute("SET LOCAL ROLE hivepipe_owner")
        connection.execute("LOCK TABLE hivepipe.schema_steps IN EXCLUSIVE MODE")
        connection.execute("RESET ROLE")


def applied(connection: "psycopg.Connection[dict[str, Any]]") -> set[str]:
    """Return the names of the steps that the server has."""
    if one(connection, "SELECT to_regclass('hivepipe.schema_steps')") is None:
        return set()
    rows = connection.execute("SELECT name FROM hivepipe.schema_steps").fetchall()
    return {row["name"] for row in rows}


def _script(name: str) -> str:
    return read_text(_FOLDER / name, "utf-8")
