"""`hivepipe rq` runs RQ's own tools on hostile jobs without executing anything in a job."""

import pickle
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PATIENCE_SECS, ROOT, Home, Server, fire
from tests.payloads import SESSION_START

OLDEST = ROOT / ".venv" / "rq-oldest"


class Hostile:
    """A pickle that runs a shell command when it is loaded."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        import os  # noqa: PLC0415

        return os.system, (f"touch {self.witness}",)


@pytest.fixture(params=["newest", "oldest"])
def start(request: pytest.FixtureRequest) -> list[str]:
    """The start of the command line with the newest or the oldest supported RQ."""
    older = f"sys.path.insert(0, {str(OLDEST)!r}); " if request.param == "oldest" else ""
    code = f"import sys; {older}from hivepipe.cli.main import main; main()"
    return [sys.executable, "-I", "-c", code]


def rq(home: Home, start: list[str], *arguments: str, expect: int = 0) -> str:
    done = subprocess.run(
        [*start, "rq", *arguments],
        env=home.env,
        cwd=home.project,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECS,
        check=False,
    )
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout + done.stderr


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
    private_home: Home, redis_server: Server, start: list[str]
) -> None:
    fire("SessionStart", SESSION_START, private_home.env)
    add_hostile_job(redis_server, private_home, "dead")
    add_hostile_job(redis_server, private_home, "gone")
    witness = private_home.project / "trap.py"
    witness.write_text(f"open({str(private_home.root / 'ran')!r}, 'w')\ndef call(*_): pass\n")
    add_hostile_job(redis_server, private_home, "calls", failure_callback_name="trap.call")
    for id in ("gone", "calls"):
        abandon(redis_server, id)
    output = rq(private_home, start, "--", "info", "--raw", "--only-queues")
    assert "queue high 1, 0 executing, 0 finished, 0 failed" in output
    assert "queue medium 0, 0 executing, 0 finished, 3 failed" in output
    assert not (private_home.root / "ran").exists()


def test_requeue_moves_a_hostile_job_and_runs_nothing(
    private_home: Home, redis_server: Server, start: list[str]
) -> None:
    add_hostile_job(redis_server, private_home, "dead", description="looks harmless")
    output = rq(private_home, start, "--", "requeue", "--queue", "medium", "--all")
    assert "Requeueing 1 jobs" in output
    with redis_server.client() as client:
        assert client.lrange("rq:queue:medium", 0, -1) == [b"dead"]
        assert client.hget("rq:job:dead", "status") == b"queued"
    assert not (private_home.root / "ran").exists()


def test_a_worker_runs_only_functions_of_hivepipe(
    private_home: Home, redis_server: Server, start: list[str]
) -> None:
    fire("SessionStart", SESSION_START, private_home.env)
    call = ("os.system", None, (f"touch {private_home.root / 'ran'}",), {})
    add_hostile_job(redis_server, private_home, "calls", data=pickle.dumps(call))
    rq(private_home, start, "--", "requeue", "--queue", "medium", "calls")
    rq(private_home, start, "--", "worker", "--burst", "-q", "high", "medium")
    assert private_home.count("sessions") == 1
    with redis_server.client() as client:
        assert client.zrange("rq:failed:medium", 0, -1) == [b"calls"]
    assert not (private_home.root / "ran").exists()


def test_the_hostile_pickle_works(private_home: Home, redis_server: Server) -> None:
    add_hostile_job(redis_server, private_home, "dead")
    with redis_server.client() as client:
        pickle.loads(client.hget("rq:job:dead", "meta"))  # as a stock `rq requeue` does
    assert (private_home.root / "ran").exists()


def test_help_a_wrong_command_and_another_address(
    private_home: Home, redis_server: Server, start: list[str]
) -> None:
    assert "requeue" in rq(private_home, start)
    assert "--only-queues" in rq(private_home, start, "--", "info", "--help")
    rq(private_home, start, "--", "no-such-command", expect=64)
    url = redis_server.url
    redis_server.end()
    output = rq(private_home, start, "--", "requeue", "--queue", "low", "--all", expect=1)
    assert "run `hivepipe init`" in output
    redis_server.start()
    rq(private_home, start, "--", "info", "-u", f"{url}?db=1")
