"""After the clock was set forward, nothing expires at once."""

import os
import time
from pathlib import Path

import pytest

from hivepipe.db.database import Database
from hivepipe.db.slots import record_slot
from hivepipe.files.manifest import Manifest
from hivepipe.jobs.args import Args
from hivepipe.jobs.origin import Origin
from hivepipe.operations.job_context import JobContext
from hivepipe.operations.prune import prune
from hivepipe.operations.prune_files import prune_files
from tests.store_scene import new_database


@pytest.fixture
def today() -> int:
    """Today, as a number: the tests may have been collected yesterday."""
    return int(time.time() // 86_400)


@pytest.fixture
def home(tmp_path: Path, today: int) -> Path:
    """A home that was used until today, with an event that waits and an ended alert."""
    manifest = Manifest(str(tmp_path))
    manifest.begin()
    with new_database(tmp_path / "hive.db") as db:
        for name in ("prune", "prune_files"):
            for day in (today - 3, today):
                record_slot(db, name, day, day * 86_400 * 10**9)
        ended = {"name": "disk", "raised_at": "2026-01-01", "ended_at": "2026-01-02"}
        db.insert("alerts", ended)
    event = tmp_path / "spool" / f"{time.time_ns()}_1.json"
    event.parent.mkdir()
    event.write_text("{}")
    os.utime(event)
    return tmp_path


def run(home: Path, day: int) -> tuple[bool, bool]:
    """Run both deletions on a day; tell whether event and alert are left."""
    context = JobContext(str(home), "", lambda _job, _jobs: None)
    for handler in (prune_files, prune):
        name = handler.__name__
        job = Origin(
            id=f"{name}-{day}",
            operation=name,
            event_time_ns=day * 86_400 * 10**9,
            periodic=name,
            slot=day,
        )
        handler(context, job, Args())
        with Database(home / "hive.db") as db:
            record_slot(db, name, day, job.event_time_ns)
    with Database(home / "hive.db") as db:
        alerts = db.rows("SELECT 1 FROM alerts")
    return bool([*(home / "spool").glob("*.json")]), bool(alerts)


def test_nothing_is_deleted_on_the_day_to_which_the_clock_jumps(
    home: Path, today: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hivepipe.operations.prune._horizon", lambda _context, before: before)
    assert run(home, today + 3650) == (True, True)
    assert run(home, today + 2) == (True, False)  # the clock is right again
    assert run(home, today + 3651) == (False, False)  # it was right before
