"""Output of a probe of the hooks, for `doctor --probe`, `init` and `migrate`."""

import os
from collections import Counter
from typing import Any

import click

from hivepipe.cli.terminal import say_prose
from hivepipe.doctor.facts import Facts, Finding
from hivepipe.doctor.probing import Probe, probe
from hivepipe.home import locate
from hivepipe.stack.runtime_folder import Stack

no_probe_option = click.option(
    "--no-probe", is_flag=True, help="Do not send a test event through the hooks at the end."
)


def probe_here() -> list[Probe]:
    """Send a test event through every hook of the current project; start no stack."""
    os.umask(0o077)
    place = locate(".")
    return probe(Facts(place, Stack.of(place)), with_stack=False)


def is_good(found: list[Probe]) -> bool:
    """Return True if every test event was recorded, or the project is switched off."""
    return locate(".").state == "off" or all(each.recorded for each in found)


def show_probe(found: list[Probe]) -> None:
    """Print the summary of a probe on one line, and each of its problems on a line below."""
    say_prose(f"probe    {summary(found)}")
    if not is_good(found):
        for finding in findings(found):
            say_prose(f"         {finding.text}", err=True)


def findings(found: list[Probe]) -> list[Finding]:
    """Return a finding for each source and kind of failure of the events that were not recorded."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for each in found:
        if not each.recorded:
            groups.setdefault((each.source, each.verdict, each.trouble), []).append(each.event)
    return [
        Finding(f"hooks of {source}: {', '.join(events)}: {verdict}: {trouble}")
        for (source, verdict, trouble), events in groups.items()
    ]


def summary(found: list[Probe]) -> str:
    """Return one line that counts the hooks by the result of their test event."""
    recorded = [each for each in found if each.recorded]
    if not found:
        return "there are no hooks to test"
    text = f"{len(recorded)} of {len(found)} hooks recorded an event"
    if any(each.by_hand for each in recorded):
        text += " (from disk: no stack runs)"
    others = Counter(each.verdict for each in found if not each.recorded)
    return ", ".join([text, *(f"{count} {verdict}" for verdict, count in others.items())])


def entries(found: list[Probe]) -> list[dict[str, Any]]:
    names = ("source", "event", "verdict", "by_hand", "trouble")
    return [{name: getattr(each, name) for name in names} for each in found]
