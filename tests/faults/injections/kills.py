"""kill -9 of every kind of process at every step, while events arrive."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from tests.conftest import PATIENCE_SECS, QUEUES, until
from tests.faults import oracle
from tests.faults.injections.arena import Arena
from tests.faults.injections.marks import LINGER_SECS
from tests.faults.injections.rounds import Fault
from tests.faults.injections.wave import MOST_EVENTS, Wave, session_of
from tests.faults.oracle import Fired
from tests.rounds import ASKED_ROUNDS

KEPT = {"hook: Redis has it", "hook: file in the spool", "hook: marker written"}
BEGINS = "scheduler: begins to act"
REWRITES = "redis: its file half rewritten"
PAUSE_SECS = 0.004  # longest pause between two events
LOOK_SECS = LINGER_SECS / 6  # between two looks at a process that lingers at a step


@contextmanager
def handing_over(arena: Arena, wave: Wave, rng: Random) -> Iterator[None]:
    """Push the wave's events while the context lasts."""
    feeder = threading.Thread(target=arena.hand_over, args=(wave, Random(rng.random()), PAUSE_SECS))
    feeder.start()
    try:
        yield
    finally:
        feeder.join()


def kill_at(arena: Arena, wave: Wave, step: str, rng: Random) -> str:
    """Kill the process of a step at a random moment after it has reached the step."""
    role = step.partition(":")[0]
    process = arena.keep(role)
    arena.watch.aim(step)
    with handing_over(arena, wave, rng):
        if not reaches_step(arena, step):
            return ""
        if role == "slow":  # its first work on a transcript differs from the later ones
            passes(arena, step, rng.randrange(4))
        time.sleep(rng.random() * 1.2 * LINGER_SECS)
        assert process.end(signal.SIGKILL) == -signal.SIGKILL
    hit = arena.phase(role)
    return hit if is_confirmed(arena, hit) else ""


def reaches_step(arena: Arena, step: str) -> bool:
    """Wait until the process has reached the step; return False after a while."""
    role = step.partition(":")[0]
    end = time.monotonic() + PATIENCE_SECS / 10
    while (phase := arena.phase(role)) != step:
        if role in ("slow", "llm") and not phase:  # its work waits until a transcript has settled
            arena.make_due()
        if time.monotonic() > end:
            return False
        time.sleep(LOOK_SECS)
    return True


def passes(arena: Arena, step: str, times: int) -> None:
    """Wait until the slow worker has reached the step some more times, or for a while."""
    for _ in range(times):
        for is_there in (False, True):
            end = time.monotonic() + 0.2
            while (arena.phase("slow") == step) != is_there and time.monotonic() < end:
                time.sleep(LOOK_SECS)


def is_confirmed(arena: Arena, hit: str) -> bool:
    """Return whether the claimed jobs in Redis and their effects agree with the step."""
    members = [m for queue in QUEUES for m in arena.redis.zrange(f"rq:wip:{queue}", 0, -1)]
    held = {member.decode().partition(":")[0] for member in members}
    applied = {row["job_id"] for row in arena.home.rows("SELECT job_id FROM applied")}
    match hit:
        case "writer: claimed" | "writer: before the commit":
            return bool(held - applied)
        case "writer: committed":
            return bool(held & applied)
    return True


def kill_hook(arena: Arena, wave: Wave, step: str, rng: Random) -> str:
    """Kill a hook of a separate session at a step; then fire another hook of this session.

    A hook that is to find no Redis gets another runtime folder.
    """
    arena.has_exact_times = False
    victim, after = own_events(wave)
    arena.watch.aim(step)
    with handing_over(arena, wave, rng):
        hit = _killed_hook(arena, victim, step, rng)
        arena.fire([after], 1)
    own = oracle.timed([victim, after])
    doubtful = () if hit in KEPT else own[:1]
    arena.waves[-1] = Wave(wave.number, (*wave.events, *own), doubtful)
    return hit


def own_events(wave: Wave) -> tuple[Fired, Fired]:
    """Return an edit and a prompt in a separate session, for real hooks."""
    session, instance = session_of(wave.number, "v"), f"inst-{wave.number:05d}-v"
    number = (wave.number + 1) * MOST_EVENTS - 1
    return oracle.edit(number, session, instance), oracle.prompt(number, session, instance)


def fire_hook_beside(arena: Arena, wave: Wave) -> None:
    """Fire a real hook during the wave, whose event must be kept."""
    arena.has_exact_times = False
    own = oracle.timed(own_events(wave)[:1])
    arena.fire(own, 1)
    arena.waves[-1] = Wave(wave.number, (*wave.events, *own))


def start_marked_hook(arena: Arena, event: Fired, **env: str) -> "subprocess.Popen[bytes]":
    """Start a hook that records its current step."""
    launcher = str(Path(__file__).with_name("launch_hook.py"))
    hook = subprocess.Popen(
        [sys.executable, "-I", launcher, event.name, str(arena.watch.folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=arena.home.with_env(INSTANCE_ID=event.instance, CHECKPOINT_INTERVAL="0") | env,
    )
    assert hook.stdin
    hook.stdin.write(json.dumps(event.payload).encode())
    hook.stdin.close()
    return hook


def _killed_hook(arena: Arena, event: Fired, step: str, rng: Random) -> str:
    nowhere = {"XDG_RUNTIME_DIR": str(arena.home.root / "nowhere")} if "file" in step else {}
    hook = start_marked_hook(arena, event, **nowhere)
    # On a busy machine the hook may pass the step unseen. Its end is waited for, too.
    arena.wait_at(lambda: step if hook.poll() is not None else arena.watch.phase(hook.pid), step)
    time.sleep(rng.random() * 1.2 * LINGER_SECS)
    hook.kill()
    return arena.watch.phase(hook.pid) if hook.wait() else ""


def kill_redis(arena: Arena, wave: Wave, step: str, rng: Random) -> str:
    """Kill Redis while a worker is at a step, or during a rewrite of its file."""
    role = step.partition(":")[0]
    arena.watch.aim(step)
    with handing_over(arena, wave, rng):
        if step == REWRITES:
            hit = _killed_while_it_rewrites(arena, rng)
        else:
            arena.wait_at(lambda: arena.phase(role), step)
            time.sleep(rng.random() * LINGER_SECS)
            arena.server.end(signal.SIGKILL)
            hit = arena.phase(role)
        time.sleep(rng.random() * 5 * PAUSE_SECS)
    arena.server.start()
    arena.redis.connection_pool.disconnect()
    return hit


def _killed_while_it_rewrites(arena: Arena, rng: Random) -> str:
    """An unfinished new file proves that Redis was killed during the rewrite."""
    time.sleep(rng.random() * 4 * PAUSE_SECS)
    arena.redis.bgrewriteaof()
    time.sleep(rng.random() * PAUSE_SECS / 4)
    arena.server.end(signal.SIGKILL)
    halves = list(arena.home.path.glob("temp-rewriteaof-*"))
    for half in halves:
        half.unlink(missing_ok=True)
    return REWRITES if halves else ""


def kill_scheduler(arena: Arena, wave: Wave, step: str, rng: Random) -> str:
    """Kill the scheduler at a step; the next one fires each due slot once. Then suspend it."""
    scheduler = arena.keep("scheduler")
    scheduler.signal(signal.SIGCONT)
    if step == BEGINS:
        scheduler.end(signal.SIGKILL)
    hit = kill_at(arena, wave, step, rng)
    before = arena.executed_slots()
    arena.keep("scheduler")
    until(lambda: arena.executed_slots() > before, "no slot any more")
    scheduler.signal(signal.SIGSTOP)
    return hit


def of(role: str, *steps: str) -> tuple[str, ...]:
    return tuple(f"{role}: {step}" for step in steps)


SLOW_STEPS = of("slow", "results stored", "lines archived", "executed")


FAULTS = (
    Fault(
        "kill -9 of a hook",
        of(
            "hook",
            "event read",
            "counted",
            "sent to Redis",
            "Redis has it",
            "half a file written",
            "file written",
            "file in the spool",
            "marker written",
        ),
        kill_hook,
    ),
    Fault(
        "kill -9 of the writer",
        of(
            "writer",
            "spool file in Redis",
            "claimed",
            "before the commit",
            "committed",
            "acknowledged",
            "handed on",
        ),
        kill_at,
    ),
    Fault(
        "kill -9 of Redis",
        (
            *of("writer", "claimed", "before the commit", "committed", "acknowledged"),
            "writer: spool file in Redis",
            *(SLOW_STEPS if ASKED_ROUNDS else SLOW_STEPS[:1]),
            REWRITES,
        ),
        kill_redis,
        ("writer", "slow"),
    ),
    Fault(
        "kill -9 of the scheduler",
        of("scheduler", "lock held", "begins to act", "tick fired"),
        kill_scheduler,
        ("writer", "scheduler"),
    ),
    Fault(
        "kill -9 of the slow worker",
        of(
            "slow",
            *("claimed", "lines archived", "results stored", "work enqueued"),
            *("executed", "acknowledged"),
        ),
        kill_at,
        ("writer", "slow"),
    ),
)
