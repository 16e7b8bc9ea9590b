"""The clock of one process steps back or forward, and later returns to the right time."""

import signal
from random import Random

from tests.conftest import until
from tests.faults import oracle
from tests.faults.injections.arena import Arena
from tests.faults.injections.kills import handing_over, own_events, start_marked_hook
from tests.faults.injections.rounds import Fault
from tests.faults.injections.wave import Wave

STEPS_SECS = {"back": (-2.5 * 86_400, -3600), "forward": (3600, 2.5 * 86_400)}


def step_clock(arena: Arena, wave: Wave, step: str, rng: Random) -> str:
    """Make the clock of a process wrong for a while."""
    role, _, way = step.partition(": ")
    secs = rng.choice(STEPS_SECS[way])
    scheduler = arena.keep("scheduler")
    scheduler.signal(signal.SIGCONT)
    arena.watch.set_clock(role, secs)
    with handing_over(arena, wave, rng):
        pid = _hook(arena, wave) if role == "hook" else arena.keep(role).pid
        until(lambda: arena.watch.clock(pid) == secs, "it does not look at its clock")
        _new_slot(arena)
    arena.watch.set_clock(role, 0)
    _new_slot(arena)
    scheduler.signal(signal.SIGSTOP)
    return step


def _hook(arena: Arena, wave: Wave) -> int:
    arena.has_exact_times = False
    own = oracle.timed(own_events(wave)[:1])
    hook = start_marked_hook(arena, own[0])
    assert hook.wait() == 0
    arena.waves[-1] = Wave(wave.number, (*wave.events, *own))
    return hook.pid


def _new_slot(arena: Arena) -> None:
    before = arena.executed_slots()
    until(lambda: arena.executed_slots() > before, "nothing comes by the clock")


FAULTS = (
    Fault(
        "a clock that steps",
        tuple(f"{role}: {way}" for role in ("hook", "writer", "scheduler") for way in STEPS_SECS),
        step_clock,
        ("writer", "scheduler"),
    ),
)
