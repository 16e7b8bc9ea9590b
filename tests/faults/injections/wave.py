"""The events of one round: of sessions and instances of its own, as the oracle knows them."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.faults import oracle
from tests.faults.oracle import Fired
from tests.payloads import SESSION_END, SESSION_START, changed

WAVE_NS = 400_000_000_000  # from one wave's first event to the next one's
MOST_EVENTS = 50
SIZE = 12
NOBODYS = 8  # events of no session


@dataclass(frozen=True)
class Wave:
    """Events in their order; `doubtful` are those whose hook was killed: all of it or nothing."""

    number: int
    events: tuple[Fired, ...]
    doubtful: tuple[Fired, ...] = ()

    @property
    def sessions(self) -> set[str]:
        """Whose events they are."""
        return {event.session for event in self.events} - {""}

    @property
    def instances(self) -> set[str]:
        """Who fires them."""
        return {event.instance for event in self.events}

    def without(self, unwanted: Sequence[Fired]) -> "Wave":
        """Return the wave in which these events never happened, and nothing is doubtful."""
        return Wave(self.number, tuple(e for e in self.events if e not in unwanted))


def wave(number: int, rng: random.Random, folder: str, first_ns: int) -> Wave:
    """Return the `number`-th wave of a home, whose first one begins at `first_ns`.

    `folder`: where the session's transcript is.
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
    for n in range(NOBODYS):
        edit = oracle.nobodys_edit(first + SIZE + 1 + n, f"inst-{number:05d}-n")
        bulk.insert(rng.randrange(len(bulk)), edit)
    path = f"{folder}/{session}.jsonl"
    events = [
        replace(event, payload=changed(event.payload, transcript_path=path))
        for event in (*starts, *bulk, *last)
    ]
    return Wave(number, oracle.timed(events, first_ns + number * WAVE_NS))


def session_of(number: int, letter: str = "") -> str:
    """Return the id of a wave's session, or of another one of it."""
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
    """Return the events of all waves, in their order."""
    return tuple(event for one in waves for event in one.events)
