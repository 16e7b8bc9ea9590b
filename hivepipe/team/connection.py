"""Connections to a team's server. psycopg is imported only where a team is used."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from hivepipe.errors import (
    NEEDS_PACKAGES,
    TeamAwayError,
    TeamDataError,
    TeamError,
    TeamRefusedError,
)
from hivepipe.team.address import Address

if TYPE_CHECKING:
    import psycopg

Connection: TypeAlias = "psycopg.Connection[dict[str, Any]]"

Found = TypeVar("Found")

EXTRA = f"a team {NEEDS_PACKAGES}"
OLDEST_SERVER = 150_000
ENCODING = "UTF8"

_STANDARD = """
    SET DateStyle TO 'ISO'; SET TimeZone TO 'UTC'; SET standard_conforming_strings TO on
"""

# SQLSTATEs of a server that rejects this login or does not have hivepipe's functions
_REFUSED = ("28", "42501", "42883", "3D000", "3F000")

_READ_ONLY = "25006"  # the server is being replaced; psycopg raises InternalError for it
_TOO_LARGE = "54"  # a row exceeds a limit of PostgreSQL; psycopg raises OperationalError for it

# A connection error has no SQLSTATE, and its text may be in any language. The text names the login
# if the server rejects the login, or if the login has too many connections.
_LOGIN = re.compile(r"hivepipe_(machine|reader|invite)_[0-9a-f]{16}")

_UNVERIFIED = "certificate verify failed"  # OpenSSL's reason is not in libpq's text
_REASONS = "it has expired, this machine's clock is wrong, or another authority signed it"

# pgbouncer refuses the login
_NO_LOGIN = ("authentication failed", "not permitted to log in", "no such user")


def is_installed() -> bool:
    return find_spec("psycopg") is not None


def connect(address: Address) -> Connection:
    """Connect; the caller closes it. Raise TeamAwayError, TeamRefusedError or TeamError."""
    if not is_installed():
        raise TeamError(EXTRA)
    import psycopg  # noqa: PLC0415  an extra, 12 MB
    from psycopg.rows import dict_row  # noqa: PLC0415

    with translated():
        made = psycopg.connect(
            **(_compiled_in() | address.parameters()),
            autocommit=True,
            prepare_threshold=None,  # pgbouncer may give each transaction another connection
            row_factory=dict_row,
        )
    try:
        _demand_server(made)
        with translated():
            _use_standards(made)
    except TeamError:
        made.close()
        raise
    return made


def _compiled_in() -> dict[str, str]:
    """Return libpq's compiled-in values, so that no environment variable names another host."""
    from psycopg.pq import Conninfo  # noqa: PLC0415  an extra

    options = [each for each in Conninfo.get_defaults() if each.envvar and each.compiled]
    found = {each.keyword.decode(): (each.compiled or b"").decode() for each in options}
    return found | {"hostaddr": "", "requirepeer": ""}


def _demand_server(made: Connection) -> None:
    """Raise TeamError for an old server, or a database that cannot store every text."""
    if made.info.server_version < OLDEST_SERVER:
        raise TeamError("the server of a team must be PostgreSQL 15 or later")
    found = made.info.parameter_status("server_encoding")
    if found != ENCODING:
        raise TeamError(
            f"this database has the encoding {found}: a team needs one made by "
            f"CREATE DATABASE ... TEMPLATE template0 ENCODING '{ENCODING}'"
        )


def _use_standards(made: Connection) -> None:
    """Set ISO dates, UTC and literal backslashes, whatever server, role or environment set."""
    names = ("DateStyle", "TimeZone", "standard_conforming_strings")
    style, zone, literal = (made.info.parameter_status(name) or "" for name in names)
    if not style.startswith("ISO") or zone not in ("UTC", "Etc/UTC") or literal != "on":
        made.execute(_STANDARD)


@contextmanager
def connected(address: Address) -> Iterator[Connection]:
    """Connect as `connect` does for a block, and translate the server's errors inside it."""
    with connect(address) as connection, translated():
        yield connection


@contextmanager
def translated() -> Iterator[None]:
    """Translate psycopg's errors into TeamErrors; libpq's texts contain no secrets."""
    import psycopg  # noqa: PLC0415  an extra

    try:
        yield
    except psycopg.Error as error:
        lines = (error.diag.message_primary or str(error)).strip().splitlines()
        text = "; ".join(line.strip() for line in lines)
        text = text.replace(_UNVERIFIED, f"{_UNVERIFIED}: {_REASONS}")
        state = error.sqlstate or ""
        if any(words in text for words in _NO_LOGIN):
            raise TeamRefusedError("the login is not valid: revoked, used up, or expired") from None
        if state.startswith(_REFUSED) or (not state and _is_refusal(text)):
            raise TeamRefusedError(text) from None
        if isinstance(error, psycopg.DataError) or state.startswith(_TOO_LARGE):
            raise TeamDataError(text) from None
        if isinstance(error, psycopg.OperationalError) or state in ("", _READ_ONLY):
            raise TeamAwayError(text) from None
        raise TeamError(text) from None


def _is_refusal(text: str) -> bool:
    """Tell whether the text of a connection error says that the server refuses."""
    words = (
        "certificate",
        "does not support SSL",
        "no password supplied",
        "no pg_hba.conf entry",
    )
    names_login = bool(_LOGIN.search(text)) and "too many connections" not in text
    return names_login or any(word in text for word in words)


def one(connection: Connection, sql: str, *values: Any) -> Any:
    """Run a query; return the first column of its first row."""
    return first(connection.execute(sql, values))


def one_meanwhile(
    connection: Connection, sql: str, values: Sequence[object], meanwhile: Callable[[], Found]
) -> tuple[Any, Found]:
    """Send a query with parameters $1, $2 etc., and call `meanwhile` before its result is read.

    Return the JSON of the first column of the first row, and the result of `meanwhile`. psycopg's
    pipeline is not used, because it ends with a Flush after the Sync. For this Flush pgbouncer
    would reserve a server connection, and no answer would release it.
    """
    from psycopg import errors, generators  # noqa: PLC0415  an extra
    from psycopg.pq import ExecStatus  # noqa: PLC0415

    libpq, encoding = connection.pgconn, connection.info.encoding
    libpq.send_query_params(sql.encode(), [str(value).encode(encoding) for value in values])
    connection.wait(generators.send(libpq))
    try:
        found = meanwhile()
    finally:
        result = connection.wait(generators.fetch_many(libpq))[-1]
    if result.status != ExecStatus.TUPLES_OK:
        raise errors.error_from_result(result, encoding)
    return json.loads(result.get_value(0, 0) or b"null"), found


def first(cursor: "psycopg.Cursor[dict[str, Any]]") -> Any:
    """Return the first column of the next row, or None if there is no further row."""
    row = cursor.fetchone()
    return next(iter(row.values())) if row else None
