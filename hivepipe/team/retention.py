"""Retention of a team's rows: the server drops older months, and machines do not resend them.

The server's clock decides which month it is. For each machine that connects, the server drops one
part of the old rows. For an administrator, it drops all old rows.
"""

import logging
from collections.abc import Iterator
from typing import Any, NamedTuple

from hivepipe.errors import TeamError
from hivepipe.team.batches import Batch, Item
from hivepipe.team.connection import Connection, one, translated
from hivepipe.team.shared_rows import FAR_PAST, SHARED

logger = logging.getLogger("hivepipe.uplink")


class Retention(NamedTuple):
    """The number of whole months to keep (0 for all) and the first day that is kept.

    The server has dropped the rows that are older than `dropped_before`. `added` counts how often
    the number of months was raised. After each raise, all rows are sent again.
    """

    months: int = 0
    kept_from: str = ""
    dropped_before: str = ""
    added: int = 0

    def keeps(self, time: str | None) -> bool:
        """Tell whether rows of this time are kept; rows without a time are always kept."""
        return not time or time <= FAR_PAST or time >= self.dropped_before

    def without_dropped(self, batch: Batch) -> Batch:
        """Return a batch without the rows that the server dropped."""
        if not self.dropped_before:
            return batch
        items = tuple(each for each in batch.items if not each.values or self.keeps(_time_of(each)))
        return batch._replace(items=items)


def _time_of(item: Item) -> str | None:
    return item.month if item.is_by_month else item.value(SHARED[item.change.table].time)


def retention_of(connection: Connection) -> Retention:
    """Return the team's retention; a server with an older schema keeps everything."""
    with translated():
        if one(connection, "SELECT to_regproc('hivepipe.retention')") is None:
            return Retention()
        answer = one(connection, "SELECT hivepipe.retention()")
    return Retention(
        int(answer["months_kept"]),
        answer["kept_from"] or "",
        answer["dropped_before"],
        int(answer["months_added"]),
    )


def apply_retention(connection: Connection) -> Retention:
    """Let the server drop the next part of the old rows, and return the team's retention."""
    found = retention_of(connection)
    try:
        if found.months:
            drop_next(connection)
    except TeamError as error:  # a timeout or a held lock: the next machine tries again
        logger.info("old months are not dropped now: %s", error)
    return found


def drop_next(connection: Connection) -> dict[str, Any] | None:
    """Drop the oldest part of the old rows; return what was deleted, or None without old rows."""
    with translated():
        proof: dict[str, Any] | None = one(connection, "SELECT hivepipe.drop_old()")
    return proof


def drop_all(connection: Connection) -> Iterator[dict[str, Any]]:
    """Drop all old rows, part by part; yield what the server deleted in each part."""
    while proof := drop_next(connection):
        yield proof
