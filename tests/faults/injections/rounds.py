"""Rounds of one fault: inject it during a wave of events, check the result, repeat."""

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from random import Random

import pytest

from tests.faults.injections.arena import Arena
from tests.faults.injections.damage import Damage
from tests.faults.injections.wave import Wave
from tests.rounds import ASKED_ROUNDS, SEED, asked

MOST_ATTEMPTS = 25  # limit of attempts until the step of the round was hit

# Injects the fault during a wave and returns the step that was hit by the process' own marks, or
# "".
Inject = Callable[[Arena, Wave, str, Random], str]


@dataclass(frozen=True)
class Fault:
    """A fault with the processes that it needs and the steps at which it has to be seen."""

    name: str
    steps: tuple[str, ...]
    inject: Inject
    processes: tuple[str, ...] = ("writer",)
    scene: Callable[[Arena], AbstractContextManager[None]] = lambda _: nullcontext()


@dataclass
class Outcome:
    """The steps that the rounds of a fault have hit, and the damage."""

    hits: Counter[str] = field(default_factory=Counter)
    damage: Counter[str] = field(default_factory=Counter)


class Rounds:
    """The rounds of one fault in one arena."""

    def __init__(self, fault: Fault, arena: Arena, faults: int) -> None:
        """`faults` is the number of faults that share the rounds of HIVEPIPE_TEST_ROUNDS.

        By default there is one round for each step.
        """
        self._fault = fault
        self._arena = arena
        self._seed = asked("HIVEPIPE_TEST_SEED") or SEED
        self._alone = asked("HIVEPIPE_TEST_ROUND")
        self._numbers = range(max(-(-ASKED_ROUNDS // faults), len(fault.steps)))
        if self._alone is not None:
            self._numbers = range(self._alone, self._alone + 1)
        self.outcome = Outcome()

    def run(self) -> None:
        """Run the rounds; a failure names the round and how to repeat it."""
        with self._fault.scene(self._arena):
            for role in self._fault.processes:
                self._arena.keep(role)
            for number in self._numbers:
                self._round(number)
            self._arena.settle_all()
            self._judge(self._arena.check_all(), f"after {len(self._numbers)} rounds")
        if self._alone is None:
            assert set(self.outcome.hits) >= set(self._fault.steps)

    def _round(self, number: int) -> None:
        """Inject the fault until the step of this round was hit; hits of other steps count too."""
        aim = self._fault.steps[number % len(self._fault.steps)]
        for attempt in range(MOST_ATTEMPTS):
            rng = Random(f"{self._seed} {self._fault.name} {number} {attempt}")
            wave = self._arena.new_wave(rng)
            hit = self._fault.inject(self._arena, wave, aim, rng)
            self._arena.settle_all()
            self._judge(self._arena.check(), f"round {number}, attempt {attempt}, at {hit!r}")
            if hit in self._fault.steps:
                self.outcome.hits[hit] += 1
            if hit == aim:
                return
        pytest.fail(f"{self._fault.name}, round {number}: never seen at {aim!r}")

    def _judge(self, damage: Damage, when: str) -> None:
        self.outcome.damage.update(damage.counts)
        if damage:
            again = f"HIVEPIPE_TEST_SEED={self._seed} HIVEPIPE_TEST_ROUND=<round>"
            said = "\n".join(damage.seen[:12])
            pytest.fail(f"{self._fault.name}, {when}; again by {again}:\n{said}")
