"""How long a team keeps rows: the server drops older months, machines do not send them again.

The server's clock says which month it is. Whoever connects as a machine has it drop the next part
that is due; an administrator has it drop all of them.
"""

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from hivepipe.errors import TeamError
from hivepipe.team.batches import Batch, Item
from hivepipe.team.connection import one, translated
from hivepipe.team.shared_rows import FAR_PAST

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[dict[str, Any]]

# The times that rows of tables without months go by
_TIMES = {
    "sessions": "updated_at",
    "instance_sessions": "last_seen",
    "agents": "created_at",
    "activity": "last_active_at",
    "cost_states": "created_at",
    "summaries": "made_at",
}

logger = logging.getLogger("hivepipe.uplink")


class Retention(NamedTuple):
    """The whole months that are kept, 0: all, and the first day that is kept.

    `dropped_before`: the server dropped what is older. `added`: how often more months were kept
    than before; then all rows are sent again.
    """

    months: int = 0
    kept_from: str = ""
    dropped_before: str = ""
    added: int = 0

    def keeps(self, time: str | None) -> bool:
        """Tell whether what is of this time was not dropped; also what is of no time."""
        return not time or time <= FAR_PAST or time >= self.dropped_before

    def kept_of(self, batch: Batch) -> Batch:
        """Return a batch without the rows that the server dropped."""
        if not self.dropped_before:
            return batch
        items = tuple(each for each in batch.items if not each.values or self.keeps(_time_of(each)))
        return batch._replace(items=items)


def _time_of(item: Item) -> str | None:
    table = item.change.table
    return item.value(_TIMES[table]) if table in _TIMES else item.month


def retention_of(connection: "Connection") -> Retention:
    """Return the team's retention; a server with an older schema keeps all."""
    with translated():
        if one(connection, "SELECT to_regproc('hivepipe.retention')") is None:
            return Retention()
        said = one(connection, "SELECT hivepipe.retention()")
    return Retention(
        int(said["months_kept"]),
        said["kept_from"] or "",
        said["dropped_before"],
        int(said["months_added"]),
    )


def kept_by(connection: "Connection") -> Retention:
    """Return the retention for a machine, and have the server drop the next part that is due."""
    found = retention_of(connection)
    try:
        if found.months:
            drop_next(connection)
    except TeamError as error:  # too long, or rows of others are in the way: another machine's turn
        logger.info("old months are not dropped now: %s", error)
    return found


def drop_next(connection: "Connection") -> dict[str, Any] | None:
    """Drop the oldest month that is not kept; return the proof. None: nothing is left to drop."""
    with translated():
        proof: dict[str, Any] | None = one(connection, "SELECT hivepipe.drop_old()")
    return proof


def drop_all(connection: "Connection") -> Iterator[dict[str, Any]]:
    """Drop all that is not kept; yield a proof for each part."""
    while proof := drop_next(connection):
        yield proof
