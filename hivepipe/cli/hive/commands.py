"""Command `hive`: one Claude gives work to others. Here: making a hive, starting workers."""

import sys
from pathlib import Path

import click

from hivepipe.cli.hive.check import check
from hivepipe.cli.hive.here import here_hive, say_troubles
from hivepipe.cli.hive.projects import projects
from hivepipe.cli.paths import short
from hivepipe.cli.tables import json_option, show_json
from hivepipe.errors import HiveError
from hivepipe.hive import command
from hivepipe.hive.folder import make
from hivepipe.hive.orchestrator import Orchestrator
from hivepipe.home import locate


@click.group()
def hive() -> None:
    """Give work to other Claudes, see how far they are, answer them."""


@hive.command()
@click.option("--adopt", is_flag=True, help="Take over a .hive that was not made here.")
def init(adopt: bool) -> None:
    """Make .hive in this folder, whose workers report to this project's home."""
    made, is_new = make(Path(), locate(".").home, adopt=adopt)
    click.echo(f"{short(str(made.root))} is {'ready' if is_new else 'there already'}")
    click.echo("next: hivepipe hive projects add NAME PATH, then hivepipe hive spawn NAME 'TASK'")


@hive.command()
@click.argument("project")
@click.argument("task", default="")
@click.option(
    "--file", "path", type=click.Path(exists=True, dir_okay=False), help="Holds the task."
)
@click.option("--session", default="", help="A UUID for its session; said twice, spawned once.")
@click.option("--task-id", default="", help="The task it works on (hivepipe task); else a new one.")
@click.option("--profile", default="", help="The profile it works as (HIVEPIPE_AGENT_ID).")
@click.option(
    "--dangerously-skip-permissions",
    "skips",
    is_flag=True,
    help="Hand this flag on to its Claude Code, now and when it is resumed.",
)
@json_option
def spawn(
    project: str,
    task: str,
    path: str | None,
    session: str,
    task_id: str,
    profile: str,
    skips: bool,
    as_json: bool,
) -> None:
    """Start a worker in a project and print its id; else the task comes from --file or stdin."""
    orchestrator = Orchestrator(here_hive())
    flags = (command.SKIP_PERMISSIONS,) if skips else None
    worker = orchestrator.spawn(
        project,
        _task(task, path),
        session=session,
        task_id=task_id,
        profile=profile,
        flags=flags,
    )
    say_troubles(orchestrator)
    if as_json:
        run = worker.last_run()
        show_json(id=worker.id, folder=str(worker.folder), pid=run.pid if run else None)
    else:
        click.echo(worker.id)


def _task(task: str, path: str | None) -> str:
    if task and path:
        raise click.UsageError("give the task as an argument or with --file, not both")
    if path:
        return Path(path).read_text("utf-8", "replace")
    if task and task != "-":
        return task
    if sys.stdin.isatty():
        raise HiveError("no task: give it as an argument, with --file, or on stdin")
    return sys.stdin.read()


hive.add_command(check)
hive.add_command(projects)
