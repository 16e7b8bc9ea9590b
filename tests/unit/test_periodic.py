"""Slots of periodic jobs, and the two messages of a run: the tick and its job."""

import re

import pytest

from hivepipe.errors import BadEnvelopeError
from hivepipe.events.job_plan import queue_of
from hivepipe.jobs.envelope import read_envelope
from hivepipe.jobs.schedule_table import (
    TICK,
    Periodic,
    extra_job,
    is_periodic_id,
    job_of,
    name_and_slot,
    next_due,
    slot_at,
    tick_of,
)
from hivepipe.operations.declared import OPERATIONS, PERIODIC
from hivepipe.operations.families.retention import CleanupAgents
from hivepipe.worker.scheduler import LOCK_SECS, LONGEST_WAIT_SECS

ROW = Periodic("reaper", 60, "cleanup_agents", "a test")
NOW_NS = 1_795_222_800_123_000_000


@pytest.mark.parametrize(
    ("now", "slot", "due"), [(0.0, 0, 60), (59.9, 0, 60), (60.0, 1, 120), (3600.0, 60, 3660)]
)
def test_a_slot_is_the_time_by_the_interval(now: float, slot: int, due: int) -> None:
    assert slot_at(now, 60) == slot
    assert next_due(now, 60) == due


def test_a_tick_becomes_one_job_named_by_its_slot() -> None:
    tick = read_envelope(tick_of(ROW, 7, NOW_NS).envelope)
    assert (tick.id, tick.operation) == ("tick-reaper", TICK)
    message = job_of(tick)
    assert message.id == "reaper-7"
    job = read_envelope(message.envelope)
    assert (job.id, job.operation, job.event_time_ns) == ("reaper-7", "cleanup_agents", NOW_NS)
    assert job.periodic == "reaper"
    assert job.slot is not None
    assert job.session == ""
    assert message.queue == queue_of(CleanupAgents.priority)


def test_an_extra_run_has_an_id_of_its_own_and_takes_no_slot() -> None:
    message = extra_job("reaper", "cleanup_agents", "session_end", NOW_NS)
    job = read_envelope(message.envelope)
    assert (job.id, job.operation) == (f"reaper-at-{NOW_NS}", "cleanup_agents")
    assert job.payload["trigger"] == "session_end"
    assert job.periodic == "reaper"
    assert job.slot is None


@pytest.mark.parametrize(
    "row",
    [
        ROW._replace(name="Reaper"),
        ROW._replace(name="a-1"),
        ROW._replace(name=""),
        ROW._replace(operation="no_such_operation"),
        ROW._replace(operation=TICK),
    ],
)
def test_a_tick_with_an_unknown_name_is_refused(row: Periodic) -> None:
    with pytest.raises(BadEnvelopeError):
        job_of(read_envelope(tick_of(row, 1, NOW_NS).envelope))


@pytest.mark.parametrize(
    ("job_id", "is_periodic", "found"),
    [
        ("reaper-7", True, ("reaper", 7)),
        ("raise_alerts-29920750", True, ("raise_alerts", 29920750)),
        ("tick-reaper", True, None),
        ("reaper-at-1795222800123000000", True, ("reaper-at", 1795222800123000000)),
        ("0123456789abcdef0123456789abcdef", False, None),
        ("reaper-7x", False, None),
        ("a-b-7", False, None),
    ],
)
def test_the_ids_of_periodic_jobs_are_recognized(
    job_id: str, is_periodic: bool, found: tuple[str, int] | None
) -> None:
    assert is_periodic_id(job_id) is is_periodic
    assert name_and_slot(job_id) == found


def test_the_table_names_operations_that_exist_and_each_row_once() -> None:
    assert len({row.name for row in PERIODIC}) == len(PERIODIC)
    assert TICK not in OPERATIONS
    assert re.fullmatch(r"[a-z]+", TICK)
    for row in PERIODIC:
        assert row.operation in OPERATIONS
        assert row.interval_secs >= (5 if row.fallback_for else 30)
        assert row.fallback_for in ("", "writer", "slow")
        assert row.why
        assert name_and_slot(f"{row.name}-1") == (row.name, 1)


def test_another_scheduler_takes_over_within_a_minute() -> None:
    assert LOCK_SECS + LONGEST_WAIT_SECS < 60
    assert LOCK_SECS > 2 * LONGEST_WAIT_SECS  # a lock that is held does not expire
