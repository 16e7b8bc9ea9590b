"""The events of one round, with their own sessions and instances, as the oracle uses them."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.faults import oracle
from tests.faults.oracle import Fired
from tests.payloads import SESSION_END, SESSION_START, changed

WAVE_NS = 400_000_000_000  # distance between the first events of two waves
MOST_EVENTS = 50
SIZE = 12
WITHOUT_SESSION = 8  # events without a session


@dataclass(frozen=True)
class Wave:
    """Events in order; the hooks of `doubtful` ones were killed, so each was applied or not."""

    number: int
    events: tuple[Fired, ...]
    doubtful: tuple[Fired, ...] = ()

    @property
    def sessions(self) -> set[str]:
        return {event.session for event in self.events} - {""}

    @property
    def instances(self) -> set[str]:
        """The instances that fire the events."""
        return {event.instance for event in self.events}

    def without(self, unwanted: Sequence[Fired]) -> "Wave":
        """Return the wave without these events and without doubtful ones."""
        return Wave(self.number, tuple(e for e in self.events if e not in unwanted))


def wave(number: int, rng: random.Random, folder: str, first_ns: int) -> Wave:
    """Return the `number`-th wave of a home, whose first one begins at `first_ns`.

    `folder` is the folder of the session's transcript.
    """
    session = session_of(number)
    first = number * MOST_EVENTS
    names = [f"inst-{number:05d}-{letter}" for letter in "ab"]
    starts = [Fired(changed(SESSION_START, session_id=session), name) for name in names]
    bulk = [_any(rng, first + n, session, rng.choice(names)) for n in range(SIZE)]
    bulk = [replace(event, times=2 if rng.random() < 0.1 else 1) for event in bulk]
    turn = oracle.stop(first + SIZE, session, names[0], background_tasks=[])
    bulk.insert(rng.randrange(1, SIZE // 2), turn)
    last = [
        oracle.stop(first, session, names[0], background_tasks=[]),
        # A session ends with its last instance.
        Fired(changed(SESSION_END, session_id=session, reason="clear"), names[1]),
        Fired(changed(SESSION_END, session_id=session, reason="clear"), names[0]),
    ]
    for n in range(WITHOUT_SESSION):
        edit = oracle.edit_without_session(first + SIZE + 1 + n, f"inst-{number:05d}-n")
        bulk.insert(rng.randrange(len(bulk)), edit)
    path = f"{folder}/{session}.jsonl"
    events = [
        replace(event, payload=changed(event.payload, transcript_path=path))
        for event in (*starts, *bulk, *last)
    ]
    return Wave(number, oracle.timed(events, first_ns + number * WAVE_NS))


def session_of(number: int, letter: str = "") -> str:
    """Return the id of a wave's session, or of another session beside it."""
    return f"5e55-{number:05d}{letter}"


def _any(rng: random.Random, number: int, session: str, instance: str) -> Fired:
    kind = rng.choice(("edit", "edit", "prompt", "agent", "agent", "skill", "subagent"))
    match kind:
        case "edit":
            return oracle.edit(number, session, instance)
        case "prompt":
            return oracle.prompt(number, session, instance)
        case "skill":
            return oracle.skill(rng, number, session, instance)
        case "subagent":
            return oracle.subagent_stop(f"u{number:05d}", session, instance)
        case _:
            launch = rng.choice(("completed", "async", "remote", "failed", "bare"))
            return oracle.agent(number, session, instance, launch)


def events_of(waves: Sequence[Wave]) -> tuple[Fired, ...]:
    return tuple(event for one in waves for event in one.events)
