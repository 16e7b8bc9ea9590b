"""Command `stacks`: every stack of the user."""

from typing import Any

import click

from hivepipe.cli.tables import Column, json_option, show_entries
from hivepipe.home import default_home
from hivepipe.stack.all_stacks import KnownStack, known_stacks
from hivepipe.stack.stack_processes import ProcessTable


@click.command()
@json_option
def stacks() -> None:
    """List all of your stacks, running or not."""
    columns: dict[str, Column] = {
        "home": "home",
        "state": "state",
        "age": lambda stack: _age(stack["age_secs"]) if stack["pids"] else "",
        "memory": lambda stack: f"{stack['memory_bytes'] / 1e6:.0f} MB" if stack["pids"] else "",
        "processes": lambda stack: len(stack["pids"]) or "",
        "project": _projects,
    }
    show_entries("stacks", map(_entry, known_stacks(ProcessTable())), columns)


def _projects(stack: dict[str, Any]) -> object:
    is_default = stack["home"] == default_home()
    return "every unregistered project" if is_default else stack["project"]


def _entry(known: KnownStack) -> dict[str, Any]:
    return {
        "home": known.stack.home,
        "project": known.project,
        "state": known.state,
        "age_secs": round(known.age_secs, 1),
        "memory_bytes": known.memory_bytes,
        "pids": [process.pid for process in known.processes],
    }


def _age(secs: float) -> str:
    """Return an age in its two largest units, such as days and hours."""
    minutes, seconds = divmod(int(secs), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
