"""kill -9 of the writer at named points and at random moments: every effect once, nothing held."""

import json
import signal
import time
from collections.abc import Iterator
from typing import Any

from tests.conftest import QUEUES, until
from tests.faults import oracle
from tests.faults.harness import SEED, Bench, random_of, rounds

KILLS = rounds(5)
RANDOM_KILLS = rounds(2)  # of each kind
AT_ONCE = 50
MEAN_SECS = 0.04
LINGER_SECS = 0.02
POINTS = {"executed": "between claim and commit", "committed": "between commit and acknowledgement"}


def claimed_ids(bench: Bench) -> set[str]:
    """Name the jobs that a writer holds."""
    members = [m for queue in QUEUES for m in bench.redis.zrange(f"rq:wip:{queue}", 0, -1)]
    return {member.decode().partition(":")[0] for member in members}


def applied_ids(bench: Bench) -> set[str]:
    """Name the jobs whose effect is committed."""
    return {row["job_id"] for row in bench.home.rows("SELECT job_id FROM applied")}


def test_kills_at_named_points(bench: Bench) -> None:
    """Half of them between claim and commit, half between commit and acknowledgement.

    The jobs come from real hooks, a tenth of the events fired twice; at full rounds 1,000 events.
    """
    events = oracle.mix(SEED, 40 * KILLS)
    order = list(POINTS) * KILLS
    random_of("points").shuffle(order)
    hits = dict.fromkeys(POINTS, 0)
    bench.fire(events.opening, 1)
    size = len(events.bulk) // len(order)
    for number, point in enumerate(order):
        bench.fire(events.bulk[number * size : (number + 1) * size], AT_ONCE)
        before = applied_ids(bench)
        writer = bench.writer(pause=point)
        writer.reached(point)
        running = claimed_ids(bench)
        after = applied_ids(bench)
        if point == "executed":
            assert running - after, "every claimed job had had its effect before"
            assert after == before
        else:
            assert running & (after - before), "nothing claimed was committed"
        assert writer.end(signal.SIGKILL) == -signal.SIGKILL
        assert claimed_ids(bench) == running
        hits[point] += 1
        if number % 4 == 3:  # so that what comes again never fills a claim
            between = bench.writer()
            bench.settle(between)
            between.end(signal.SIGKILL)
    bench.fire(events.bulk[len(order) * size :], AT_ONCE)
    bench.fire(events.closing, 1)
    writer = bench.plain_writer()
    bench.settle(writer)
    print({POINTS[point]: count for point, count in hits.items()})
    assert hits == dict.fromkeys(POINTS, KILLS)
    assert bench.dead() == {}
    bench.assert_tables(events.all, exact_times=False)
    bench.assert_accounts(oracle.job_count(events.all))


def test_kills_at_random_moments(bench: Bench) -> None:
    """Within a second after the first claim, until enough of them have hit each half of a batch.

    A kill counts where the killed writer's own marker and the truth agree: it held jobs, and they
    had had their effect or had not. From commit to acknowledgement it is microseconds: half of the
    writers linger there, and before the commit as well.
    """
    rng = random_of("moments")
    events = oracle.mix(SEED + 1, 400 * max(RANDOM_KILLS, 8)).all
    rest = iter(oracle.messages(events, bench.project, bench.swarm))
    hits = dict.fromkeys(POINTS.values(), 0)
    kills = 0
    while min(hits.values()) < RANDOM_KILLS:
        assert kills < 40 * RANDOM_KILLS, f"after {kills} kills: {hits}"
        top_up(bench, rest, rng.choice((30, 100, 200)))
        writer = bench.writer(linger=kills % 2 * LINGER_SECS)
        writer.reached("first-claim")
        time.sleep(min(rng.expovariate(1 / MEAN_SECS), 1))
        assert writer.end(signal.SIGKILL) == -signal.SIGKILL
        kills += 1
        held, applied = claimed_ids(bench), applied_ids(bench)
        if writer.phase == "claimed" and held - applied:
            hits["between claim and commit"] += 1
        elif writer.phase == "committed" and held & applied:
            hits["between commit and acknowledgement"] += 1
    print(f"{kills} kills at random moments: {hits}")
    for messages in rest:
        bench.send(messages)
    writer = bench.plain_writer()
    bench.settle(writer)
    assert bench.dead() == {}
    bench.assert_tables(events)
    bench.assert_accounts(oracle.job_count(events))


def top_up(bench: Bench, rest: Iterator[list[Any]], jobs: int) -> None:
    """Let so many jobs wait, so that a writer is busy for a while."""
    while bench.to_be_done() < jobs:
        messages = next(rest, None)
        assert messages is not None, "more events are needed"
        bench.send(messages)


def test_a_job_that_kills_its_writer(bench: Bench) -> None:
    """Dead after its third kill; of all the others of its batches every effect is there once."""
    others = oracle.mix(SEED, 60)
    poison = oracle.prompt(666, oracle.SESSIONS[0], "inst-a")
    events = oracle.timed((*others.opening, *others.bulk[:20], poison, *others.bulk[20:]))
    events += others.closing
    deadly = poison.payload["prompt"]
    bench.push(events)
    starts = 0
    while not bench.is_settled():
        writer = bench.writer(poison=deadly)
        starts += 1
        assert starts < 10, bench.accounts
        until(lambda: bench.is_settled() or not writer.is_running, "neither died nor done")  # noqa: B023
        if writer.is_running:
            break
        assert writer.end() == -signal.SIGKILL
    assert starts == 4
    assert list(bench.dead().values()) == ["killed its worker three times"]
    (dead,) = bench.dead()
    assert bench.redis.hget(f"rq:job:{dead}", "hp_deaths") == b"3"
    assert not any(bench.redis.zcard(f"rq:wip:{queue}") for queue in QUEUES)
    bench.assert_accounts(oracle.job_count(events), dead=1)
    wanted = oracle.expected(events, bench.project, bench.swarm)
    wanted["prompts"] = [r for r in wanted["prompts"] if r["prompt"] != deadly]
    assert oracle.differences(wanted, oracle.comparable(bench.tables())) == []
    assert deadly not in json.dumps(bench.tables()["prompts"])
