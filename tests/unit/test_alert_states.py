"""When an alert is raised and ends, and what is stored of it."""

import time
from typing import Any

import pytest

from hivepipe.alerts.rules import CHECKS_TO_RESOLVE, Alert, Vitals, alerts_of, compare
from hivepipe.db.alerts import active_alerts, end_alert, raise_alert
from hivepipe.db.database import Database
from hivepipe.times import stored_time

FINE: dict[str, Any] = {
    "free_bytes": 200_000_000,
    "oldest_waiting_secs": 59.0,
    "spooled": 3,
    "oldest_spooled_secs": 59.0,
    "store_secs": 59.0,
    "store_reason": "database is locked",
    "effectless": {"update_checkpoint": (19, 19), "update_instance": (1, 21)},
}


def alert_texts(**more: Any) -> dict[str, str]:
    return {alert.name: alert.text for alert in alerts_of(Vitals(**FINE | more))}


def test_a_good_state_is_not_reported() -> None:
    assert alert_texts() == {}
    assert alerts_of(Vitals()) == []


HIVE = "hive workers: 2 waiting for an answer, 1 ended without a result; see `hivepipe hive check`"


RAISED: list[tuple[dict[str, Any], str, str]] = [
    ({"failed": 1}, "failed_jobs", "1 failed job: hivepipe failed list"),
    ({"lacks_scheduler": True}, "no_scheduler",
     "no scheduler is active: periodic jobs do not run (`hivepipe logs scheduler`)"),
    ({"oldest_waiting_secs": 60.0}, "queue_age", "a job has waited for 60 s"),
    ({"oldest_spooled_secs": 7200.0}, "spool", "3 events wait on disk, the oldest for 2 h"),
    ({"free_bytes": 199_999_999}, "disk",
     "200 MB are free on the disk: a full disk loses events"),
    ({"full_disk": "/tmp/x"}, "disk", "no file can be made on the disk of /tmp/x"),
    ({"ratings": "HTTP 401"}, "memory_server",
     "the memory server did not accept ratings: HTTP 401"),
    ({"budget": "20 of 20 calls"}, "budget", "summaries wait: 20 of 20 calls today"),
    # Workers and scheduler cannot register then.
    ({"redis_full": True, "unserved": ("slow",), "lacks_scheduler": True}, "redis_memory",
     "the memory of Redis is full: events wait on disk; silent workers are not seen"),
    ({"unserved": ("slow", "llm")}, "no_worker", "no worker serves slow, llm"),
    ({"store_secs": 180.0}, "store",
     "the database has not been writable for 3 min: database is locked"),
    ({"hive": {"done": 9, "working": 3, "need_input": 2, "died": 1}}, "hive_workers", HIVE),
    ({"effectless": {"update_checkpoint": (1, 20), "update_instance": (1, 21)}}, "no_effect",
     "updates that changed no row within 15 min: 1 of 20 update_checkpoint"),
]  # fmt: skip


@pytest.mark.parametrize(("more", "name", "text"), RAISED)
def test_each_alert_is_raised_at_its_threshold(more: dict[str, Any], name: str, text: str) -> None:
    assert alert_texts(**more) == {name: text}


def test_while_redis_is_away_events_may_wait_on_disk_for_longer() -> None:
    assert alert_texts(redis_answers=False, oldest_spooled_secs=599.0) == {}
    assert list(alert_texts(redis_answers=False, oldest_spooled_secs=600.0)) == ["spool"]


def test_urgent_alerts_come_first() -> None:
    found = alerts_of(Vitals(failed=1, oldest_waiting_secs=100, unserved=("high",), free_bytes=1))
    assert [alert.is_urgent for alert in found] == [True, True, False, False]


def reports_over(checks: str) -> list[str]:
    """Return the reports of a series of checks that found the alert (!) or did not (.)."""
    standing: dict[str, int] = {}
    reports = []
    for number, check in enumerate(checks):
        seen = [Alert("disk", f"check {number}")] if check == "!" else []
        begun, over, standing = compare(seen, standing)
        reports += [f"{number} raised {alert.text}" for alert in begun]
        reports += [f"{number} over" for _ in over]
    return reports


@pytest.mark.parametrize(
    ("checks", "reports"),
    [
        ("!!!!!", ["0 raised check 0"]),
        ("!....", ["0 raised check 0", f"{CHECKS_TO_RESOLVE} over"]),
        ("!.!.!..!.!", ["0 raised check 0"]),
        ("..!...!", ["2 raised check 2", "5 over", "6 raised check 6"]),
        ("......", []),
    ],
)
def test_a_passing_problem_is_reported_once(checks: str, reports: list[str]) -> None:
    assert reports_over(checks) == reports


def test_each_alert_is_resolved_independently() -> None:
    disk, spool = Alert("disk", "full", is_urgent=True), Alert("spool", "waits")
    change = compare([spool], {"disk": CHECKS_TO_RESOLVE - 1, "queue_age": 0})
    assert change.begun == [spool]
    assert change.over == ["disk"]
    assert change.standing == {"queue_age": 1, "spool": 0}
    assert compare([disk], change.standing).begun == [disk]


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
