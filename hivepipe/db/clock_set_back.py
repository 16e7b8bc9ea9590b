"""After the clock was set back, correct the stored times that order events.

Otherwise a session would ignore new events until the clock reaches the old times.
"""

import math
import time

from hivepipe.db.database import Database
from hivepipe.times import stored_time

DAY_NS = 86_400 * 10**9
_ORDERING = {
    "sessions": (
        *("state_time_ns", "checkpoint_time_ns", "last_end_ns", "process_end_ns"),
        *("concluded_ns", "concluded_before_ns"),
    ),
    "instance_sessions": ("assigned_time_ns", "detached_time_ns"),
    "tasks": ("state_time_ns", "progress_time_ns", "assigned_time_ns"),
    "identity_baselines": ("time_ns",),
    "identity_versions": ("time_ns",),
    "hive_workers": ("status_ns",),
}
_EARLIER = "CASE WHEN {0} > :now THEN {0} - :back ELSE {0} END"


class ClockSteps:
    """Backward steps of the clock for which the stored times are not yet corrected.

    A step may be reported repeatedly, and the clock may be set again before the store can be
    written. So the steps are not added up. `_furthest_ns` is the latest boot time that any setting
    of the clock implied. `correct` compares it with the boot time that the clock implies now.
    """

    def __init__(self) -> None:
        self._furthest_ns = -math.inf

    def note(self, back_ns: int) -> None:
        """Record that the clock was set back by `back_ns`."""
        self._furthest_ns = max(self._furthest_ns, _time_at_boot_ns() + back_ns)

    def correct(self, db: Database) -> None:
        """Correct the stored times. After an sqlite3.Error, the caller has to repeat the call."""
        back_ns = self._furthest_ns - _time_at_boot_ns()
        if back_ns > 0:
            move_back(db, time.time_ns(), int(back_ns))
        self._furthest_ns = -math.inf


def _time_at_boot_ns() -> int:
    return time.time_ns() - time.monotonic_ns()


def move_back(db: Database, now_ns: int, back_ns: int) -> None:
    """Move times in the future back by `back_ns`, in one transaction.

    Slots recorded more than a day in the future are deleted: once the clock is set forward again,
    they would hide missing runs from retention.
    """
    with db.transaction():
        a_day_ahead = stored_time(now_ns + DAY_NS)
        db.execute("DELETE FROM slots WHERE executed_at > :at", {"at": a_day_ahead})
        for table, columns in _ORDERING.items():
            earlier = ", ".join(f"{name} = {_EARLIER.format(name)}" for name in columns)
            is_ahead = " OR ".join(f"{name} > :now" for name in columns)
            sql = f"UPDATE {table} SET {earlier} WHERE {is_ahead}"
            db.execute(sql, {"now": now_ns, "back": back_ns})
