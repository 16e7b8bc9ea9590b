"""Many writes of another process than the writer, in transactions so short that it can go on."""

import time
from collections import deque
from collections.abc import Callable, Iterable

from hivepipe.db.database import Database

LONGEST_SECS = 0.01


def write_shortly(db: Database, writes: Iterable[Callable[[], None]]) -> None:
    """Call the writes in order, as many in each transaction as fit into LONGEST_SECS.

    After each transaction the lock stays free for as long as it was held: SQLite does not queue
    those who wait. On an error the earlier transactions stay.
    """
    left = deque(writes)
    while left:
        with db.transaction():
            began = time.monotonic()
            left.popleft()()
            while left and time.monotonic() - began < LONGEST_SECS:
                left.popleft()()
        if left:
            time.sleep(time.monotonic() - began)
