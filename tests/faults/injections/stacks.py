"""kill -9 of the processes that only a whole stack has: the supervisor and the forwarder."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

from tests.conftest import Server, until
from tests.faults.injections.arena import Arena
from tests.faults.injections.kills import handing_over, kill_at, of
from tests.faults.injections.rounds import Fault
from tests.faults.injections.wave import Wave

AT_WORK, CHILD_DEAD = "supervisor: all at work", "supervisor: a child is dead"


@contextmanager
def whole_stack(arena: Arena) -> Iterator[None]:
    """Start everything with `hivepipe up`, under its own supervisor.

    Each new scheduler cleans up agents that are older than five minutes, so the events are recent.
    """
    arena.first_ns = time.time_ns()
    try:
        arena.up()
        yield
    finally:
        arena.down()


def kill_supervisor(arena: Arena, wave: Wave, step: str, rng: Random) -> str:
    """Kill the supervisor, perhaps after the writer; `up` repairs the stack."""
    (path,) = Path(arena.server.address).parent.glob("*.pid")
    pid = int(path.read_text())
    pids = arena.pids()
    writer, scheduler = pids["writer"], pids["scheduler"]
    with handing_over(arena, wave, rng):
        os.kill(pid, signal.SIGSTOP)
        if step == CHILD_DEAD:
            os.kill(writer, signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)
        until(lambda: not is_alive(pid), "the supervisor lives")
    with suppress(ProcessLookupError):  # a worker may have started the stack already
        os.kill(scheduler, signal.SIGCONT)  # otherwise `up` would wait for it
    arena.command("up", "-d")
    arena.stop_the_clock()
    assert int(path.read_text()) != pid
    return step


def is_alive(pid: int) -> bool:
    with suppress(OSError):
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    return False


@contextmanager
def redis_elsewhere(arena: Arena) -> Iterator[None]:
    """Use a Redis that hooks do not connect to: they write to the spool and wake the forwarder."""
    arena.server.end()
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    url = f"redis://0.0.0.0:{port}/0"
    there = arena.home.root / "elsewhere"
    there.mkdir()
    options = ["--port", str(port), "--dir", str(there), "--appendonly", "yes"]
    arena.server = Server(arena.home, url, [arena.server.command[0], *options])
    arena.redis = arena.server.client()
    said = [str(arena.home.project), str(arena.home.path), arena.runtime, url]
    registered = [sys.executable, "-I", "-c", REGISTER, *said]
    subprocess.run(registered, env=arena.home.env, check=True)
    arena.server.start()
    try:
        yield
    finally:
        arena.end_all()


REGISTER = """
import sys
from hivepipe.home import tree_of
from hivepipe.stack.runtime_folder import Stack
from hivepipe.stack.registration import register
project, home, folder, url = sys.argv[1:]
register(project, Stack(home, folder, url), sys.executable, adopt=True, tree=tree_of(home))
"""


FAULTS = (
    Fault(
        "kill -9 of the forwarder",
        of("forwarder", "spool file in Redis", "rung, or a second later"),
        kill_at,
        ("writer", "forwarder"),
        scene=redis_elsewhere,
    ),
    Fault("kill -9 of the supervisor", (AT_WORK, CHILD_DEAD), kill_supervisor, (), whole_stack),
)
