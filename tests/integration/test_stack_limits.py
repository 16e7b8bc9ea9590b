"""A stack at its limits: long paths, a full Redis, a database in use by another machine."""

import os
import resource
import shutil
import time
from pathlib import Path
from secrets import token_hex

import pytest

from hivepipe.home import spare_folders
from hivepipe.queue.connection import ACCEPTED_KEY, connect
from hivepipe.queue.enqueue import enqueue_over
from hivepipe.queue.spooled import read_spool_file
from tests.conftest import find_server, fire, redis_log
from tests.sandbox import ONE_OF_EACH, Sandbox, eventually


def test_a_project_may_have_a_long_path(sandbox: Sandbox) -> None:
    """A socket's path has at most 107 bytes, and Redis silently truncates a longer one."""
    path = sandbox.folder.joinpath(*["a long name" * 8] * 10)
    path.mkdir(parents=True)
    sandbox.project, sandbox.home = path, path / ".hive-mind"
    sandbox.run("up", "-d")
    assert len(os.fsencode(sandbox.socket)) < 90
    sandbox.fire("s-1")
    assert sandbox.spooled == 0
    eventually(lambda: "s-1" in sandbox.done("sessions", "--all").stdout)
    sandbox.run("down")
    assert sandbox.processes() == {}
    assert not list(sandbox.run_folder.iterdir())
    assert [entry for entry in path.iterdir() if entry.name[0] != "."] == []


def use_server(sandbox: Sandbox, *lines: str, options: str = "") -> None:
    """Configure a Redis that runs behind these lines of shell with these options."""
    script = sandbox.folder / "another-redis"
    start = f'exec "{find_server()}" "$@" {options}\n'
    script.write_text("\n".join(["#!/bin/sh", *lines, start]))
    script.chmod(0o755)
    sandbox.configure(f'redis_server = "{script}"\n')


def test_events_are_spooled_while_redis_is_full(sandbox: Sandbox) -> None:
    use_server(sandbox, options="--maxmemory 8mb")
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


def test_a_redis_that_cannot_write_is_named_and_goes_on(sandbox: Sandbox) -> None:
    # A write beyond the limit fails like one to a full disk.
    use_server(sandbox, 'trap "" XFSZ', "ulimit -S -f 400")
    sandbox.run("up", "-d")
    sandbox.fire("s-0")
    eventually(lambda: sandbox.sessions() == {"s-0"})
    with connect(sandbox.socket) as client:
        client.set("filler", b"x" * (1 << 20))
    eventually(lambda: sandbox.report()["redis"] == "down")
    reason = "MISCONF Errors writing to the AOF file: No space left on device"
    assert sandbox.report()["trouble"] == f"Redis accepts no jobs: {reason}"
    doctor = sandbox.run("doctor", expect=1)
    assert reason in doctor
    assert "repair: hivepipe restart" not in doctor  # Redis would lose what it could not write
    sandbox.fire("s-1")
    (redis,) = sandbox.processes()["redis"]
    resource.prlimit(redis.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    eventually(lambda: sandbox.sessions() == {"s-0", "s-1"})


@pytest.mark.parametrize("has_room", [True, False])
def test_down_keeps_jobs_that_redis_could_not_write(sandbox: Sandbox, has_room: bool) -> None:
    use_server(sandbox, 'trap "" XFSZ')
    sandbox.run("up", "-d")
    sandbox.run("down")
    sandbox.fire("s-1")
    (spooled,) = (sandbox.home / "spool").iterdir()
    jobs = [job.message for job in read_spool_file(spooled)]
    spooled.unlink()
    sandbox.run("up", "-d")
    (redis,) = sandbox.processes()["redis"]
    runtime = Path(sandbox.socket).parent
    # A write beyond the limit fails like one to a full disk.
    resource.prlimit(redis.pid, resource.RLIMIT_FSIZE, (1 << 19, resource.RLIM_INFINITY))
    with connect(sandbox.socket) as client, client.pipeline() as accepted:
        accepted.set("filler", b"x" * (1 << 20))  # the jobs are in the same write
        enqueue_over(accepted, jobs, ACCEPTED_KEY)
        accepted.execute()
    if not has_room:
        home = str(sandbox.home)
        spools = [Path(each, "spool") for each in (home, *spare_folders(home, str(runtime)))]
        for spool in spools:
            shutil.rmtree(spool, ignore_errors=True)
            spool.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            spool.touch()
        error = sandbox.run("down", expect=1)
        assert f"{len(jobs)} jobs are only in Redis' memory" in error
        assert sandbox.processes() == sandbox.processes() | {"redis": [redis]}
        for spool in spools:
            spool.unlink()
        spools[-1].parent.rmdir()  # in memory, for all tests
    sandbox.run("down")
    assert sandbox.processes() == {}
    assert sandbox.spooled == len(jobs)
    sandbox.run("up", "-d")
    eventually(lambda: sandbox.sessions() == {"s-1"})
    assert sandbox.report()["healthy"]


ANOTHER = "their-laptop\nb00t\npid:[4026532000]\n"


def test_a_home_in_use_by_another_machine_or_container_is_refused(sandbox: Sandbox) -> None:
    """Locks and sockets do not work between machines, so two stacks would write to one database."""
    sandbox.run("up", "-d")
    kernel = sandbox.home / "kernel"
    machine, boot, namespace = kernel.read_text().splitlines()
    sandbox.run("down")
    assert not kernel.exists()

    kernel.write_text(ANOTHER)
    output = sandbox.run("up", "-d", expect=1)
    assert "another machine or container (their-laptop)" in output
    assert sandbox.processes() == {}
    sandbox.fire("s-1")
    assert sandbox.spooled == 1
    sandbox.run("down")
    assert kernel.exists(), "the file of another machine was deleted"

    os.utime(kernel, (time.time() - 200,) * 2)
    sandbox.run("up", "-d")  # it was not updated for a long time
    eventually(lambda: sandbox.sessions() == {"s-1"})
    assert kernel.read_text().splitlines() == [machine, boot, namespace]
    sandbox.run("down")

    kernel.write_text(f"{machine}\nan earlier boot\n{namespace}\n")
    sandbox.run("up", "-d")


def test_a_stack_stops_when_another_machine_uses_its_home(sandbox: Sandbox) -> None:
    sandbox.run("up", "-d")
    (sandbox.home / "kernel").write_text(ANOTHER)
    eventually(lambda: sandbox.processes() == {})
    assert "shutting the stack down" in (sandbox.home / "logs" / "writer.log").read_text()


@pytest.mark.parametrize("waits", [False, True])
def test_down_removes_texts_of_finished_jobs_from_the_disk(sandbox: Sandbox, waits: bool) -> None:
    # random, so that Redis does not compress them
    texts = [token_hex(8).encode() for _ in range(10)]
    sandbox.run("up", "-d")
    for text in texts:
        payload = {"session_id": "s-1", "prompt": text.decode(), "cwd": str(sandbox.project)}
        fire("UserPromptSubmit", payload, sandbox.env)
    eventually(lambda: any(text in redis_log(sandbox.home) for text in texts))
    eventually(lambda: is_quiet(sandbox))
    if waits:
        connect(sandbox.socket).zadd("rq:scheduled:low", {"tomorrow": time.time() + 86_400})
    sandbox.run("down")
    assert not [text for text in texts if text in redis_log(sandbox.home)]


def is_quiet(sandbox: Sandbox) -> bool:
    accounts = sandbox.report()["accounts"]
    assert isinstance(accounts, dict), "Redis does not answer"
    is_busy = any(accounts[name] for name in ("waiting", "running", "retrying"))
    return bool(accounts["done"]) and not is_busy
