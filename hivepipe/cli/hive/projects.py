"""Command `hive projects`: the projects in which workers can be started."""

import click

from hivepipe.cli.hive.here import here_hive
from hivepipe.cli.tables import json_option, show_json, show_table
from hivepipe.cli.terminal import say
from hivepipe.orchestrator import projects as listed


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def projects(ctx: click.Context) -> None:
    """List, `add` and `remove` the projects of workers."""
    if ctx.invoked_subcommand:
        return
    found = listed.read(here_hive().projects_file)
    if not show_json(projects=found):
        show_table(("project", "path"), sorted(found.items()))


@projects.command()
@click.argument("name")
@click.argument("path")
def add(name: str, path: str) -> None:
    """Add a project to the list."""
    hive = here_hive()
    added = listed.add(hive.projects_file, name, path)
    hive.show_projects()
    say(f"{name}: {added}")


@projects.command()
@click.argument("name")
def remove(name: str) -> None:
    """Remove a project from the list; its workers stay."""
    hive = here_hive()
    listed.remove(hive.projects_file, name)
    hive.show_projects()
