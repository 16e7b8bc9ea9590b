"""Jobs and events of a day in random orders give the same, correct database."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hivepipe.errors import MissingParentError
from hivepipe.jobs.envelope import Envelope, read_envelope
from hivepipe.operations.declared import slow_queue
from hivepipe.worker.group_commit import commit_batch
from tests.faults import oracle
from tests.faults.oracle import Fired
from tests.payloads import SESSION_END, changed
from tests.rounds import ASKED_ROUNDS, SEED
from tests.store_scene import new_database

PROJECT = "/home/ana/shop"
SWARM = "swarm-0123456789abcdef"
ORDERS = 100 if ASKED_ROUNDS >= 20 else 20  # orders of a day's jobs
LONGEST = 50  # rounds of retries for jobs without their parent


def jobs_of(events: Sequence[Fired]) -> list[Envelope]:
    """Return the jobs that write; slow work is not part of a transaction."""
    known = {}
    for sent in oracle.messages(events, PROJECT, SWARM):
        for message in sent:
            known[message.id] = read_envelope(message.envelope)
    return [job for job in known.values() if slow_queue(job.operation) is None]


def settled(
    path: Path, jobs: Sequence[Envelope], batch: int = 1
) -> dict[str, list[dict[str, Any]]]:
    """Execute jobs in this order, `batch` in a transaction; retry those without their parent."""
    db = new_database(path)
    waiting = list(jobs)
    for _ in range(LONGEST):
        again = []
        for at in range(0, len(waiting), batch):
            outcome = commit_batch(db, waiting[at : at + batch])
            for index, error in outcome.failed.items():
                assert isinstance(error, MissingParentError), error
                again.append(waiting[at + index])
        waiting = again
        if not waiting:
            break
    assert not waiting, Counter(job.operation for job in waiting)
    names = [r["name"] for r in db.rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = {name: [dict(row) for row in db.rows(f"SELECT * FROM {name}")] for name in names}
    db.close()
    for name in ("session_logs", "prompts", "skill_uses"):
        for row in found[name]:
            del row["id"]  # the order of arrival
    found["applied"] = [{"job_id": row["job_id"]} for row in found["applied"]]
    del found["schema_migrations"]
    return found


def assert_orders_give_one_database(
    events: Sequence[Fired], folder: Path, orders: int, seed: int
) -> None:
    jobs = jobs_of(events)
    wanted = oracle.expected(events, PROJECT, SWARM)
    in_order = settled(folder / "in-order.db", jobs)
    said = oracle.differences(wanted, oracle.comparable(in_order))
    assert not said, "in order, against the oracle:\n" + "\n".join(said[:10])
    assert sorted(r["job_id"] for r in in_order["applied"]) == sorted(job.id for job in jobs)
    tables: Counter[str] = Counter()
    example: list[str] = []
    for number in range(orders):
        rng = random.Random(seed + number)
        shuffled = list(jobs)
        rng.shuffle(shuffled)
        found = settled(folder / f"order{number}.db", shuffled, rng.choice((20, 50, 200)))
        said = oracle.differences(in_order, found)
        tables.update({line.split(" ", 1)[0] for line in said})
        example = example or said
    assert not tables, f"of {orders} orders, tables that differ: {dict(tables)}\n" + "\n".join(
        line[:400] for line in example[:10]
    )


def test_one_day_in_random_orders_gives_one_database(tmp_path: Path) -> None:
    """All writes commute."""
    assert_orders_give_one_database(oracle.mix(SEED, 70).all, tmp_path, ORDERS, SEED)


def test_a_job_that_is_executed_twice_counts_once(tmp_path: Path) -> None:
    """This includes jobs that only count, which nothing but `applied` protects."""
    jobs = jobs_of(oracle.mix(SEED, 70).all)
    counted = {"operation": "count_dropped", "payload": {"what": "events", "number": 3}}
    nobodys = {"operation": "activate_session", "payload": {}, "session": "", "instance": "new"}
    jobs += [replace(jobs[0], id=f"own{n}", **said) for n, said in enumerate((counted, nobodys))]
    once = settled(tmp_path / "once.db", jobs)
    counts = {row["name"]: row["value"] for row in once["counters"]}
    assert counts == {"dropped:events": 3, "no_session:activate_session": 1}
    twice = [job for job in jobs for _ in range(2)]
    assert oracle.differences(once, settled(tmp_path / "twice.db", [*twice, *jobs], 50)) == []


def test_starts_in_every_order_give_one_database(tmp_path: Path) -> None:
    """Three starts of one session, the newest of which has neither model nor title."""
    starts = [
        oracle.start(0, "inst-a", model="claude-a", session_title="first"),
        oracle.start(0, "inst-b", model="claude-b", session_title="second"),
        oracle.start(0, "inst-c", model=..., session_title=...),
    ]
    assert_orders_give_one_database(oracle.timed(starts), tmp_path, 12, SEED)


def test_the_later_end_of_a_resumed_agent_counts(tmp_path: Path) -> None:
    """The later end counts, and the time to live starts there."""
    session = oracle.SESSIONS[0]
    events = oracle.timed(
        [
            oracle.start(0, "inst-a"),
            oracle.agent(1, session, "inst-a", "async"),
            oracle.subagent_stop("a00001", session, "inst-a"),
            oracle.subagent_stop("a00001", session, "inst-a"),
            oracle.prompt(4, session, "inst-a"),
        ]
    )
    assert_orders_give_one_database(events, tmp_path, 12, SEED)
    (row,) = oracle.expected(events, PROJECT, SWARM)["agents"]
    assert row["completed_at"] == events[3].time


@pytest.mark.parametrize("last", ["Stop", "SessionEnd"])
def test_the_first_event_of_an_instance_may_end_the_turn(tmp_path: Path, last: str) -> None:
    """Hooks were installed in a running session, whose next event ends its turn or itself."""
    session = oracle.SESSIONS[0]
    events = {
        "Stop": oracle.stop(1, session, "inst-a", background_tasks=[]),
        "SessionEnd": Fired(changed(SESSION_END, session_id=session), "inst-a"),
    }
    found = settled(tmp_path / "x.db", jobs_of(oracle.timed([events[last]])))
    assert found["sessions"][0]["status"] == {"Stop": "paused", "SessionEnd": "ended"}[last]


def test_the_oracle_sees_a_difference() -> None:
    """A comparison that finds no difference has to be able to find one."""
    rows = oracle.expected(oracle.mix(SEED, 70).all, PROJECT, SWARM)
    other = json.loads(json.dumps(rows))
    other["agents"][0]["status"] = "running"
    del other["prompts"][0]
    assert len(oracle.differences(rows, other)) == 3
    other = {"sessions": [{**row, "weather": "fair"} for row in rows["sessions"]]}
    said = oracle.differences({"sessions": rows["sessions"]}, other)
    assert said == ["sessions: add `weather` to tests/faults/oracle.py"]
    assert all(rows[table] for table in rows if table != "counters")


def test_a_fork_whose_start_names_its_parent_leaves_the_parent_unchanged(tmp_path: Path) -> None:
    """Up to some version after 2.1.197 a fork's SessionStart names its parent."""
    parent, fork = oracle.SESSIONS[:2]
    ended = Fired(changed(SESSION_END, session_id=parent), "inst-a")
    events = oracle.timed(
        [
            oracle.start(0, "inst-a"),
            ended,
            oracle.start(0, "inst-b", source="resume"),
            oracle.prompt(1, fork, "inst-b"),
        ]
    )
    before = settled(tmp_path / "before.db", jobs_of(events[:2]))["sessions"][0]
    jobs = jobs_of(events)
    came_before = len(jobs_of(events[:2]))
    for number in range(6):
        late = jobs[came_before:]
        random.Random(SEED + number).shuffle(late)
        found = settled(tmp_path / f"{number}.db", [*jobs[:came_before], *late])["sessions"]
        (row,) = [each for each in found if each["id"] == parent]
        for name in ("status", "ended_at", "end_reason", "source"):
            assert row[name] == before[name], name


@pytest.mark.parametrize("busy", [False, True])
def test_a_compaction_leaves_the_status_of_a_session(tmp_path: Path, busy: bool) -> None:
    session = oracle.SESSIONS[0]
    prompted = oracle.prompt(2, session, "inst-a")
    waits = oracle.stop(2, session, "inst-a", background_tasks=[])
    last = prompted if busy else waits
    compacted = oracle.start(0, "inst-a", source="compact")
    jobs = jobs_of(oracle.timed([oracle.start(0, "inst-a", source="startup"), last, compacted]))
    for number in range(6):
        random.Random(SEED + number).shuffle(jobs)
        (row,) = settled(tmp_path / f"{number}.db", jobs)["sessions"]
        assert (row["status"], row["source"]) == ("active" if busy else "paused", "startup")


def test_titles_and_models_come_from_every_source(tmp_path: Path) -> None:
    """A title of the user outweighs one of Claude; the model is that of the last message."""
    session, time_ns = oracle.SESSIONS[0], oracle.FIRST_NS
    events = [oracle.start(0, "inst-a", model="claude-a", session_title=...)]
    started = jobs_of(oracle.timed(events))

    def usage_job(number: int, **payload: Any) -> Envelope:
        job = {"operation": "record_usage", "payload": {"messages": [], **payload}}
        return replace(started[0], id=f"usage-{number}", event_time_ns=time_ns + number, **job)

    def titles(**said: Any) -> dict[str, Any]:
        return {"session": session, "titles": {k.replace("_", "-"): v for k, v in said.items()}}

    by_claude = [usage_job(5, said=titles(ai_title=("A first", 3))),
                 usage_job(4, said=titles(ai_title=("Another", 9)))]  # fmt: skip
    by_user = [usage_job(10**12, said=titles(custom_title=("Fine name", 4)))]
    message = {"message": "m", "request": "r", "session": session, "agent": "", "speed": "",
               "region": "", "sidechain": False, "replay": False, "tokens": [1, 1, 0, 0, 0, 0],
               "time": "2999-01-01T00:00:00.000Z", "model": "claude-b"}  # fmt: skip
    used = usage_job(6, messages=[message])
    for number, (more, title) in enumerate((([], "Another"), (by_user, "Fine name"))):
        for order in range(4):
            late = [*by_claude, *more, used]
            random.Random(SEED + order).shuffle(late)
            found = settled(tmp_path / f"{number}-{order}.db", [*started, *late])
            (row,) = found["sessions"]
            assert (row["objective"], row["model"]) == (title, "claude-b")
