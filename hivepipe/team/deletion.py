"""Forget a member or a session on the server, and export a member."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hivepipe.errors import TeamError
from hivepipe.team.archives import leftovers
from hivepipe.team.archives.export import exported_archives
from hivepipe.team.connection import Connection, one


class Found(NamedTuple):
    """The member or session that a given name means."""

    kind: str  # member or session
    name: str

    @property
    def described(self) -> str:
        """Return kind and name as text."""
        return f"{self.kind} {self.name}"


def find(connection: Connection, name: str) -> Found:
    """Return the member with a name, or the only session whose id begins with it.

    Raise TeamError if there is none, or if several sessions match.
    """
    if one(connection, "SELECT 1 FROM hivepipe.members WHERE name = %s", name):
        return Found("member", name)
    sessions: list[str] = one(connection, "SELECT hivepipe.sessions_beginning(%s)", name)
    if not sessions:
        raise TeamError(f"the team has no member and no session {name}")
    if len(sessions) > 1:
        some = ", ".join(sessions[:5])
        raise TeamError(f"{len(sessions)} sessions have an id that begins with {name}: {some}")
    return Found("session", sessions[0])


def forget(connection: Connection, found: Found) -> dict[str, Any]:
    """Delete a member or session, vacuum its tables, and return what was deleted where.

    The vacuum also removes deleted texts from PostgreSQL's statistics, except in a table that is
    empty now.
    """
    connection.execute("SET ROLE hivepipe_owner")  # fails before anything is deleted
    proof: dict[str, Any] = one(connection, f"SELECT hivepipe.forget_{found.kind}(%s)", found.name)
    for row in connection.execute("SELECT tbl FROM hivepipe.shared_tables").fetchall():
        connection.execute(f"VACUUM (ANALYZE) hivepipe.{row['tbl']}")
    connection.execute("VACUUM (ANALYZE) hivepipe.archive_contents")
    connection.execute("RESET ROLE")
    proof["places"] |= leftovers.delete_now_or_later(connection)
    return proof


def exported(
    connection: Connection, member: str, folder: Path | None = None
) -> Iterator[dict[str, Any]]:
    """Yield a member's rows and write its archives to a folder. May raise TeamError."""
    number = one(connection, "SELECT id FROM hivepipe.members WHERE name = %s", member)
    if number is None:
        raise TeamError(f"the team has no member {member}")
    tables = connection.execute("SELECT tbl FROM hivepipe.shared_tables ORDER BY tbl").fetchall()
    for name in (*("members", "machines", "homes", "audit"), *(row["tbl"] for row in tables)):
        sql = "SELECT hivepipe.export_member(%s, %s) AS row"
        with connection.transaction(), connection.cursor("export") as rows:
            rows.execute(sql, (number, name))
            for row in rows:
                yield {"table": name, **row["row"]}
    yield from exported_archives(connection, number, folder)
