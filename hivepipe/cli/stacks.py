"""Command `stacks`: every stack of the user."""

import click

from hivepipe.cli.tables import json_option, show_json, show_table
from hivepipe.stack.all_stacks import KnownStack, is_default, known_stacks


@click.command()
@json_option
def stacks(as_json: bool) -> None:
    """List all of your stacks, running or not."""
    found = known_stacks()
    if as_json:
        show_json(stacks=[_entry(known) for known in found])
        return
    rows = [
        (
            known.stack.home,
            known.state,
            _age(known.age_secs) if known.processes else "",
            f"{known.memory_bytes / 1e6:.0f} MB" if known.processes else "",
            len(known.processes) or "",
            "every unregistered project" if is_default(known.stack) else known.project,
        )
        for known in found
    ]
    show_table(("home", "state", "age", "memory", "processes", "project"), rows)


def _entry(known: KnownStack) -> dict[str, object]:
    return {
        "home": known.stack.home,
        "project": known.project,
        "state": known.state,
        "age_secs": round(known.age_secs, 1),
        "memory_bytes": known.memory_bytes,
        "pids": [process.pid for process in known.processes],
    }


def _age(secs: float) -> str:
    """Return an age in its two largest units."""
    minutes, seconds = divmod(int(secs), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
