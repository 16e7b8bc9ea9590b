"""Every kind of process of a stack is killed, again and again, while hooks go on."""

import os
import random
import signal

from tests.integration.test_stack import (  # noqa: F401  a fixture
    EVERY,
    ONE_OF_EACH,
    Sandbox,
    eventually,
    sandbox,
)
from tests.rounds import SEED, rounds

CHILDREN = [kind for kind in EVERY if kind != "supervisord"]


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
