"""Read the archived lines of a session from the team's segments.

The server returns nothing before the audit entry of the read is committed. So the caller's
connection, that of a reader, must not be in a transaction.
"""

from collections.abc import Iterator
from functools import cached_property
from io import BytesIO
from typing import Any, NamedTuple

from hivepipe.errors import TeamError
from hivepipe.team.archives import place
from hivepipe.team.archives.cipher import Cipher, kept_cipher
from hivepipe.team.archives.cutting import opened, place_of
from hivepipe.team.archives.stores import Bucket, bucket_of
from hivepipe.team.connection import Connection, one, translated


class TeamArchive(NamedTuple):
    """The archive of a session (`agent_id` is "") or of one of its subagents, and its segments."""

    name: str
    agent_id: str
    agent_type: str
    started_at: str
    segments: list[dict[str, Any]]

    @property
    def length(self) -> int:
        """Return the number of bytes of the archive's lines."""
        return int(self.segments[-1]["last"])


def archives_of_session(connection: Connection, home: int, session: str) -> list[TeamArchive]:
    """Return the archives of a session, the session's own first.

    Raise TeamRefusedError if the reader has no right to see the session.
    """
    _note(connection, home, session)
    sql = "SELECT row FROM hivepipe.session_segments(%s, %s) AS row"
    found: dict[str, TeamArchive] = {}
    with translated():
        for each in connection.execute(sql, (home, session)).fetchall():
            row = each["row"]
            head = {name: row[name] for name in ("name", "agent_id", "agent_type", "started_at")}
            found.setdefault(row["name"], TeamArchive(**head, segments=[])).segments.append(row)
    return [*found.values()]


def placed_lines(
    connection: Connection, archive: TeamArchive, begin: int = 0
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of an archive that begin at `begin` or later, with their offsets.

    Raise TeamError if a segment is missing, changed or encrypted with a key that this user does not
    have.
    """
    source = Contents(connection)
    reached = 0
    for row in archive.segments:
        if row["first"] != reached:
            raise TeamError(f"{archive.name} has a gap at byte {reached}")
        reached = row["last"]
        if reached > begin:
            yield from _placed(source.lines(archive.name, row), row["first"], begin)


def _placed(lines: bytes, offset: int, begin: int) -> Iterator[tuple[int, bytes]]:
    for line in BytesIO(lines):
        if offset >= begin:
            yield offset, line
        offset += len(line)


def _note(connection: Connection, home: int, session: str) -> None:
    """Write an audit entry for a read. When the entry expires, a long read needs another entry."""
    with translated():
        connection.execute("SELECT hivepipe.note_read(%s, %s, 'archive')", (home, session))


class Contents:
    """Reads segments from PostgreSQL or from the bucket, which is opened at first use."""

    def __init__(self, connection: Connection, *, is_administrator: bool = False) -> None:
        self._connection = connection
        self._is_administrator = is_administrator

    def lines(self, name: str, row: dict[str, Any]) -> bytes:
        cipher = self._cipher_named(row["cipher"]) if row["cipher"] else None
        where = place_of(row["home"], name)
        return opened(self._content(row), cipher, where, row["first"], row["last"])

    def _content(self, row: dict[str, Any]) -> bytes:
        with translated():
            if row["object"]:
                return self._bucket.get(row["object"], row["hash"])
            content = self._of_database(row)
        if content is None:
            raise TeamError("the segment has been deleted meanwhile")
        return bytes(content)

    def _of_database(self, row: dict[str, Any]) -> bytes | None:
        sql = "SELECT hivepipe.export_content(%s, %s)"
        values: tuple[Any, ...] = (row["home"], row["hash"])
        if not self._is_administrator:
            _note(self._connection, row["home"], row["session_id"])
            sql = "SELECT hivepipe.segment_content(%s, %s, %s)"
            values = (row["home"], row["session_id"], row["hash"])
        found: bytes | None = one(self._connection, sql, *values)
        return found

    @cached_property
    def _bucket(self) -> Bucket:
        store = one(self._connection, "SELECT hivepipe.archive_store()")
        return bucket_of(self._connection, place.parse(store))

    @cached_property
    def _cipher(self) -> Cipher | None:
        return kept_cipher()

    def _cipher_named(self, name: str) -> Cipher:
        if self._cipher is None or self._cipher.name != name:
            raise TeamError(
                f"it is encrypted with the key {name}: run `hivepipe team archive-key --show` on "
                "the machine that sent it, and `hivepipe team archive-key --set` here"
            )
        return self._cipher
