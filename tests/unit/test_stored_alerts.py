"""The history of alerts in the store."""

import time

from hivepipe.db.alerts import active_alerts, end_alert, raise_alert
from hivepipe.db.database import Database
from hivepipe.times import stored_time


def ago(secs: float) -> str:
    return stored_time(time.time_ns() - round(secs * 10**9))


def test_an_alert_ends_although_the_clock_was_set_back_after_it(db: Database) -> None:
    raise_alert(db, "disk", "the disk is full", ago(-3600))
    end_alert(db, "disk", ago(1))
    assert active_alerts(db.path) == {}


def test_a_late_end_does_not_end_the_next_alert(db: Database) -> None:
    raise_alert(db, "disk", "the disk is full", ago(5))
    end_alert(db, "disk", ago(10))
    assert [*active_alerts(db.path)] == ["disk"]
