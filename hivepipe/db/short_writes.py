"""Many writes of another process than the writer, in transactions so short that it can go on."""

import time
from collections.abc import Callable, Iterable

from hivepipe.db.database import Database

LONGEST_SECS = 0.01


def write_shortly(db: Database, writes: Iterable[Callable[[], None]]) -> None:
    """Call the writes in order, as many in each transaction as fit into LONGEST_SECS.

    A write is called before the next one is taken. After each transaction the lock stays free for
    as long as it was held: SQLite does not queue those who wait. On an error the earlier
    transactions stay.
    """
    left = iter(writes)
    write = next(left, None)
    while write is not None:
        with db.transaction():
            began = time.monotonic()
            while write is not None and time.monotonic() - began < LONGEST_SECS:
                write()
                write = next(left, None)
        if write is not None:
            time.sleep(time.monotonic() - began)
