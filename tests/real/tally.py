"""Counts of a run with the real client: scenarios, payloads, comparisons and differences.

A scenario is a test that started a client. A comparison is an assertion of such a test that held. A
difference is a test that failed. The hooks in `conftest` do the counting. Each test becomes one
line of JSON in the file TEST_TALLY.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.real.names import Names, merged


@dataclass
class Tally:
    """The counts of the running test."""

    clients: int = 0
    payloads: int = 0
    comparisons: int = 0
    names: Names = field(default_factory=dict)

    def add(self, payloads: int, names: Names) -> None:
        self.clients += 1
        self.payloads += payloads
        self.names = merged([self.names, names])

    def as_line(self, test: str, outcome: str) -> str:
        names = {group: sorted(keys) for group, keys in self.names.items()}
        kept = {"test": test, "outcome": outcome, "clients": self.clients, "names": names,
                "payloads": self.payloads, "comparisons": self.comparisons}  # fmt: skip
        return json.dumps(kept) + "\n"


current = Tally()


def begin() -> None:
    global current
    current = Tally()


@dataclass(frozen=True, slots=True)
class Total:
    """The counts of all tests of a version; a repeated test counts with its last run."""

    tests: dict[str, dict[str, Any]]

    @classmethod
    def read(cls, file: Path) -> "Total":
        lines = map(json.loads, file.read_text().splitlines() if file.exists() else ())
        return cls({line["test"]: line for line in lines if line["clients"]})

    @property
    def names(self) -> Names:
        """All names that the tests have seen."""
        return merged(test["names"] for test in self.tests.values())

    def __str__(self) -> str:
        """Return the figures in one line."""
        expected = self._with("expected")
        return (
            f"{len(self.tests)} scenarios, {self._sum('payloads')} payloads, "
            f"{self._sum('comparisons')} comparisons, {self._with('failed')} differences"
            + (f" and {expected} expected" if expected else "")
        )

    def _with(self, outcome: str) -> int:
        return sum(test["outcome"] == outcome for test in self.tests.values())

    def _sum(self, name: str) -> int:
        counts: Iterable[int] = (test[name] for test in self.tests.values())
        return sum(counts)
