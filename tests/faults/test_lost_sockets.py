"""Sockets and locks of a running stack are removed."""

import random
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.faults.injections.stacks import is_alive
from tests.rounds import SEED, rounds
from tests.sandbox import ONE_OF_EACH, Sandbox, eventually, new_sandbox

EVENTS = 4
STACKS = 4


def is_whole(sandbox: Sandbox) -> bool:
    """Return whether the stack is healthy, complete and idle."""
    if sandbox.counts() != ONE_OF_EACH:
        return False
    report = sandbox.report()
    accounts = dict(report["accounts"] or {})  # type: ignore[call-overload]
    return bool(
        report["healthy"]
        and accounts  # there are none while Redis is replaced
        and accounts["accepted"] == accounts["done"]
        and report["spool"] == 0
    )


def fire_some(sandbox: Sandbox, fired: set[str]) -> None:
    for _ in range(EVENTS):
        name = f"s-{len(fired)}"
        sandbox.fire(name, HIVEPIPE_AUTOSTART="0")  # the stack has to repair itself
        fired.add(name)


def put_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "somebody's").write_text("kept")


def put_a_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("supervisor.sock"))


def remove_all(folder: Path, pattern: str = "*") -> None:
    for path in folder.glob(pattern):
        if not path.is_dir():  # a folder of somebody else, which the stack has moved aside
            path.unlink()


# What happens to the runtime folder of a stack.
FAULTS: dict[str, Callable[[Path], object]] = {
    "redis socket removed": lambda folder: (folder / "redis.sock").unlink(),
    "redis socket is a folder": lambda folder: put_a_folder(folder / "redis.sock"),
    "redis socket leads elsewhere": lambda folder: put_a_link(folder / "redis.sock"),
    "supervisor socket removed": lambda folder: (folder / "supervisor.sock").unlink(),
    "both sockets removed": lambda folder: remove_all(folder, "*.sock"),
    "all files removed": remove_all,
    "folder and its parent removed": lambda folder: shutil.rmtree(folder.parent),
    "all locks removed": shutil.rmtree,  # and that of Redis beside its data
}


def check(faults: list[str]) -> None:
    """Inject faults into one stack, each after the repair of the one before."""
    fired: set[str] = set()
    with new_sandbox() as sandbox:
        sandbox.run("up", "-d")
        for fault in faults:
            try:
                check_repair(fault, sandbox, fired)
            except BaseException as error:
                error.add_note(fault)
                raise


def check_repair(fault: str, sandbox: Sandbox, fired: set[str]) -> None:
    order = random.Random(SEED)
    folder = Path(sandbox.socket).parent
    for _ in range(rounds(1)):
        fire_some(sandbox, fired)
        if order.random() < 0.5:
            eventually(lambda: is_whole(sandbox))
        old = sandbox.pid("redis" if fault.startswith("redis") else "supervisord")
        FAULTS[fault](folder)
        if fault == "all locks removed":  # Redis is only known by the path of its socket
            (sandbox.home / "redis.lock").unlink()
        eventually(
            lambda old=old: (  # type: ignore[misc]
                not is_alive(old) or "socket is missing" in str(sandbox.report()["trouble"])
            )
        )
        fire_some(sandbox, fired)
        eventually(lambda old=old: not is_alive(old))  # type: ignore[misc]
        eventually(lambda: is_whole(sandbox))
        assert sandbox.sessions() == fired


@pytest.mark.long
def test_the_stack_repairs_itself_and_nothing_is_lost() -> None:
    """Stacks are repaired side by side, because each waits for checks that are seconds apart."""
    with ThreadPoolExecutor(STACKS) as pool:
        for _ in pool.map(check, ([*FAULTS][n::STACKS] for n in range(STACKS))):
            pass
