"""Who read sessions of others."""

from hivepipe.db.listings import Entry
from hivepipe.reading.team.source import Source
from hivepipe.times import stored_time

# Microseconds, as a whole number: the reader's time zone does not matter.
READS = """
    SELECT (extract(epoch FROM at) * 1000000)::bigint AS at_us, reader, owner, session_id, what
    FROM hivepipe.v_audit ORDER BY at DESC LIMIT %(limit)s
"""


def reads_noted(source: Source, limit: int) -> list[Entry]:
    """Return the newest reads of sessions of whoever reads this."""
    return [read_of(row) for row in source.rows(READS, {"limit": limit})]


def read_of(row: Entry) -> Entry:
    """Return a row of READS with its time as a stored one, `at`."""
    rest = {name: value for name, value in row.items() if name != "at_us"}
    return {"at": stored_time(row["at_us"] * 1000), **rest}
