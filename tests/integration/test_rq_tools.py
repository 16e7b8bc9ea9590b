"""RQ's worker, info, requeue and dashboard handle hivepipe's jobs without extra flags."""

import re
import sqlite3
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import QUEUES, ROOT, Home, Server, fire, page_data
from tests.outcome import outcome_of
from tests.payloads import POST_AGENT_COMPLETED, SESSION_START, USER_PROMPT_SUBMIT, changed
from tests.rounds import ASKED_ROUNDS

OLDEST = ROOT / ".venv" / "rq-oldest"
BIN = Path(sys.executable).parent
RUN_OLDEST = f"""
import sys
sys.path.insert(0, {str(OLDEST)!r})
import rq
assert rq.__version__ == "2.9.0", (rq.__version__, rq.__file__)
print(rq.__version__, flush=True)
from rq.cli import main
sys.argv[0] = "rq"
main()
"""

Rq = Callable[..., str]


# This test waits for retries; with the oldest RQ it runs only with HIVEPIPE_TEST_ROUNDS.
LONG = "test_a_job_without_its_parent_row_fails_and_each_tool_requeues_it"


@pytest.fixture(params=["newest", "oldest"])
def rq(request: pytest.FixtureRequest, private_home: Home, redis_server: Server) -> Rq:
    """Run RQ's command line with the address as its only option."""
    if request.param == "oldest" and request.node.originalname == LONG and not ASKED_ROUNDS:
        pytest.skip("takes ten seconds more; with HIVEPIPE_TEST_ROUNDS")
    if request.param == "oldest" and not OLDEST.is_dir():
        pytest.fail(f"{OLDEST} is missing: pip install --no-deps --target {OLDEST} rq==2.9.0")
    newest = [str(BIN / "rq")]
    start = newest if request.param == "newest" else [sys.executable, "-I", "-c", RUN_OLDEST]

    def run(command: str, *arguments: str) -> str:
        done = outcome_of(
            [*start, command, "-u", redis_server.url, *arguments],
            private_home.env,
            private_home.root,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        if request.param == "oldest":
            version, _, rest = done.stdout.partition("\n")
            assert version == "2.9.0"
            return rest
        return done.stdout

    return run


def work(rq: Rq) -> None:
    rq("worker", "--burst", *QUEUES)


def info(rq: Rq) -> dict[str, tuple[int, int, int, int]]:
    """Return the queued, executing, finished and failed jobs of each queue from `rq info`."""
    line = re.compile(
        r"queue (\w+) (\d+), (\d+) executing, (\d+) finished, (\d+) failed", re.MULTILINE
    )
    found = line.findall(rq("info", "--raw", "--only-queues"))
    return {name: tuple(map(int, counts)) for name, *counts in found}  # type: ignore[misc]


def counts(server: Server) -> tuple[int, int, int]:
    """Return the queued, finished and failed jobs of the queue `medium`."""
    with server.client() as client:
        queued = client.llen("rq:queue:medium")
        return queued, client.zcard("rq:finished:medium"), client.zcard("rq:failed:medium")


def change(home: Home, sql: str) -> None:
    connection = sqlite3.connect(home.database, timeout=10)
    with connection:
        connection.execute(sql)
    connection.close()


def make_due(server: Server, queue: str) -> list[str]:
    """Move the waiting retries to their queue, as RQ's scheduler does when they are due."""
    from rq import Queue  # noqa: PLC0415  its import takes a while
    from rq.registry import ScheduledJobRegistry  # noqa: PLC0415

    with server.client() as client:
        registry = ScheduledJobRegistry(queue=Queue(queue, connection=client))
        ids = registry.get_job_ids()
        for id in ids:
            assert client.zrem(registry.key, id) == 1
            client.hset(f"rq:job:{id}", "status", "queued")
            client.rpush(f"rq:queue:{queue}", id)
        return ids


def test_a_stock_worker_executes_jobs_once_and_info_counts_them(
    private_home: Home, redis_server: Server, rq: Rq
) -> None:
    fire("SessionStart", SESSION_START, private_home.env)
    fire("UserPromptSubmit", USER_PROMPT_SUBMIT, private_home.env)
    fire("PostToolUse", POST_AGENT_COMPLETED, private_home.env)
    assert info(rq) == {"high": (3, 0, 0, 0), "medium": (3, 0, 0, 0), "low": (1, 0, 0, 0)}
    work(rq)
    assert info(rq) == {"high": (0, 0, 3, 0), "medium": (0, 0, 3, 0), "low": (0, 0, 1, 0)}
    assert_stored_once(private_home)
    with redis_server.client() as client:
        for queue in QUEUES:  # as a user or another program might do
            for id in client.zrange(f"rq:finished:{queue}", 0, -1):
                client.rpush(f"rq:queue:{queue}", id)
    work(rq)
    assert_stored_once(private_home)


def assert_stored_once(home: Home) -> None:
    assert home.rows("SELECT status, model FROM sessions") == [
        {"status": "active", "model": "claude-opus-5"}
    ]
    assert home.rows("SELECT id, status, type FROM agents") == [
        {"id": "a41c09be77d2f0e13", "status": "completed", "type": "Explore"}
    ]
    assert home.rows("SELECT prompt FROM prompts") == [
        {"prompt": "Split checkout.py into smaller modules"}
    ]
    assert home.count("session_logs") == 1
    assert home.count("applied") == 7


def test_a_job_without_its_parent_row_fails_and_each_tool_requeues_it(
    private_home: Home, redis_server: Server, dashboard: Callable[[], str], rq: Rq
) -> None:
    """A failed job is requeued by its id, by the dashboard, and with all others."""
    fire("SessionStart", SESSION_START, private_home.with_env(USE_QUEUE="false"))
    swarm = private_home.rows("SELECT id FROM swarms")[0]["id"]
    change(private_home, "DELETE FROM swarms")
    for number in range(4):
        response = {**POST_AGENT_COMPLETED["tool_response"], "agentId": f"a{number}"}
        event = changed(POST_AGENT_COMPLETED, tool_use_id=f"toolu_{number}", tool_response=response)
        fire("PostToolUse", event, private_home.env)

    work(rq)
    with redis_server.client() as client:
        waiting = [id.decode() for id in client.zrange("rq:scheduled:medium", 0, -1)]
        assert len(waiting) == 4
        for id in waiting:
            job = client.hgetall(f"rq:job:{id}")
            assert job[b"status"] == b"scheduled"
            assert job[b"description"] == b"insert_agent Explore"
            assert job[b"retries_left"] == b"2"
    rounds = 0
    while make_due(redis_server, "medium"):
        rounds += 1
        assert rounds <= 3
        work(rq)
    assert rounds == 3

    # their common update_instance succeeded in medium
    assert info(rq)["medium"] == (0, 0, 1, 4)
    assert counts(redis_server) == (0, 1, 4)
    assert private_home.count("agents") == 0
    with redis_server.client() as client:
        failed = [id.decode() for id in client.zrange("rq:failed:medium", 0, -1)]
        assert sorted(failed) == sorted(waiting)
        assert {client.hget(f"rq:job:{id}", "status") for id in failed} == {b"failed"}
    base = dashboard()
    listed = page_data(f"{base}/0/data/jobs/medium/failed/8/asc/1.json")["jobs"]
    assert [job["description"] for job in listed] == ["insert_agent Explore"] * 4
    by_id, by_page, *_ = failed
    one = page_data(f"{base}/0/data/job/{by_page}.json")
    assert one["status"] == "failed"
    assert f"swarm {swarm} does not exist" in one["exc_info"]

    change(private_home, f"INSERT INTO swarms (id, name) VALUES ('{swarm}', 'shop')")
    rq("requeue", "--queue", "medium", by_id)
    assert counts(redis_server) == (1, 1, 3)
    request = urllib.request.Request(f"{base}/job/{by_page}/requeue", data=b"", method="POST")
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60):
        pass
    assert counts(redis_server) == (2, 1, 2)
    rq("requeue", "--queue", "medium", "--all")
    assert counts(redis_server) == (4, 1, 0)
    work(rq)
    assert counts(redis_server) == (0, 5, 0)
    assert private_home.rows("SELECT id, swarm_id, status FROM agents ORDER BY id") == [
        {"id": f"a{number}", "swarm_id": swarm, "status": "completed"} for number in range(4)
    ]


# ---- dashboard
