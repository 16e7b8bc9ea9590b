"""With the writer stopped in the middle of a batch, all tools show the same figures."""

import json
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import QUEUES, page_data, until
from tests.faults import oracle
from tests.faults.harness import Bench
from tests.outcome import outcome_of

RQ = str(Path(sys.executable).with_name("rq"))
LINE = re.compile(
    r"^queue\s+(high|medium|low)\s+(\d+),\s+(\d+) executing,\s+(\d+) finished,\s+(\d+) failed"
)


def rq_info(bench: Bench) -> dict[str, tuple[int, ...]]:
    """Return queued, executing, finished and failed jobs of each queue, by `rq info`."""
    said = outcome_of(
        [RQ, "info", "--raw", "-Q", "-u", bench.server.url], bench.home.env, check=True
    )
    found = {}
    for line in said.stdout.splitlines():
        shown = LINE.match(line)
        if shown:
            found[shown[1]] = tuple(int(n) for n in shown.groups()[1:])
    assert found, said.stdout
    return found


def on_the_dashboard(base: str) -> dict[str, tuple[int, ...]]:
    """Return the same figures by rq-dashboard."""
    keys = ("started", "finished", "failed")
    return {
        queue["name"]: (queue["count"], *(queue[f"{key}_job_registry_count"] for key in keys))
        for queue in page_data(f"{base}/0/data/queues.json")["queues"]
    }


@pytest.mark.parametrize("point", ["claimed", "committed"])
def test_all_tools_show_the_same_figures_within_a_batch(
    bench: Bench, dashboard: Callable[[], str], point: str
) -> None:
    """Ten jobs are done, one has failed, 200 are claimed, and the others wait."""
    session = oracle.SESSIONS[0]
    first = oracle.timed(
        [oracle.start(0, "inst-a"), *(oracle.edit(n, session, "inst-a") for n in range(3))]
    )
    more = oracle.timed(
        [oracle.start(0, "inst-a"), *(oracle.edit(n, session, "inst-a") for n in range(103))]
    )
    bench.push(first)
    bench.redis.hset("rq:job:evil", mapping={"status": "queued", "data": b"x", "hp": "1"})
    bench.redis.rpush("rq:queue:low", "evil")
    early = bench.writer()
    bench.settle(early)
    early.end()
    bench.push(more)
    waits = {queue: bench.redis.llen(f"rq:queue:{queue}") for queue in QUEUES}
    assert waits == dict.fromkeys(QUEUES, 100)
    writer = bench.writer(pause=point)
    writer.wait_for_point(point)
    writer.signal(signal.SIGSTOP)
    until(lambda: Path(f"/proc/{writer.pid}/stat").read_text().split()[2] == "T", "not stopped")
    # strict order, but a tenth of the 200 places is for the lower queues
    running = {"high": 100, "medium": 80, "low": 20}
    done = {"high": 4, "medium": 3, "low": 3}
    dead = {"high": 0, "medium": 0, "low": 1}
    wanted = {q: (waits[q] - running[q], running[q], done[q], dead[q]) for q in QUEUES}
    shown = rq_info(bench)
    assert sum(row[1] for row in shown.values()) == 200
    assert shown == wanted
    assert on_the_dashboard(dashboard()) == wanted
    said = json.loads(bench.command("status", "--json", expect=1))  # no supervisor runs here
    assert said["queues"] == {"slow": 0, "llm": 0} | {q: row[0] for q, row in wanted.items()}
    assert said["accounts"] == bench.accounts
    assert bench.accounts == {
        "accepted": oracle.job_count(more),
        "done": 10,
        "waiting": 100,
        "running": 200,
        "retrying": 0,
        "failed": 1,
        "discarded": 0,
    }
    for queue in QUEUES:
        for member in bench.redis.zrange(f"rq:wip:{queue}", 0, -1):
            job_id = member.decode().partition(":")[0]
            assert bench.redis.hget(f"rq:job:{job_id}", "status") == b"started"
    writer.signal(signal.SIGCONT)
    writer.resume()
    bench.settle(writer)
    bench.assert_tables(more)
