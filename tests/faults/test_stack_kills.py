"""Every kind of process of a stack is killed, again and again, while hooks go on."""

import json
import os
import random
import signal
import subprocess
import sys

from tests.conftest import hook_path
from tests.integration.test_stack import (  # noqa: F401  a fixture
    EVERY,
    ONE_OF_EACH,
    Sandbox,
    eventually,
    sandbox,
)
from tests.rounds import SEED, rounds

CHILDREN = [kind for kind in EVERY if kind != "supervisord"]


def fire(sandbox: Sandbox, session: str) -> None:  # noqa: F811
    done = subprocess.run(
        [sys.executable, "-I", "-S", hook_path("SessionStart")],
        input=json.dumps({"session_id": session, "source": "startup"}),
        env=sandbox.env | {"CLAUDE_PROJECT_DIR": str(sandbox.project)},
        text=True,
        capture_output=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ('{"continue": true}\n', "")


def sessions(sandbox: Sandbox) -> set[str]:  # noqa: F811
    """All, also those that their one process has left and the reaper has ended."""
    said = json.loads(sandbox.run("sessions", "--all", "--json"))
    return {entry["id"] for entry in said["sessions"]}


def is_all_done(sandbox: Sandbox) -> bool:  # noqa: F811
    accounts = dict(sandbox.status()["accounts"])  # type: ignore[call-overload]
    return bool(accounts["accepted"] == accounts["done"])


def is_back(sandbox: Sandbox, kind: str, old: int) -> bool:  # noqa: F811
    found = sandbox.processes()
    one_of_each = {name: len(group) for name, group in found.items()} == ONE_OF_EACH
    return one_of_each and found[kind][0].pid != old


def test_every_kind_of_child_comes_back_each_time_and_nothing_is_lost(
    sandbox: Sandbox,  # noqa: F811
) -> None:
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
                fire(sandbox, f"s-{fired}")
                fired += 1
            eventually(lambda kind=kind, old=old: is_back(sandbox, kind, old))  # type: ignore[misc]
    eventually(lambda: sandbox.report()["healthy"])
    eventually(lambda: sandbox.status()["spool"] == 0)
    wanted = {f"s-{number}" for number in range(fired)}
    eventually(lambda: sessions(sandbox) == wanted)
    eventually(lambda: is_all_done(sandbox))
    assert sandbox.pid("supervisord") == supervisor
    print(f"{rounds(1) * len(CHILDREN)} kills, {fired} events")
