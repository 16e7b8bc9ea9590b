"""Events that arrive twice, in any order, by Redis and by the spool."""

from random import Random

from hivepipe.queue.spool import write_spool
from tests.faults import oracle
from tests.faults.injections.arena import Arena
from tests.faults.injections.rounds import Fault
from tests.faults.injections.wave import Wave

TWICE, BOTH, BACKWARDS = "each twice", "each by Redis and by the spool", "the last one first"


def mix_up(arena: Arena, wave: Wave, step: str, rng: Random) -> str:
    """Push the wave in one of these ways."""
    sent = [some for some in oracle.messages(wave.events, arena.project, arena.swarm) if some]
    if step == TWICE:
        sent += sent
        rng.shuffle(sent)
    elif step == BACKWARDS:
        sent.reverse()
    known = [arena.send(some) == 0 for some in sent]
    if step == BOTH:
        rng.shuffle(sent)
        for number, some in enumerate(sent):
            write_spool(f"{arena.home.path}/spool", oracle.FIRST_NS + number, some)
    return step if step != TWICE or sum(known) >= len(known) / 2 else ""


FAULTS = (Fault("doubled and reordered events", (TWICE, BOTH, BACKWARDS), mix_up),)
