"""`hivepipe rq` runs RQ's own tools on hostile jobs without executing anything in a job."""

import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PATIENCE_SECS, ROOT, Home, Server, fire
from tests.payloads import SESSION_START

OLDEST = ROOT / ".venv" / "rq-oldest"

Rq = Callable[..., str]


class Hostile:
    """A pickle that runs a shell command when it is loaded."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        import os  # noqa: PLC0415

        return os.system, (f"touch {self.witness}",)


@pytest.fixture(params=["newest", "oldest"])
def rq(request: pytest.FixtureRequest, private_home: Home) -> Rq:
    """Run `hivepipe rq` with the newest or the oldest supported RQ."""
    code = f"import sys; sys.path.insert(0, {str(OLDEST)!r}); "
    code += "from hivepipe.cli.main import main; main()"

    def run_oldest(*arguments: str) -> str:
        return subprocess.check_output(
            [sys.executable, "-I", "-c", code, "rq", *arguments],
            stderr=subprocess.STDOUT,
            env=private_home.env,
            cwd=private_home.project,
            text=True,
            timeout=PATIENCE_SECS,
        )

    return run_oldest if request.param == "oldest" else partial(private_home.command, "rq")


def add_hostile_job(server: Server, home: Home, id: str, **fields: Any) -> None:
    """Add a failed job with hostile data, meta and result."""
    hostile = pickle.dumps(Hostile(home.root / "ran"))
    with server.client() as client:
        client.sadd("rq:queues", "rq:queue:medium")
        job = {"data": hostile, "meta": hostile, "result": hostile, "origin": "medium"}
        client.hset(f"rq:job:{id}", mapping={**job, "status": "failed", **fields})
        client.zadd("rq:failed:medium", {id: -1})


def abandon(server: Server, id: str) -> None:
    """Move the job to the started jobs of a dead worker, so that `rq info` loads it."""
    with server.client() as client:
        client.zrem("rq:failed:medium", id)
        client.zadd("rq:wip:medium", {f"{id}:1": time.time() - 100})


def test_info_shows_everything_and_runs_nothing(
    private_home: Home, redis_server: Server, rq: Rq
) -> None:
    fire("SessionStart", SESSION_START, private_home.env)
    add_hostile_job(redis_server, private_home, "dead")
    add_hostile_job(redis_server, private_home, "gone")
    witness = private_home.project / "trap.py"
    witness.write_text(f"open({str(private_home.root / 'ran')!r}, 'w')\ndef call(*_): pass\n")
    add_hostile_job(redis_server, private_home, "calls", failure_callback_name="trap.call")
    for id in ("gone", "calls"):
        abandon(redis_server, id)
    output = rq("--", "info", "--raw", "--only-queues")
    assert "queue high 1, 0 executing, 0 finished, 0 failed" in output
    assert "queue medium 0, 0 executing, 0 finished, 3 failed" in output
    assert not (private_home.root / "ran").exists()


def test_requeue_moves_a_hostile_job_and_runs_nothing(
    private_home: Home, redis_server: Server, rq: Rq
) -> None:
    add_hostile_job(redis_server, private_home, "dead", description="looks harmless")
    output = rq("--", "requeue", "--queue", "medium", "--all")
    assert "Requeueing 1 jobs" in output
    with redis_server.client() as client:
        assert client.lrange("rq:queue:medium", 0, -1) == [b"dead"]
        assert client.hget("rq:job:dead", "status") == b"queued"
    assert not (private_home.root / "ran").exists()


def test_a_worker_runs_only_functions_of_hivepipe(
    private_home: Home, redis_server: Server, rq: Rq
) -> None:
    fire("SessionStart", SESSION_START, private_home.env)
    call = ("os.system", None, (f"touch {private_home.root / 'ran'}",), {})
    add_hostile_job(redis_server, private_home, "calls", data=pickle.dumps(call))
    rq("--", "requeue", "--queue", "medium", "calls")
    rq("--", "worker", "--burst", "-q", "high", "medium")
    assert private_home.count("sessions") == 1
    with redis_server.client() as client:
        assert client.zrange("rq:failed:medium", 0, -1) == [b"calls"]
    assert not (private_home.root / "ran").exists()


def test_help_a_wrong_command_and_another_address(private_home: Home, redis_server: Server) -> None:
    rq = partial(private_home.command, "rq")
    assert "requeue" in rq()
    assert "--only-queues" in rq("--", "info", "--help")
    rq("--", "no-such-command", expect=64)
    url = redis_server.url
    redis_server.end()
    output = rq("--", "requeue", "--queue", "low", "--all", expect=1)
    assert "run `hivepipe init`" in output
    redis_server.start()
    rq("--", "info", "-u", f"{url}?db=1")
