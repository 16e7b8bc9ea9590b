"""The connection for reading a team's server: read-only transactions, limits, audit entries."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, LiteralString, cast

from hivepipe.db.listings import Entry
from hivepipe.errors import TeamAwayError, TeamError, TeamRefusedError
from hivepipe.skills.statistics import local_day as day_of
from hivepipe.team import membership
from hivepipe.team.address import Address
from hivepipe.team.archives.reading import TeamArchive, archives_of_session, placed_lines
from hivepipe.team.connection import Connection, connected
from hivepipe.team.shared_rows import clean
from hivepipe.times import ns_of

if TYPE_CHECKING:
    from psycopg.abc import Params

LONGEST_SECS = 20
_LESS = "ask for less, such as fewer days or one person"  # by options, or fields of a page
MOST_ROWS = 200_000
MOST_COUNTED = 10**10  # highest valid count in one row
_CANCELED = "57014"  # SQLSTATE: the text may be in any language
_READS = f"SET TRANSACTION READ ONLY; SET LOCAL statement_timeout = '{LONGEST_SECS}s'"
_TEXTS = "SELECT * FROM hivepipe.hidden_texts(%(table)s, %(homes)s::int[], %(keys)s::text[])"

Key = tuple[int, str]  # home on the server, key of the row


@dataclass(frozen=True)
class Choice:
    """A filter of rows ("" matches all); `project` is the end of a name, times are as stored."""

    person: str = ""
    machine: str = ""
    project: str = ""
    since: str = ""
    until: str = ""

    def values(self) -> Entry:
        """Return the filter as the parameters of a query."""
        return {name: clean(value) for name, value in vars(self).items()}


# Conditions of a query with v_homes as h and the session as s
OF_HOMES = """
    (%(person)s::text = '' OR h.person = %(person)s::text)
    AND (%(machine)s::text = '' OR h.machine = %(machine)s::text)
"""
CHOSEN = f"""
    {OF_HOMES} AND (%(project)s::text = '' OR s.project = %(project)s::text
      OR right(s.project, length(%(project)s::text) + 1) = '/' || %(project)s::text)
"""


def in_range(count: str) -> str:
    """Return SQL that clamps the SQL expression `count`, so that sums do not overflow."""
    return f"LEAST(GREATEST(COALESCE({count}, 0), 0), {MOST_COUNTED})"


def valid_time(text: str | None) -> str:
    """Return a time in the store's form, or "" if the time, from another machine, is not valid."""
    return text if text and ns_of(text) else ""


def local_day(text: str) -> str:
    """Return the local day of a time in the store's form, or "" if the time is not valid."""
    return day_of(valid_time(text))


class Source:
    """Reads a team's server for this machine's user or, on a page, for the member `person`."""

    def __init__(self, connection: Connection, person: str = "") -> None:
        self._connection = connection
        self._person = clean(person)
        # The archive functions need only `execute` and `info` of a connection.
        self._member_connection = cast(Connection, _MemberConnection(connection, self._person))

    def rows(self, sql: str, values: Entry, most: int = MOST_ROWS) -> list[Entry]:
        """Return all rows of a query; raise TeamError for more than `most`, or after a timeout."""
        with self._transaction(_READS):
            found = self._connection.execute(sql, values).fetchmany(most + 1)
        if len(found) > most:
            raise TeamError(f"the answer has more than {most:,} rows: {_LESS}")
        return found

    def noted_rows(self, sql: str, values: Entry) -> list[Entry]:
        """Return the rows of a query that itself writes an audit entry for this read."""
        with self._transaction(f"SET LOCAL statement_timeout = '{LONGEST_SECS}s'"):
            return self._connection.execute(sql, values).fetchall()

    def note(self, sql: str, *values: object) -> None:
        """Run SQL that writes an audit entry, and commit the entry."""
        with self._transaction(f"SET LOCAL statement_timeout = '{LONGEST_SECS}s'"):
            self._connection.execute(sql, values)

    def texts(self, table: str, keys: Iterable[Key], what: str) -> dict[Key, Entry]:
        """Write an audit entry that names `what`, then return key -> hidden texts of the row.

        Without `keys` write nothing, and return {}. May raise TeamError.
        """
        wanted = [*keys]
        if not wanted:
            return {}
        homes = [home for home, _ in wanted]
        self.note("SELECT hivepipe.note_list(%s::int[], %s)", sorted({*homes}), what)
        values = {"table": table, "homes": homes, "keys": [key for _, key in wanted]}
        return {(row["home"], row["key"]): row["texts"] for row in self.rows(_TEXTS, values)}

    def archives(self, home: int, session: str) -> list[TeamArchive]:
        """Write an audit entry for a session; return its archives. May raise TeamRefusedError."""
        return archives_of_session(self._member_connection, home, session)

    def lines(self, archive: TeamArchive, begin: int) -> Iterator[tuple[int, bytes]]:
        """Yield lines of an archive with their offsets; errors as in `placed_lines`."""
        return placed_lines(self._member_connection, archive, begin)

    @contextmanager
    def _transaction(self, settings: str) -> Iterator[None]:
        try:
            with self._connection.transaction():
                self._connection.execute(settings)
                _set_person(self._connection, self._person)
                yield
        except Exception as error:
            if getattr(error, "sqlstate", None) != _CANCELED:
                raise
            raise TeamAwayError(
                f"the team's server took more than {LONGEST_SECS} s: {_LESS}"
            ) from None


class _MemberConnection:
    """A connection that runs each statement for a member, in a separate transaction."""

    def __init__(self, connection: Connection, person: str) -> None:
        self._connection = connection
        self._person = person
        self.info = connection.info

    def execute(self, sql: LiteralString, values: "Params | None" = None) -> object:
        with self._connection.transaction():
            _set_person(self._connection, self._person)
            return self._connection.execute(sql, values)


def _set_person(connection: Connection, person: str) -> None:
    """Set the member for whom a page reads, in this transaction; "" means no member."""
    if person:
        connection.execute("SELECT set_config('hivepipe.person', %s, true)", (person,))


@contextmanager
def opened(person: str = "") -> Iterator[Source]:
    """Connect as this user's reader, or as a page for a member.

    Raise TeamError if no team is joined, or there is no reader login, or the server does not
    answer. Raise TeamRefusedError for an unknown member.
    """
    with connected(membership.page_address() if person else _address()) as connection:
        source = Source(connection, person)
        if person and not source.rows("SELECT id FROM hivepipe.me()", {}):
            raise TeamRefusedError(
                f"{person} is not a member of this team: upper and lower case must be as invited"
            )
        yield source


def _address() -> Address:
    try:
        return membership.reader_address()
    except TeamError:
        if not membership.is_joined():
            raise
        raise TeamError(
            "this machine's login can only send rows: join with an invite to read"
        ) from None
