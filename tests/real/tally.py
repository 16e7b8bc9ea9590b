"""What a run with the real client adds up to: scenarios, payloads, comparisons, differences.

A scenario is a test in which a client lived; a comparison is an assertion of such a test that was
evaluated and held; a difference is a test that failed. pytest counts them (`conftest`), so that a
scenario does not have to. Each test is one line of JSON in the file that TEST_TALLY names.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.real.names import Names, merged


@dataclass
class Tally:
    """One test, while it runs."""

    clients: int = 0
    payloads: int = 0
    comparisons: int = 0
    names: Names = field(default_factory=dict)

    def add(self, payloads: int, names: Names) -> None:
        """Count what one home has seen."""
        self.clients += 1
        self.payloads += payloads
        self.names = merged([self.names, names])

    def as_line(self, test: str, outcome: str) -> str:
        """Return it for the file."""
        names = {group: sorted(keys) for group, keys in self.names.items()}
        kept = {"test": test, "outcome": outcome, "clients": self.clients, "names": names,
                "payloads": self.payloads, "comparisons": self.comparisons}  # fmt: skip
        return json.dumps(kept) + "\n"


current = Tally()


def begin() -> None:
    """Forget the test before."""
    global current
    current = Tally()


@dataclass(frozen=True, slots=True)
class Total:
    """All tests of a version; of one that was tried again, the last time counts."""

    tests: dict[str, dict[str, Any]]

    @classmethod
    def read(cls, file: Path) -> "Total":
        """Read the file of a run."""
        lines = map(json.loads, file.read_text().splitlines() if file.exists() else ())
        return cls({line["test"]: line for line in lines if line["clients"]})

    @property
    def names(self) -> Names:
        """All names that were seen."""
        return merged(test["names"] for test in self.tests.values())

    def __str__(self) -> str:
        """Say the figures."""
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
