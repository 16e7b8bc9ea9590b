"""Command `doctor`: the problems of an installation and their repairs."""

import sys

import click

from hivepipe.cli.probe import entries as shown
from hivepipe.cli.probe import findings, summary
from hivepipe.cli.tables import json_option, show_json
from hivepipe.cli.terminal import say, say_prose
from hivepipe.doctor.checks import CHECKS, Examination, examined
from hivepipe.doctor.facts import Facts, Finding
from hivepipe.doctor.hook_in_use import hook_in_use
from hivepipe.doctor.probing import probe
from hivepipe.home import locate
from hivepipe.stack.runtime_folder import Stack
from hivepipe.text.plurals import counted


@click.command()
@click.option("--probe", "fire", is_flag=True, help="Also send a test event through every hook.")
@json_option
def doctor(fire: bool) -> None:
    """Check the installation and name the repair of each problem.

    Exits with 1 if there is a problem.
    """
    place = locate(".")
    facts = Facts(place, Stack.of(place))
    result = examined(facts)
    hook = hook_in_use()
    probes = probe(facts, with_stack=True) if fire else []
    of_probe = [("probe", each) for each in findings(probes)]
    result = Examination(result.hooks, result.found + of_probe)
    fired = {"probe": shown(probes)} if fire else {}
    measured = hook.entry() if hook else None
    if not show_json(home=place.home, hook=measured, **result.entry(), **fired):
        say(f"home {place.home} ({place.state})")
        for runner in result.hooks:
            say(f"hooks run by {runner}")
        if hook:
            say_prose(hook.line(), 6)
        for _, finding in sorted(result.found, key=lambda pair: pair[1].is_note):
            _show(finding)
        wrong = len([entry for _, entry in result.found if not entry.is_note])
        if fire:
            say_prose(f"probe: {summary(probes)}", 7)
        verdict = counted(wrong, "problem") if wrong else _well(fire)
        say_prose(f"{len(CHECKS)} checks: {verdict}", 6)
    sys.exit(0 if result.healthy else 1)


def _well(fired: bool) -> str:
    """Return the line for no problems; after a probe (`fired`), it also says that hooks record."""
    if fired:
        return "no problem found, and every hook records"
    return "no problem found; `hivepipe doctor --probe` checks whether hooks record"


def _show(finding: Finding) -> None:
    say_prose(f"{'note ' if finding.is_note else 'WRONG'} {finding.text}", 8)
    if finding.mend:
        say(f"      repair: {finding.mend}")
