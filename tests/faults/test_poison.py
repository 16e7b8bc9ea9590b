"""A job that kills its writer is found and failed; one without memory is repeated."""

import json
import signal

from tests.conftest import QUEUES, until
from tests.faults import oracle
from tests.faults.harness import Bench
from tests.rounds import SEED


def test_a_job_that_kills_its_writer_three_times_fails(bench: Bench) -> None:
    """It fails after its third kill; all other jobs of its batches are applied once."""
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


def test_a_job_that_finds_no_memory_is_repeated(bench: Bench) -> None:
    """Python's sqlite3 raises MemoryError too, if SQLite gets no memory."""
    prompt = oracle.prompt(666, oracle.SESSIONS[0], "inst-a")
    others = oracle.mix(SEED, 10)
    events = oracle.timed((*others.opening, *others.bulk, prompt)) + others.closing
    bench.push(events)
    writer = bench.writer(scarce=prompt.payload["prompt"])
    until(lambda: bench.is_settled(), "not done")
    assert bench.dead() == {}
    wanted = oracle.expected(events, bench.project, bench.swarm)
    assert oracle.differences(wanted, oracle.comparable(bench.tables())) == []
    assert (writer.folder / "scarce").exists()
