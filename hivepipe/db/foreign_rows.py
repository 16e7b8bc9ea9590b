"""Rows that another program wrote into our database, recognised by times without a zone."""

from datetime import UTC, datetime, timedelta

from hivepipe.db.listings import Listings

_FORM = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]"
_SINCE = timedelta(days=2)  # includes 14 hours, because the zone of the times is unknown
_SQL = """
    SELECT (SELECT count(*) FROM agents WHERE created_at GLOB :form AND created_at > :since)
      AS agents,
    (SELECT count(*) FROM sessions WHERE updated_at GLOB :form AND updated_at > :since)
      AS sessions
"""


def count_foreign_rows(store: Listings) -> dict[str, int]:
    """Return table -> number of rows that another program wrote within two days."""
    since = (datetime.now(UTC) - _SINCE).strftime("%Y-%m-%d %H:%M:%S")
    (row,) = store.rows(_SQL, {"form": _FORM, "since": since})
    return {table: number for table, number in row.items() if number}
