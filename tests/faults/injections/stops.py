"""SIGSTOP of Redis and of the writer at every step, and SIGCONT after a while."""

import signal
import time
from pathlib import Path
from random import Random

from hivepipe.queue.reconciler import reconcile
from tests.conftest import Process, until
from tests.faults.injections.arena import Arena
from tests.faults.injections.kills import fire_hook_beside, handing_over, of
from tests.faults.injections.rounds import Fault
from tests.faults.injections.wave import Wave

HOLD_SECS = (0.1, 0.3)
HOOK = "hook: waits for the answer"


def is_stopped(process: Process) -> bool:
    """Return whether the kernel shows the process as stopped."""
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def stop(process: Process) -> None:
    process.signal(signal.SIGSTOP)
    until(lambda: is_stopped(process), "not stopped")


def stop_redis(arena: Arena, wave: Wave, step: str, rng: Random) -> str:
    """Stop Redis while the writer is at a step, or before a hook's call, which is repeated."""
    arena.watch.aim(step)
    with handing_over(arena, wave, rng):
        if step == HOOK:
            return _hook_gives_up(arena, wave)
        arena.wait_at(lambda: arena.phase("writer"), step)
        stop(arena.server)
        hit = arena.phase("writer")
        time.sleep(rng.uniform(*HOLD_SECS))
        arena.server.signal(signal.SIGCONT)
    return hit


def _hook_gives_up(arena: Arena, wave: Wave) -> str:
    before = arena.hook_log.count("kept in the spool")
    stop(arena.server)
    try:
        fire_hook_beside(arena, wave)
        assert arena.home.spool, "it gave up, and kept nothing"
    finally:
        arena.server.signal(signal.SIGCONT)
    return HOOK if arena.hook_log.count("kept in the spool") > before else ""


def stop_writer(arena: Arena, wave: Wave, step: str, rng: Random) -> str:
    """Stop the writer at a step; its leases end, and no other process may take its jobs."""
    writer = arena.keep("writer")
    arena.watch.aim(step)
    with handing_over(arena, wave, rng):
        arena.wait_at(lambda: arena.phase("writer"), step)
        stop(writer)
        hit = arena.phase("writer")
        arena.expire_leases()
        assert reconcile(arena.redis, is_shared=False) == 0
        time.sleep(rng.uniform(*HOLD_SECS))
        writer.signal(signal.SIGCONT)
    return hit


STEPS = of("writer", "spool file in Redis", "claimed", "before the commit", "committed")

FAULTS = (
    Fault("SIGSTOP of Redis", (*STEPS, HOOK), stop_redis),
    Fault(
        "SIGSTOP of the writer", (*STEPS, *of("writer", "acknowledged", "handed on")), stop_writer
    ),
)
