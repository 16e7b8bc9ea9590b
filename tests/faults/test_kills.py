"""kill -9 of the writer at named points and at random moments: every effect once, nothing held."""

import itertools
import json
import signal
import threading
import time

from tests.conftest import QUEUES, until
from tests.faults import oracle
from tests.faults.harness import SEED, Bench, random_of, rounds

KILLS = rounds(5)
POINTS = {"executed": "between claim and commit", "committed": "between commit and acknowledgement"}


def claimed_ids(bench: Bench) -> set[str]:
    """Name the jobs that a writer holds."""
    members = [m for queue in QUEUES for m in bench.redis.zrange(f"rq:wip:{queue}", 0, -1)]
    return {member.decode().partition(":")[0] for member in members}


def applied_ids(bench: Bench) -> set[str]:
    """Name the jobs whose effect is committed."""
    return {row["job_id"] for row in bench.home.rows("SELECT job_id FROM applied")}


def test_kills_at_named_points(bench: Bench) -> None:
    """Half of them between claim and commit, half between commit and acknowledgement."""
    events = oracle.mix(SEED, 20 * KILLS).all
    sent = oracle.messages(events, bench.project, bench.swarm)
    order = list(POINTS) * KILLS
    random_of("points").shuffle(order)
    hits = dict.fromkeys(POINTS, 0)
    size = len(sent) // len(order)
    for number, point in enumerate(order):
        for messages in sent[number * size : (number + 1) * size]:
            bench.send(messages)
        before = applied_ids(bench)
        writer = bench.writer(pause=point)
        writer.reached(point)
        running = claimed_ids(bench)
        after = applied_ids(bench)
        if point == "executed":
            assert running - after, "every claimed job had had its effect before"
            assert after == before
        else:
            assert running & after, "nothing claimed was committed"
        assert writer.end(signal.SIGKILL) == -signal.SIGKILL
        assert claimed_ids(bench) == running
        hits[point] += 1
        if number % 4 == 3:  # so that what comes again never fills a claim
            between = bench.writer()
            bench.settle(between)
            between.end(signal.SIGKILL)
    for messages in sent[len(order) * size :]:
        bench.send(messages)
    writer = bench.plain_writer()
    bench.settle(writer)
    print({POINTS[point]: count for point, count in hits.items()})
    assert hits == dict.fromkeys(POINTS, KILLS)
    assert bench.dead() == {}
    bench.assert_tables(events)
    bench.assert_accounts(oracle.job_count(events))


def test_kills_at_random_moments(bench: Bench) -> None:
    """Within a second after the first claim, most of them at once, while jobs keep coming."""
    rng = random_of("moments")
    events = oracle.mix(SEED + 1, 400 * KILLS).all
    sent = oracle.messages(events, bench.project, bench.swarm)
    backlog = 350  # events, several claims' worth
    rest = iter(sent)
    stopped = threading.Event()
    turn = threading.Lock()  # the order of the events is the oracle's

    def feed() -> None:
        while not stopped.wait(0.02):
            hand_over(1)

    def hand_over(count: int) -> None:
        with turn:
            for messages in itertools.islice(rest, count):
                bench.send(messages)

    feeder = threading.Thread(target=feed)
    feeder.start()
    held = 0
    for _ in range(KILLS):
        hand_over(backlog)
        writer = bench.writer()
        writer.reached("first-claim")
        time.sleep(rng.random() * rng.choice((0.0, 0.004, 1.0)))
        assert writer.end(signal.SIGKILL) == -signal.SIGKILL
        held += bench.accounts["running"] > 0
    stopped.set()
    feeder.join()
    hand_over(len(sent))
    writer = bench.plain_writer()
    bench.settle(writer)
    print(f"{held} of {KILLS} killed writers held jobs")
    assert held > 0, "no kill hit anything"
    assert bench.dead() == {}
    bench.assert_tables(events)
    bench.assert_accounts(oracle.job_count(events))


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
