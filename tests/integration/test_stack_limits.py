"""Where a stack meets its limits: long paths, a full Redis, a database that another has."""

import os
import time
from secrets import token_hex

import pytest

from hivepipe.queue.connection import connect
from tests.conftest import find_server, fire
from tests.integration.test_stack import (  # noqa: F401  a fixture
    ONE_OF_EACH,
    Sandbox,
    eventually,
    sandbox,
)


@pytest.mark.parametrize("length", [108, 1000])
def test_a_project_may_lie_far_down(sandbox: Sandbox, length: int) -> None:  # noqa: F811
    """A socket's path has 107 bytes, and Redis takes the first 107 of a longer one in silence."""
    path = sandbox.folder
    while len(str(path)) < length - 100:
        path /= "d" * 90
    path /= "e" * (length - len(str(path)) - 1)
    path.mkdir(parents=True)
    assert len(str(path)) == length
    sandbox.project, sandbox.home = path, path / ".hive-mind"
    sandbox.run("up", "-d")
    assert len(os.fsencode(sandbox.socket)) < 90
    sandbox.fire("s-1")
    assert sandbox.spooled == 0
    eventually(lambda: "s-1" in sandbox.run("sessions", "--all"))
    sandbox.run("down")
    assert sandbox.processes() == {}
    assert not list(sandbox.run_folder.iterdir())
    assert [entry for entry in path.iterdir() if entry.name[0] != "."] == []


def test_a_full_redis_says_no_and_the_events_wait_on_disk(sandbox: Sandbox) -> None:  # noqa: F811
    small = sandbox.folder / "small-redis"
    small.write_text(f'#!/bin/sh\nexec "{find_server()}" "$@" --maxmemory 8mb\n')
    small.chmod(0o755)
    sandbox.configure(f'redis_server = "{small}"\n')
    sandbox.run("up", "-d")
    sandbox.fire("s-0")
    eventually(lambda: sandbox.sessions() == {"s-0"})
    with connect(sandbox.socket) as client:
        client.setrange("filler", 20 << 20, b"x")
    for number in range(1, 6):
        sandbox.fire(f"s-{number}")
    assert sandbox.spooled == 5
    log = sandbox.home / "logs" / "hook-errors.log"
    assert log.read_text().count("event kept in the spool") == 5
    assert sandbox.counts() == ONE_OF_EACH
    with connect(sandbox.socket) as client:
        client.delete("filler")
    eventually(lambda: len(sandbox.sessions()) == 6)
    assert sandbox.spooled == 0
    eventually(lambda: sandbox.report()["healthy"])


ANOTHER = "their-laptop\nb00t\npid:[4026532000]\n"


def test_the_stack_of_another_machine_or_container_keeps_the_home(
    sandbox: Sandbox,  # noqa: F811
) -> None:
    """Its locks and sockets do not reach here: two stacks would be two writers on one database."""
    sandbox.run("up", "-d")
    kernel = sandbox.home / "kernel"
    machine, boot, namespace = kernel.read_text().splitlines()
    sandbox.run("down")
    assert not kernel.exists()

    kernel.write_text(ANOTHER)
    said = sandbox.run("up", "-d", expect=1)
    assert "another machine or container (their-laptop)" in said
    assert sandbox.processes() == {}
    sandbox.fire("s-1")
    assert sandbox.spooled == 1
    sandbox.run("down")
    assert kernel.exists(), "not ours to take away"

    os.utime(kernel, (time.time() - 200,) * 2)
    sandbox.run("up", "-d")  # nobody has touched it for long
    eventually(lambda: sandbox.sessions() == {"s-1"})
    assert kernel.read_text().splitlines() == [machine, boot, namespace]
    sandbox.run("down")

    kernel.write_text(f"{machine}\nan earlier boot\n{namespace}\n")
    sandbox.run("up", "-d")


def test_a_stack_leaves_when_another_machine_has_taken_its_home_over(
    sandbox: Sandbox,  # noqa: F811
) -> None:
    sandbox.run("up", "-d")
    (sandbox.home / "kernel").write_text(ANOTHER)
    eventually(lambda: sandbox.processes() == {})
    assert "shutting the stack down" in (sandbox.home / "logs" / "writer.log").read_text()


@pytest.mark.parametrize("waits", [False, True])
def test_no_text_of_a_finished_job_stays_on_disk_when_the_stack_stops(
    sandbox: Sandbox,  # noqa: F811
    waits: bool,
) -> None:
    texts = [token_hex(8) for _ in range(30)]  # Redis does not compress them
    sandbox.run("up", "-d")
    for text in texts:
        payload = {"session_id": "s-1", "prompt": text, "cwd": str(sandbox.project)}
        fire("UserPromptSubmit", payload, sandbox.env)
    eventually(lambda: any(text in log_of_redis(sandbox) for text in texts))
    eventually(lambda: is_quiet(sandbox))
    if waits:
        connect(sandbox.socket).zadd("rq:scheduled:low", {"tomorrow": time.time() + 86_400})
    sandbox.run("down")
    assert not [text for text in texts if text in log_of_redis(sandbox)]


def log_of_redis(sandbox: Sandbox) -> str:  # noqa: F811
    return (sandbox.home / "appendonly.aof").read_text("latin-1")


def is_quiet(sandbox: Sandbox) -> bool:  # noqa: F811
    accounts = sandbox.report()["accounts"]
    assert isinstance(accounts, dict), "Redis is away"
    at_work = any(accounts[name] for name in ("waiting", "running", "retrying"))
    return bool(accounts["done"]) and not at_work
