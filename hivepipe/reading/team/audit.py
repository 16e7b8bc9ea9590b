"""The audit entries: reads of sessions by other members."""

from hivepipe.db.listings import Entry
from hivepipe.reading.team.source import Source
from hivepipe.times import stored_time

# Integer microseconds do not depend on the time zone of the connection.
READS = """
    SELECT (extract(epoch FROM at) * 1000000)::bigint AS at_us, reader, owner, session_id, what
    FROM hivepipe.v_audit ORDER BY at DESC LIMIT %(limit)s
"""


def newest_reads(source: Source, limit: int) -> list[Entry]:
    """Return the newest audit entries that this member may see.

    A member sees who has read the member's own sessions, and an admin sees all entries.
    """
    return [read_of(row) for row in source.rows(READS, {"limit": limit})]


def read_of(row: Entry) -> Entry:
    """Return a row of the query READS, with the time in the store's form as `at`."""
    rest = {name: value for name, value in row.items() if name != "at_us"}
    return {"at": stored_time(row["at_us"] * 1000), **rest}
