"""Split many writes into short transactions, so that the writer can write in between."""

import time
from collections.abc import Callable, Iterable

from hivepipe.db.database import Database

LONGEST_SECS = 0.01


def write_shortly(db: Database, writes: Iterable[Callable[[], None]]) -> None:
    """Call the writes in order. A transaction has as many writes as fit into LONGEST_SECS.

    Each write is executed before the next one is taken from the iterable. After each transaction
    the lock stays free for as long as it was held, because SQLite has no queue for waiting
    processes. After an error, the earlier transactions stay committed.
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
