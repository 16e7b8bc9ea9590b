"""The result of all checks, as `hivepipe doctor` and the page show it."""

from dataclasses import dataclass
from typing import Any

from hivepipe.doctor.checks import examine
from hivepipe.doctor.facts import Facts, Finding


@dataclass(frozen=True)
class Examination:
    """What runs the hooks, and the findings, each with the name of its check."""

    hooks: list[str]
    found: list[tuple[str, Finding]]

    @property
    def healthy(self) -> bool:
        """Tell whether there are only notes."""
        return all(finding.is_note for _, finding in self.found)

    def entry(self) -> dict[str, Any]:
        """Return it in the form of `hivepipe doctor --json`."""
        findings = [
            {"check": name, "is_note": finding.is_note, "text": finding.text, "mend": finding.mend}
            for name, finding in self.found
        ]
        return {"hooks": self.hooks, "healthy": self.healthy, "findings": findings}


def examined(facts: Facts) -> Examination:
    """Run all checks, which write nothing."""
    return Examination(facts.who_runs_hooks, list(examine(facts)))
