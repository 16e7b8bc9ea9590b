"""What a probe found, for `doctor --probe` and the end of `init`."""

from collections import Counter
from typing import Any

from hivepipe.doctor.patient import Finding
from hivepipe.probing import Probe


def findings(found: list[Probe]) -> list[Finding]:
    """Return what is wrong: a finding for each source and reason, with the events it is about."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for each in found:
        if not each.recorded:
            groups.setdefault((each.source, each.verdict, each.trouble), []).append(each.event)
    return [
        Finding(f"hooks of {source}: {', '.join(events)}: {verdict}: {trouble}")
        for (source, verdict, trouble), events in groups.items()
    ]


def summary(found: list[Probe]) -> str:
    """Return the one line that says how it went."""
    recorded = [each for each in found if each.recorded]
    if not found:
        return "there are no hooks to fire"
    said = f"{len(recorded)} of {len(found)} hooks recorded an event"
    if any(each.by_hand for each in recorded):
        said += " (kept on disk and applied from there: no stack runs)"
    others = Counter(each.verdict for each in found if not each.recorded)
    return ", ".join([said, *(f"{count} {verdict}" for verdict, count in others.items())])


def entries(found: list[Probe]) -> list[dict[str, Any]]:
    """Return what `--json` shows."""
    return [
        {
            "source": each.source,
            "event": each.event,
            "verdict": each.verdict,
            "by_hand": each.by_hand,
            "trouble": each.trouble,
        }
        for each in found
    ]
