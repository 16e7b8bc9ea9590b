"""Create and update the server's schema by numbered .sql files; each is applied once.

A number is missing if later steps replaced everything that the step with this number made.
"""

from pathlib import Path

from hivepipe.errors import TeamError
from hivepipe.files.regular_file import read_text
from hivepipe.team.connection import Connection, one

_FOLDER = Path(__file__).parent / "schema"
_ROLES = "001_roles.sql"  # runs as the administrator, all others as hivepipe_owner
_RECORDS = """
    CREATE TABLE IF NOT EXISTS hivepipe.schema_steps (
      name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now());
    GRANT SELECT ON hivepipe.schema_steps TO hivepipe_admin, hivepipe_machine, hivepipe_reader
"""
_DEADLOCK = "40P01"  # SQLSTATE
# `team init` always generates these functions again, from the current columns of the tables.
_WRITTEN = "SELECT hivepipe.write_store_functions(), hivepipe.write_read_policies()"


def step_names() -> list[str]:
    return sorted(each.name for each in _FOLDER.glob("*.sql"))


def apply(connection: Connection, attempts: int = 5) -> list[str]:
    """Apply the missing steps; return their names. Raise TeamError if the server's schema is newer.

    Readers may cause a deadlock, because each query locks the tables in its own order. After a
    deadlock the steps are applied again.
    """
    try:
        return _apply(connection)
    except Exception as error:
        if getattr(error, "sqlstate", None) != _DEADLOCK or attempts == 1:
            raise
    return apply(connection, attempts - 1)


def _apply(connection: Connection) -> list[str]:
    with connection.transaction():
        _lock_schema(connection)
        done = applied(connection)
        if (newest := max(done, default="")) > step_names()[-1]:
            raise TeamError(f"a newer hivepipe made this schema ({newest}): upgrade hivepipe here")
        missing = [name for name in step_names() if name not in done]
        for name in missing:
            if name != _ROLES:
                connection.execute("SET LOCAL ROLE hivepipe_owner")
            connection.execute(read_text(_FOLDER / name))
            connection.execute(_RECORDS)
            connection.execute("INSERT INTO hivepipe.schema_steps VALUES (%s)", (name,))
            connection.execute("RESET ROLE")
        connection.execute("SET LOCAL ROLE hivepipe_owner")
        connection.execute(_WRITTEN)
    return missing


def _lock_schema(connection: Connection) -> None:
    """Wait until running batches and a concurrent `team init` have ended, and block later ones.

    The advisory lock, which any login could take, is used only before the first schema exists.
    """
    if one(connection, "SELECT to_regclass('hivepipe.schema_steps')") is None:
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('hivepipe.schema'))")
    else:
        connection.execute("SET LOCAL ROLE hivepipe_owner")
        connection.execute("LOCK TABLE hivepipe.schema_steps, hivepipe.homes IN EXCLUSIVE MODE")
        connection.execute("RESET ROLE")


def applied(connection: Connection) -> set[str]:
    """Return the names of the steps that were applied to the server."""
    if one(connection, "SELECT to_regclass('hivepipe.schema_steps')") is None:
        return set()
    rows = connection.execute("SELECT name FROM hivepipe.schema_steps").fetchall()
    return {row["name"] for row in rows}
