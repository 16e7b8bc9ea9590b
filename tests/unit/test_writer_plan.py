"""The SQLite steps that an event costs the writer do not grow with the number of stored rows."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from hivepipe.db.cleanups import verdicts
from hivepipe.db.database import Database
from hivepipe.events import parse_event
from hivepipe.events.job_plan import Context, Count, encode, plan
from hivepipe.jobs.envelope import Envelope, read_envelope
from hivepipe.operations.declared import slow_queue
from hivepipe.worker.group_commit import commit_batch
from tests.payloads import ALL, changed

AT_NS = 1_763_690_400 * 10**9
COUNT = 3_000

# Table -> the values of each of its COUNT rows. `i` is the number of the row.
HISTORY = {
    "sessions (id, status, project)": "'old-' || i, 'ended', '/home/ana/shop'",
    "instances (id, status)": "'i-' || i, 'gone'",
    "instance_sessions (id, session_id, instance_id, status)": (
        "'i-' || i || ':old-' || i, 'old-' || i, 'i-' || i, 'detached'"
    ),
    "agents (id, swarm_id, session_id, status, deleted_at)": (
        "'a-' || i, 'swarm-shop', 'old-' || i, 'completed', '2026-11-01T00:00:00.000Z'"
    ),
    "session_logs (session_id, log_level, job_id)": "'old-' || i, 'INFO', i",
    "prompts (session_id, prompt, job_id)": "'old-' || i, 'x', i",
    "skill_uses (session_id, skill, kind, success, job_id)": "'old-' || i, 'pdf', 'tool', 1, i",
    "applied": "i, i",
    "deleted_sessions": "'gone-' || i, i",
    "forgotten_sessions": "'forgotten-' || i, i",
}


def jobs(session: str) -> list[Envelope]:
    """Return the jobs for the writer that hooks create from every kind of event."""
    return [job for payload in ALL.values() for job in _of_event(payload, session)]


def _of_event(payload: dict[str, object], session: str) -> Iterator[Envelope]:
    event_payload = changed(payload, session_id=session, source="startup")
    event = parse_event(str(payload["hook_event_name"]), json.dumps(event_payload).encode())
    assert event is not None
    context = Context(
        event_time_ns=AT_NS,
        session=session,
        own_session=session,
        instance=f"instance-{session}",
        enters_session=True,
        project="/home/ana/shop",
        swarm="swarm-shop",
        count=Count(True, 1, 1),
    )
    for message in encode(plan(event, context), event, context):
        job = read_envelope(message.envelope)
        if slow_queue(job.operation) is None:
            yield job


def steps(db: Database, work: Callable[[], object]) -> int:
    """Return how many steps SQLite's virtual machine takes for the work."""
    taken = [0]

    def step() -> int:
        taken[0] += 1
        return 0

    db._connection.set_progress_handler(step, 1)
    work()
    db._connection.set_progress_handler(None, 0)
    return taken[0]


def write(db: Database, session: str) -> None:
    assert not commit_batch(db, jobs(session)).failed


def add_history(db: Database) -> None:
    numbers = f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {COUNT})"
    for table, row in HISTORY.items():
        db._connection.execute(f"{numbers} INSERT INTO {table} SELECT {row} FROM n")


def test_the_steps_of_an_event_do_not_grow_with_stored_rows(db: Database) -> None:
    write(db, "first")  # the swarm is made once
    among_few = steps(db, lambda: write(db, "among-few"))
    add_history(db)
    among_many = steps(db, lambda: write(db, "among-many"))
    assert among_many < among_few + COUNT, "no table is read from end to end"


def test_a_cleanup_does_not_read_deleted_agents(db: Database) -> None:
    write(db, "first")
    among_few = steps(db, lambda: verdicts(db, datetime.now(UTC)))
    add_history(db)
    assert verdicts(db, datetime.now(UTC))
    assert steps(db, lambda: verdicts(db, datetime.now(UTC))) < among_few + COUNT
