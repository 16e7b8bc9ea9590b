"""Command `doctor`: what is wrong, and the command that mends it."""

import sys

import click

from hivepipe.cli.tables import json_option, printable, show_json
from hivepipe.doctor.checks import CHECKS, examine
from hivepipe.doctor.patient import Finding, Patient
from hivepipe.home import locate
from hivepipe.stack.lock import Stack


@click.command()
@json_option
def doctor(as_json: bool) -> None:
    """Look for whatever may be wrong here; exit with 1 if anything is."""
    place = locate(".")
    patient = Patient(place, Stack.of(place))
    found = list(examine(patient))
    healthy = all(finding.is_note for _, finding in found)
    if as_json:
        entries = [
            {"check": name, "is_note": entry.is_note, "text": entry.text, "mend": entry.mend}
            for name, entry in found
        ]
        hooks = patient.who_runs_hooks
        show_json(home=place.home, hooks=hooks, healthy=healthy, findings=entries)
    else:
        click.echo(f"home {place.home} ({place.state})")
        for runner in patient.who_runs_hooks:
            click.echo(f"hooks run by {printable(runner)}")
        for _, finding in sorted(found, key=lambda pair: pair[1].is_note):
            _show(finding)
        wrong = len([entry for _, entry in found if not entry.is_note])
        click.echo(f"{len(CHECKS)} checks: {f'{wrong} found' if wrong else 'all is well'}")
    sys.exit(0 if healthy else 1)


def _show(finding: Finding) -> None:
    click.echo(f"{'note ' if finding.is_note else 'WRONG'} {printable(finding.text)}")
    if finding.mend:
        click.echo(f"      mend: {printable(finding.mend)}")
