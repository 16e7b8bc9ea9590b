"""Many sessions end at once in two stacks of a user: spending caps hold, and no write waits."""

import signal
import statistics
import time
from collections.abc import Callable, Iterator

import pytest

from tests.conftest import Home, Server, until
from tests.faults import oracle
from tests.faults.harness import Bench
from tests.faults.oracle import Fired
from tests.llm_server import Handler, Provider, provider, success
from tests.payloads import SESSION_END, changed
from tests.rounds import ASKED_ROUNDS, rounds
from tests.summary_scene import Scene, conversation

SESSIONS = rounds(12)  # HIVEPIPE_TEST_ROUNDS=500 for the full load
CAP = 3
CHECKPOINTS = 300 if ASKED_ROUNDS >= 100 else 60


class Stack(Scene):
    """A stack whose events are pushed without hook processes."""

    def __init__(self, home: Home, server: Server) -> None:
        super().__init__(home, server)
        self.bench = Bench(home, server)
        self.instance = f"inst{home.path.name.replace('.', '-')}"
        self.checkpoints = 0

    def push(self, *events: Fired) -> None:
        for sent in oracle.messages(events, self.bench.project, self.bench.swarm):
            self.bench.send(sent)

    def end_sessions(self, names: list[str]) -> None:
        for number, session in enumerate(names):
            where = str(self.write(session, conversation(session)))
            payload = changed(SESSION_END, session_id=session, transcript_path=where)
            self.push(Fired(payload, f"inst-{number}", time.time_ns()))

    def latencies(self, session: str, number: int) -> list[float]:
        """Return how long each of several checkpoints took to be stored."""
        found = []
        for _ in range(number):
            self.checkpoints += 1
            event = oracle.edit(self.checkpoints, session, self.instance)
            began = time.monotonic()
            self.push(Fired(event.payload, event.instance, time.time_ns()))
            sql = f"SELECT 1 FROM session_logs WHERE data LIKE '%file{self.checkpoints}.py%'"
            until(lambda sql=sql: self.home.rows(sql), "a checkpoint is lost")  # type: ignore[misc]
            found.append(time.monotonic() - began)
        return found

    def until_summaries(self, names: list[str]) -> None:
        def done() -> bool:
            self.make_due()
            return {row["session_id"] for row in self.summaries()} >= set(names)

        until(done, "sessions without a summary", 60 + len(names))


@pytest.fixture
def stacks(private_home: Home, new_server: Callable[[Home], Server]) -> Iterator[list[Stack]]:
    homes = (private_home, private_home.another(".hive-other"))
    made = [Stack(home, new_server(home)) for home in homes]
    yield made
    for stack in made:
        stack.bench.close()
        stack.close()


@pytest.fixture
def llm() -> Iterator[Provider]:
    with provider() as server:
        yield server


def sessions(kind: int, number: int) -> list[str]:
    return [f"{kind:04d}{n:04d}-0000-4000-8000-000000000000" for n in range(number)]


def p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98]


def test_the_caps_hold_and_no_checkpoint_waits(
    stacks: list[Stack], llm: Provider, record_property: Callable[[str, object], None]
) -> None:
    """The ratios are read by benchmarks/summaries.py."""
    began, go_on = [], []

    def answer(handler: Handler) -> None:
        """Delay all answers until the checkpoints are stored."""
        began.append(time.monotonic())
        until(lambda: go_on, "never let go")
        success()(handler)

    first = stacks[0]
    first.configure(openai_url=f"{llm.url}/v1", llm_daily_calls=CAP)
    first.keep("OPENAI_API_KEY")
    for stack in stacks:
        stack.start()
    busy = "5e551011-0000-4000-8000-00000000ffff"
    first.latencies(busy, 5)  # warm up

    # the same load without summaries by a model
    plain = sessions(1, SESSIONS)
    first.end_sessions(plain)
    without = first.latencies(busy, CHECKPOINTS)
    first.until_summaries(plain)
    assert {row["kind"] for row in first.summaries()} == {"plain"}
    assert llm.requests == []

    for stack in stacks:
        stack.command("summaries", "enable", "--yes")
    llm.otherwise = answer
    halves = [sessions(2, SESSIONS // 2), sessions(3, SESSIONS - SESSIONS // 2)]
    for stack, names in zip(stacks, halves, strict=True):
        stack.end_sessions(names)
    until(lambda: [stack.make_due("slow") for stack in stacks] and began, "nobody was asked")
    with_summaries = first.latencies(busy, CHECKPOINTS)
    assert not go_on
    in_flight = len(began)
    go_on.append(True)
    for stack, names in zip(stacks, halves, strict=True):
        stack.until_summaries(names)

    rows = [row for stack, names in zip(stacks, halves, strict=True) for row in stack.summaries()]
    rows = [row for row in rows if row["session_id"][:4] != "0001"]
    kinds = [row["kind"] for row in rows]
    assert 1 <= len(llm.requests) <= CAP
    assert kinds.count("llm") == len(llm.requests)
    assert kinds.count("plain") == SESSIONS - len(llm.requests)
    assert {row["reason"] for row in rows if row["kind"] == "plain"} == {
        "the daily limit is reached: see `hivepipe costs`"
    }
    assert first.spent()["today"]["calls"] == len(llm.requests)
    p50_ratio = statistics.median(with_summaries) / statistics.median(without)
    p99_ratio = p99(with_summaries) / p99(without)
    record_property("p50_ratio", p50_ratio)
    record_property("p99_ratio", p99_ratio)
    print(
        f"\n{SESSIONS} sessions in two stacks: {len(llm.requests)} asked (cap {CAP}), the rest "
        f"plain; {CHECKPOINTS} checkpoints while {in_flight} calls hung: p50 {p50_ratio:.2f}, p99 "
        f"{p99_ratio:.2f} times those without"
    )
    for stack in stacks:
        assert stack.llm.end(signal.SIGTERM) == 0
