"""The connection for reading a team's server: read-only transactions, limits, notes of reads."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString, cast

from hivepipe.db.listings import Entry
from hivepipe.errors import TeamError, TeamRefusedError
from hivepipe.skills.statistics import local_day as day_of
from hivepipe.team import membership
from hivepipe.team.address import Address
from hivepipe.team.archives.reading import TeamArchive, archives_of_session, placed_lines
from hivepipe.team.connection import connected
from hivepipe.times import ns_of

if TYPE_CHECKING:
    import psycopg
    from psycopg.abc import Params

LONGEST_SECS = 20
MOST_ROWS = 200_000
MOST_COUNTED = 10**10  # of one row
_CANCELED = "statement timeout"
_READS = f"SET TRANSACTION READ ONLY; SET LOCAL statement_timeout = '{LONGEST_SECS}s'"
_TEXTS = "SELECT * FROM hivepipe.hidden_texts(%(table)s, %(homes)s::int[], %(keys)s::text[])"

Key = tuple[int, str]  # home of the server, key of the row


@dataclass(frozen=True)
class Choice:
    """Whose rows are wanted; "": all. Times are stored times, `project` may be a name's end."""

    person: str = ""
    machine: str = ""
    project: str = ""
    since: str = ""
    until: str = ""

    def values(self) -> Entry:
        """Return the values of a query's parameters."""
        return {name: storable(value) for name, value in vars(self).items()}


# Conditions of a query that has v_homes as h, and the session as s
OF_HOMES = """
    (%(person)s::text = '' OR h.person = %(person)s::text)
    AND (%(machine)s::text = '' OR h.machine = %(machine)s::text)
"""
CHOSEN = f"""
    {OF_HOMES} AND (%(project)s::text = '' OR s.project = %(project)s::text
      OR right(s.project, length(%(project)s::text) + 1) = '/' || %(project)s::text)
"""


def storable(text: str) -> str:
    """Return a text that PostgreSQL takes."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def in_range(count: str) -> str:
    """Return the SQL of a count that sums can be made of."""
    return f"LEAST(GREATEST(COALESCE({count}, 0), 0), {MOST_COUNTED})"


def valid_time(text: str | None) -> str:
    """Return a stored time, or "" for a text that is none: other machines wrote it."""
    return text if text and ns_of(text) else ""


def local_day(text: str) -> str:
    """Return the local day of a stored time; "": it is none."""
    return day_of(valid_time(text))


class Source:
    """A team's server, as its reader sees it; `person`: for whom a page reads, "": for itself."""

    def __init__(self, connection: "psycopg.Connection[dict[str, Any]]", person: str = "") -> None:
        """Keep the connection; the caller closes it."""
        self._connection = connection
        self._person = storable(person)
        # What asks without transactions of its own needs `execute` and `info` alone.
        self._asking = cast("psycopg.Connection[dict[str, Any]]", _Asking(connection, self._person))

    def rows(self, sql: str, values: Entry, most: int = MOST_ROWS) -> list[Entry]:
        """Return all rows of a query; TeamError: more than `most`, or it takes too long."""
        with self._transaction(_READS):
            found = self._connection.execute(sql, values).fetchmany(most + 1)
        if len(found) > most:
            raise TeamError(f"the answer has more than {most:,} rows: ask for less, by --since")
        return found

    def noted_rows(self, sql: str, values: Entry) -> list[Entry]:
        """Return the rows of a query that writes notes."""
        with self._transaction(f"SET LOCAL statement_timeout = '{LONGEST_SECS}s'"):
            return self._connection.execute(sql, values).fetchall()

    def note(self, sql: str, *values: object) -> None:
        """Write a note, and commit it."""
        with self._transaction(f"SET LOCAL statement_timeout = '{LONGEST_SECS}s'"):
            self._connection.execute(sql, values)

    def texts(self, table: str, keys: Iterable[Key], what: str) -> dict[Key, Entry]:
        """Return the hidden texts of these rows; a list of them is noted first."""
        wanted = [*keys]
        if not wanted:
            return {}
        homes = [home for home, _ in wanted]
        self.note("SELECT hivepipe.note_list(%s::int[], %s)", sorted({*homes}), what)
        values = {"table": table, "homes": homes, "keys": [key for _, key in wanted]}
        return {(row["home"], row["key"]): row["texts"] for row in self.rows(_TEXTS, values)}

    def archives(self, home: int, session: str) -> list[TeamArchive]:
        """Note that the archives of a session are read, and return them."""
        return archives_of_session(self._asking, home, session)

    def lines(self, archive: TeamArchive, begin: int) -> Iterator[tuple[int, bytes]]:
        """Yield lines of an archive with their offsets, as `placed_lines` does."""
        return placed_lines(self._asking, archive, begin)

    @contextmanager
    def _transaction(self, settings: str) -> Iterator[None]:
        try:
            with self._connection.transaction():
                self._connection.execute(settings)
                _name_person(self._connection, self._person)
                yield
        except Exception as error:
            if _CANCELED not in str(error):
                raise
            raise TeamError(
                f"the team's server took more than {LONGEST_SECS} s: ask for less, by --since"
            ) from None


class _Asking:
    """A connection that asks for a person, each statement in a transaction of its own."""

    def __init__(self, connection: "psycopg.Connection[dict[str, Any]]", person: str) -> None:
        self._connection = connection
        self._person = person
        self.info = connection.info

    def execute(self, sql: LiteralString, values: "Params | None" = None) -> object:
        with self._connection.transaction():
            _name_person(self._connection, self._person)
            return self._connection.execute(sql, values)


def _name_person(connection: "psycopg.Connection[dict[str, Any]]", person: str) -> None:
    """Say until the end of the transaction for whom a page reads; nothing for ""."""
    if person:
        connection.execute("SELECT set_config('hivepipe.person', %s, true)", (person,))


@contextmanager
def opened(person: str = "") -> Iterator[Source]:
    """Connect as this user's reader, or as a page for a person.

    TeamError: no team, no reader, server away or refusing. TeamRefusedError: no such member.
    """
    with connected(membership.page_address() if person else _address()) as connection:
        source = Source(connection, person)
        if person and not source.rows("SELECT id FROM hivepipe.me()", {}):
            raise TeamRefusedError(f"{person} is no member of this team")
        yield source


def _address() -> Address:
    try:
        return membership.reader_address()
    except TeamError:
        if not membership.is_joined():
            raise
        raise TeamError(
            "this machine's login sends rows and reads none: join with an invite to read"
        ) from None
