"""Every process of a stack is killed repeatedly while hooks fire."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hivepipe.programs import process_exists
from tests.rounds import SEED, rounds
from tests.sandbox import EVERY, ONE_OF_EACH, ROOT, Sandbox, eventually

with_parent_death = pytest.mark.skipif(
    sys.platform != "linux", reason="no signal at a parent's death"
)
TICKS_SECS = 11  # two checks of the supervisor
CHILDREN = [kind for kind in EVERY if kind != "supervisord"]


def is_all_done(sandbox: Sandbox) -> bool:
    accounts = dict(sandbox.status()["accounts"])  # type: ignore[call-overload]
    return bool(accounts["accepted"] == accounts["done"])


def is_back(sandbox: Sandbox, kind: str, old: int) -> bool:
    found = sandbox.processes()
    one_of_each = {name: len(group) for name, group in found.items()} == ONE_OF_EACH
    return one_of_each and found[kind][0].pid != old


def test_every_killed_child_is_restarted_and_nothing_is_lost(sandbox: Sandbox) -> None:
    order = random.Random(SEED)
    sandbox.run("up", "-d")
    supervisor = sandbox.pid("supervisord")
    fired = 0
    for _ in range(rounds(1)):
        for kind in order.sample(CHILDREN, len(CHILDREN)):
            eventually(lambda: sandbox.counts() == ONE_OF_EACH)
            old = sandbox.pid(kind)
            os.kill(old, signal.SIGKILL)
            for _ in range(3):
                sandbox.fire(f"s-{fired}")
                fired += 1
            eventually(lambda kind=kind, old=old: is_back(sandbox, kind, old))  # type: ignore[misc]
    eventually(lambda: sandbox.report()["healthy"])
    eventually(lambda: sandbox.status()["spool"] == 0)
    wanted = {f"s-{number}" for number in range(fired)}
    eventually(lambda: sandbox.sessions() == wanted)
    eventually(lambda: is_all_done(sandbox))
    assert sandbox.pid("supervisord") == supervisor
    print(f"{rounds(1) * len(CHILDREN)} kills, {fired} events")


def kill_all_but_redis(sandbox: Sandbox) -> None:
    """Kill all at once, so that none sees another one die."""
    found = sandbox.processes()
    victims = [process for kind in EVERY if kind != "redis" for process in found[kind]]
    for process in victims:
        process.suspend()
    for process in victims:
        process.kill()


@with_parent_death
def test_hooks_start_a_stack_of_which_all_but_redis_was_killed(sandbox: Sandbox) -> None:
    """Each event is applied, including those that Redis had taken, whether workers ran or not."""
    sandbox.run("up", "-d")
    fired = 0
    for _ in range(rounds(2)):
        eventually(lambda: sandbox.counts() == ONE_OF_EACH)
        for kind in ("writer", "slow"):
            sandbox.processes()[kind][0].suspend()  # events now wait in Redis
        for file in sandbox.run_folder.rglob("starting"):
            file.unlink()  # a hook starts no stack within 10 s of the last start
        for _ in range(5):
            sandbox.fire(f"s-{fired}")
            fired += 1
        (redis,) = sandbox.processes()["redis"]
        kill_all_but_redis(sandbox)
        for _ in range(5):  # while Redis ends
            sandbox.fire(f"s-{fired}")
            fired += 1
        redis.wait(10)
        sandbox.fire(f"s-{fired}")
        fired += 1
        wanted = {f"s-{number}" for number in range(fired)}
        eventually(lambda wanted=wanted: sandbox.sessions() == wanted)  # type: ignore[misc]
        eventually(lambda: is_all_done(sandbox))
    assert sandbox.spooled == 0
    assert sandbox.status()["leaves_when_idle"] is False, "the user started it"


@with_parent_death
def test_workers_start_the_stack_after_a_kill_of_its_supervisor(sandbox: Sandbox) -> None:
    sandbox.run("up", "-d")
    old = sandbox.pid("supervisord")
    os.kill(old, signal.SIGKILL)
    eventually(lambda: is_back(sandbox, "supervisord", old))


def runtime_of(sandbox: Sandbox) -> Path:
    return Path(sandbox.run("url").strip().removeprefix("unix://")).parent


@with_parent_death
@pytest.mark.parametrize("deleted", ["home and runtime folder", "runtime folder, made again"])
def test_workers_of_deleted_folders_end_after_their_supervisor(
    sandbox: Sandbox, deleted: str
) -> None:
    sandbox.run("up", "-d")
    workers = [sandbox.pid(kind) for kind in ("writer", "slow", "scheduler")]
    runtime = runtime_of(sandbox)
    os.kill(sandbox.pid("supervisord"), signal.SIGKILL)
    shutil.rmtree(runtime, ignore_errors=True)
    if deleted.endswith("again"):
        runtime.mkdir(mode=0o700, exist_ok=True)  # as a hook does
    else:
        shutil.rmtree(sandbox.home, ignore_errors=True)
    eventually(lambda: not any(map(process_exists, workers)))


@pytest.mark.parametrize("deleted", ["home", "home and runtime folder"])
def test_a_stack_ends_if_its_home_is_deleted(sandbox: Sandbox, deleted: str) -> None:
    sandbox.run("up", "-d")
    pids = [sandbox.pid(kind) for kind in ("supervisord", "redis", "writer", "slow", "scheduler")]
    runtime = runtime_of(sandbox)
    shutil.rmtree(sandbox.home, ignore_errors=True)
    if deleted != "home":
        shutil.rmtree(runtime, ignore_errors=True)
    eventually(lambda: not any(map(process_exists, pids)))
    assert not sandbox.home.exists(), "a worker made the database again"


def test_a_stack_goes_on_while_its_home_has_another_name(sandbox: Sandbox) -> None:
    sandbox.run("up", "-d")
    supervisor = sandbox.pid("supervisord")
    sandbox.home.rename(sandbox.home.with_name("renamed"))
    time.sleep(TICKS_SECS)
    assert process_exists(supervisor)


@with_parent_death
@pytest.mark.parametrize("kind", ["writer", "slow"])
def test_a_worker_whose_supervisor_ended_before_its_start_ends(sandbox: Sandbox, kind: str) -> None:
    sandbox.run("up", "-d")
    runtime = runtime_of(sandbox)
    sandbox.run("down")
    shutil.rmtree(sandbox.home)
    supervisor = {"SUPERVISOR_SERVER_URL": f"unix://{runtime}/supervisor.sock"}
    env = sandbox.env | supervisor | {"HIVEPIPE_HOME": str(sandbox.home)}
    worker = [sys.executable, "-I", f"{ROOT}/workers/{kind}.py"]
    done = subprocess.run(worker, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert "was deleted: exiting" in done.stderr
    assert done.returncode == 0
