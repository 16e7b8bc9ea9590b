"""kill -9 of hooks at random moments: no effect or the whole effect, nothing torn or in the way."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.conftest import hook_path, until
from tests.faults import oracle
from tests.faults.harness import Bench, random_of, rounds
from tests.faults.oracle import Fired

SESSION = oracle.SESSIONS[0]
HOOKS = 12 * rounds(5)
LIFE_SECS = 0.03  # about a hook's


def fire_and_kill(bench: Bench, event: Fired, after_secs: float) -> bool:
    """Run the hook, kill it after so long; did it get to its end?"""
    env = bench.home.with_env(INSTANCE_ID=event.instance, CHECKPOINT_INTERVAL="0")
    hook = subprocess.Popen(
        [sys.executable, "-I", "-S", str(hook_path(event.name))],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=env,
    )
    assert hook.stdin
    hook.stdin.write(json.dumps(event.payload).encode())
    hook.stdin.close()
    time.sleep(after_secs)
    hook.kill()
    return hook.wait() == 0


@pytest.mark.parametrize("redis_is", ["up", "down"])
def test_killed_hooks(bench: Bench, redis_is: str) -> None:
    bench.fire([oracle.start(0, "inst-a")], 1)
    if redis_is == "down":
        bench.server.end(signal.SIGKILL)
    rng = random_of(f"hooks {redis_is}")
    agents = [oracle.agent(n, SESSION, "inst-a", "async") for n in range(HOOKS)]
    ended = {
        n for n, a in enumerate(agents) if fire_and_kill(bench, a, rng.random() * 2 * LIFE_SECS)
    }
    if redis_is == "down":
        bench.server.start()
    for torn in (bench.home.path / "spool").glob("*.tmp"):
        os.utime(torn, (0, 0))  # a minute later
    writer = bench.plain_writer()
    bench.settle(writer)
    found = {int(row["id"][1:]) for row in bench.tables()["agents"]}
    logged = {row["created_at"] for row in bench.tables()["session_logs"]}
    print(
        f"{HOOKS} hooks, {HOOKS - len(ended)} killed, {len(found - ended)} of these had delivered"
    )
    assert ended <= found, "a hook that ended had not delivered"
    assert 0 < len(ended) < HOOKS
    assert len(found) < HOOKS, "no kill came before the hand-over"
    assert bench.dead() == {}
    # All four jobs of an event, or none.
    assert len(bench.tables()["session_logs"]) == len(found) >= len(logged)
    figures = bench.accounts
    assert figures["accepted"] == figures["done"] == 1 + 4 * len(found)
    (row,) = bench.tables()["instance_sessions"]
    assert len(found) <= row["operation_count"] <= HOOKS
    until(lambda: not list((bench.home.path / "spool").glob("*.tmp")), "torn files stay")
    after = oracle.edit(1, SESSION, "inst-a")
    bench.fire([after], 1)
    bench.settle(writer)
    assert len(bench.tables()["session_logs"]) == len(found) + 1
