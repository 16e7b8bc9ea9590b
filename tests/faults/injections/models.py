"""kill -9 of the worker that calls a language model: no call is paid twice, no answer is lost."""

import json
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from random import Random

from hivepipe.operations.summaries import summary_input_of
from tests.archive_scene import line
from tests.conftest import until
from tests.faults.injections.arena import Arena
from tests.faults.injections.damage import Damage
from tests.faults.injections.kills import handing_over, kill_at, of
from tests.faults.injections.rounds import Fault
from tests.faults.injections.wave import Wave, session_of
from tests.llm_server import Provider, provider, slow
from tests.rounds import ASKED_ROUNDS

ASKS, ASKED = "llm: begins to ask", "llm: the provider thinks"
UNANSWERED = ("llm: reserved", ASKS, ASKED, "llm: answered")
THINKS_SECS = 0.1
WORDS = "the parser drops its last line " * 8  # less would be too little for a summary
SETTINGS = {"llm_daily_calls": 9999, "llm_daily_usd": 999, "llm_daily_tokens": 99_999_999}


class Summaries:
    """A user who has agreed to summaries, and the provider."""

    provider: Provider
    hit = ""

    @contextmanager
    def scene(self, arena: Arena) -> Iterator[None]:
        """Configure the provider of the test without a cap."""
        folder = arena.home.root / ".config" / "hivepipe"
        folder.mkdir(parents=True)
        with provider() as self.provider:
            self.provider.otherwise = slow(THINKS_SECS)
            said = {"openai_url": f"{self.provider.url}/v1", **SETTINGS}
            lines = (f"{name} = {json.dumps(value)}\n" for name, value in said.items())
            (folder / "config.toml").write_text("".join(lines))
            key = folder / "credentials.env"
            key.write_text(f"OPENAI_API_KEY=sk-{'Zq7' * 16}\n")
            key.chmod(0o600)
            arena.command("summaries", "enable", "--yes")
            arena.checks.append(self.check)
            try:
                yield
            finally:
                arena.end_all()

    def kill(self, arena: Arena, wave: Wave, step: str, rng: Random) -> str:
        """Kill the worker at a step; the call that it made continues for a while."""
        # The session's id makes the transcripts of two sessions different.
        session = session_of(wave.number)
        with arena.transcript(wave).open("ab") as file:
            file.write(line(40, f"{session}: {WORDS}", sessionId=session))
        kill = self._kill_while_it_waits if step == ASKED else kill_at
        self.hit = kill(arena, wave, step, rng)
        return self.hit

    def _kill_while_it_waits(self, arena: Arena, wave: Wave, step: str, rng: Random) -> str:
        before = len(self.provider.requests)
        with handing_over(arena, wave, rng):
            until(lambda: arena.make_due() and len(self.provider.requests) > before, "nobody asked")
            time.sleep(rng.random() * THINKS_SECS / 2)
            assert arena.keep("llm").end(signal.SIGKILL) == -signal.SIGKILL
        hit = arena.phase("llm")
        return step if hit == ASKS else hit

    def check(self, wave: Wave, arena: Arena, damage: Damage) -> None:
        """Each ended session has its summary; no question was repeated, all calls were counted."""
        session = session_of(wave.number)
        rows = arena.home.rows(f"SELECT * FROM summaries WHERE session_id = '{session}'")
        summary_input = summary_input_of(str(arena.home.path), session)
        state = summary_input.excerpt.state if summary_input else ""
        damage.count("lost", state not in {row["state"] for row in rows}, f"summary of {session}")
        plain = [row["reason"] for row in rows if row["kind"] != "llm"]
        paid = len(plain) - (self.hit in UNANSWERED)
        damage.count("lost", max(paid, 0), f"answers, after a kill at {self.hit!r}: {plain}")
        bodies = Counter(json.dumps(body, sort_keys=True) for *_, body in self.provider.requests)
        again = sum(bodies.values()) - len(bodies)
        damage.count("double", again, "a question that was asked before")
        damage.count("lost", max(len(self.provider.requests) - _counted(arena), 0), "calls counted")


def _counted(arena: Arena) -> int:
    """Return the number of calls in the user's own account."""
    path = arena.home.root / "state" / "hivepipe" / "spending.db"
    with closing(sqlite3.connect(path, timeout=10)) as connection:
        (calls,) = connection.execute("SELECT COALESCE(SUM(requests), 0) FROM calls").fetchone()
    return int(calls)


summaries = Summaries()
FEW = (ASKED, "llm: results stored")  # a start of this worker takes long
EVERY = (*of("llm", "claimed", "reserved", "answered", "settled", "acknowledged"), *FEW)

FAULTS = (
    Fault(
        "kill -9 of the worker that asks a language model",
        EVERY if ASKED_ROUNDS else FEW,
        summaries.kill,
        ("writer", "slow", "llm"),
        scene=summaries.scene,
    ),
)
