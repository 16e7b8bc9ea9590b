"""The result of all checks, as `hivepipe doctor` and the page show it."""

from dataclasses import dataclass
from typing import Any

from hivepipe.doctor.checks import examine
from hivepipe.doctor.facts import Facts, Finding


@dataclass(frozen=True)
class Examination:
    """The sources of the hooks, and the findings with the names of their checks."""

    hooks: list[str]
    found: list[tuple[str, Finding]]

    @property
    def healthy(self) -> bool:
        """Tell whether all findings are notes."""
        return all(finding.is_note for _, finding in self.found)

    def entry(self) -> dict[str, Any]:
        """Return the result in the form of `hivepipe doctor --json`."""
        findings = [
            {"check": name, "is_note": finding.is_note, "text": finding.text, "mend": finding.mend}
            for name, finding in self.found
        ]
        return {"hooks": self.hooks, "healthy": self.healthy, "findings": findings}


def examined(facts: Facts) -> Examination:
    """Run all checks; they change nothing."""
    return Examination(facts.who_runs_hooks, list(examine(facts)))
