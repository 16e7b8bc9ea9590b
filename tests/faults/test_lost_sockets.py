"""Sockets and locks of a running stack are removed."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.injections.stacks import is_alive
from tests.rounds import SEED, rounds
from tests.sandbox import ONE_OF_EACH, Sandbox, eventually

EVENTS = 12


def is_whole(sandbox: Sandbox) -> bool:
    """Return whether the stack is healthy, complete and idle."""
    report = sandbox.report()
    accounts = dict(report["accounts"] or {})  # type: ignore[call-overload]
    return bool(
        report["healthy"]
        and accounts  # there are none while Redis is replaced
        and sandbox.counts() == ONE_OF_EACH
        and accounts["accepted"] == accounts["done"]
        and report["spool"] == 0
    )


def fire_some(sandbox: Sandbox, fired: set[str]) -> None:
    for _ in range(EVENTS):
        name = f"s-{len(fired)}"
        sandbox.fire(name, HIVEPIPE_AUTOSTART="0")  # the stack has to repair itself
        fired.add(name)


def a_file_in_its_place(path: Path) -> None:
    path.unlink()
    path.write_text("not a socket")


def a_folder_in_its_place(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "somebody's").write_text("kept")


def redis_socket_removed(folder: Path) -> None:
    (folder / "redis.sock").unlink()


def redis_socket_replaced(folder: Path) -> None:
    a_file_in_its_place(folder / "redis.sock")


def redis_socket_is_a_folder(folder: Path) -> None:
    a_folder_in_its_place(folder / "redis.sock")


def redis_socket_leads_elsewhere(folder: Path) -> None:
    (folder / "redis.sock").unlink()
    (folder / "redis.sock").symlink_to(folder / "supervisor.sock")


def supervisor_socket_removed(folder: Path) -> None:
    (folder / "supervisor.sock").unlink()


def both_sockets_removed(folder: Path) -> None:
    for path in folder.glob("*.sock"):
        path.unlink()


def all_files_removed(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


def folder_removed(folder: Path) -> None:
    shutil.rmtree(folder)


def folder_and_its_parent_removed(folder: Path) -> None:
    shutil.rmtree(folder.parent)


def all_locks_removed(folder: Path) -> None:
    """Remove also the lock beside the data: Redis is only known by the path of its socket."""
    shutil.rmtree(folder)
    (HOME_OF[folder] / "redis.lock").unlink()


HOME_OF: dict[Path, Path] = {}
FAULTS: tuple[Callable[[Path], None], ...] = (
    redis_socket_removed,
    redis_socket_replaced,
    redis_socket_is_a_folder,
    redis_socket_leads_elsewhere,
    supervisor_socket_removed,
    both_sockets_removed,
    all_files_removed,
    folder_removed,
    folder_and_its_parent_removed,
    all_locks_removed,
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_the_stack_repairs_itself_and_nothing_is_lost(
    fault: Callable[[Path], None], sandbox: Sandbox
) -> None:
    order = random.Random(SEED)
    sandbox.run("up", "-d")
    folder = Path(sandbox.socket).parent
    HOME_OF[folder] = sandbox.home
    fired: set[str] = set()
    for _ in range(rounds(1)):
        fire_some(sandbox, fired)
        if order.random() < 0.5:
            eventually(lambda: is_whole(sandbox))
        old = sandbox.pid("redis" if fault.__name__.startswith("redis") else "supervisord")
        fault(folder)
        eventually(
            lambda old=old: (  # type: ignore[misc]
                "socket is missing" in str(sandbox.report()["trouble"]) or not is_alive(old)
            )
        )
        fire_some(sandbox, fired)
        eventually(lambda old=old: not is_alive(old))  # type: ignore[misc]
        eventually(lambda: is_whole(sandbox))
        assert sandbox.sessions() == fired
