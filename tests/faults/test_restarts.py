"""Restarts of the writer under load lose and double nothing."""

import signal
import threading
import time

from tests.conftest import QUEUES, until
from tests.faults import oracle
from tests.faults.harness import Bench, random_of
from tests.rounds import rounds

RESTARTS = rounds(3)
EVENTS_A_SECOND = 83  # each edit has one job in each of three queues, so 250 jobs/s
MOST_EVENTS = 1000 * RESTARTS


class Load(threading.Thread):
    """Edits of one session at a steady rate until `end`; counts what it has sent."""

    def __init__(self, bench: Bench) -> None:
        super().__init__()
        self.bench = bench
        session = oracle.SESSIONS[0]
        edits = [oracle.edit(n, session, "inst-a") for n in range(MOST_EVENTS)]
        self.events = oracle.timed([oracle.start(0, "inst-a"), *edits])
        self.sent = 0
        self.secs = 0.0
        self.failed: Exception | None = None
        self._done = threading.Event()

    def run(self) -> None:
        began = time.monotonic()
        try:
            for messages in oracle.messages(self.events, self.bench.project, self.bench.swarm):
                late = began + self.sent / EVENTS_A_SECOND - time.monotonic()
                if self._done.wait(max(late, 0)):
                    break
                self.bench.send(messages)
                self.sent += 1
        except Exception as error:  # noqa: BLE001  the test reports it
            self.failed = error
        self.secs = time.monotonic() - began

    def end(self) -> tuple[oracle.Fired, ...]:
        self._done.set()
        self.join()
        assert self.failed is None
        assert self.sent < len(self.events), "the load ended before the restarts did"
        return self.events[: self.sent]


def test_restarts_under_load_lose_and_double_nothing(bench: Bench) -> None:
    rng = random_of("restarts")
    load = Load(bench)
    load.start()
    for _ in range(RESTARTS):
        writer = bench.writer()
        writer.wait_for_point("first-claim")
        time.sleep(rng.random() * rng.choice((0.01, 0.3)))
        assert writer.end(signal.SIGTERM) == 0, writer.text[-2000:]
        assert bench.accounts["running"] == 0
    writer = bench.writer()
    writer.wait_for_point("first-claim")
    events = load.end()
    bench.settle(writer)
    print(f"{RESTARTS} restarts, {3 * load.sent / load.secs:.0f} jobs/s")
    bench.assert_tables(events)
    bench.assert_accounts(oracle.job_count(events))
    totals = [row["operation_count"] for row in bench.tables()["instance_sessions"]]
    assert totals == [len(events) - 1]
    assert writer.end() == 0
    for queue in QUEUES:
        assert bench.redis.zcard(f"rq:wip:{queue}") == 0


def test_a_writer_waits_for_redis_at_its_start(bench: Bench) -> None:
    """The writer waits for Redis and then works."""
    events = oracle.timed([oracle.start(0, "inst-a")])
    bench.push(events)
    bench.server.end(signal.SIGKILL)
    writer = bench.plain_writer()
    time.sleep(1.5)
    assert writer.is_running, writer.text
    bench.server.start()
    bench.settle(writer)
    bench.assert_tables(events)
    assert "Traceback" not in writer.text


def test_a_writer_exits_with_0_while_redis_is_down(bench: Bench) -> None:
    writer = bench.writer()
    bench.push(oracle.timed([oracle.start(0, "inst-a")]))
    writer.wait_for_point("first-claim")
    bench.settle(writer)
    bench.server.end(signal.SIGKILL)
    time.sleep(0.3)
    assert writer.end() == 0, writer.text[-2000:]
    assert "Traceback" not in writer.text


def test_a_writer_that_waits_for_jobs_survives_a_failover(bench: Bench) -> None:
    """Redis unblocks its wait with an error, and first refuses every second write."""
    writer = bench.plain_writer()
    until(bench.home.database.exists, "no database")
    bench.settle(writer)
    for number in range(3):
        until(lambda: bench.redis.info("clients")["blocked_clients"], "it does not wait")
        bench.redis.replicaof("127.0.0.1", "1")
        time.sleep(0.5)
        bench.redis.replicaof("no", "one")
        events = oracle.timed([oracle.start(number, "inst-a")])
        bench.push(events)
        bench.settle(writer)
    assert writer.is_running, writer.text
    assert "UNBLOCKED" in writer.text
    assert "Traceback" not in writer.text
