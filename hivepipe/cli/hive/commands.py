"""Command `hive`: create a hive, start workers and control them."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import click

from hivepipe.cli.hive.check import check
from hivepipe.cli.hive.costs import costs
from hivepipe.cli.hive.here import here_hive, say_troubles
from hivepipe.cli.hive.learnings import learnings
from hivepipe.cli.hive.monitor import monitor
from hivepipe.cli.hive.projects import projects
from hivepipe.cli.hive.rights import ask_once, rights
from hivepipe.cli.hive.transcript import transcript
from hivepipe.cli.parameters import given
from hivepipe.cli.tables import json_option, show_json
from hivepipe.cli.terminal import confirm_or_end, say, short, yes_option
from hivepipe.db.listings import listings
from hivepipe.db.location import database_path
from hivepipe.db.tasks import find_task
from hivepipe.errors import HiveError
from hivepipe.home import locate
from hivepipe.orchestrator import prompts, retire
from hivepipe.orchestrator.folder import Hive, make_hive
from hivepipe.orchestrator.orchestrator import Orchestrator
from hivepipe.orchestrator.rights import ALL
from hivepipe.orchestrator.worker import Worker

_OLD_NAMES = {"cost": "costs", "log": "transcript"}


class _Hive(click.Group):
    """The command group `hive`. It accepts old command names, which its help does not list."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Find a command by its name or an old name."""
        return super().get_command(ctx, _OLD_NAMES.get(cmd_name, cmd_name))


@click.group(cls=_Hive)
def hive() -> None:
    """Start workers on tasks, follow them and answer their questions."""


@hive.command()
@click.option("--adopt", is_flag=True, help="Use an existing .hive that was created elsewhere.")
def init(adopt: bool) -> None:
    """Create .hive in this folder.

    The hive's workers are recorded in this project's home.
    """
    made, is_new = make_hive(Path(), locate(".").home, adopt=adopt)
    say(f"{short(str(made.root))} is {'ready' if is_new else 'ready, it exists already'}")
    say("next: hivepipe hive projects add NAME PATH, then hivepipe hive spawn NAME 'TASK'")


@hive.command()
@click.argument("project")
@click.argument("task", default="")
@click.option(
    "--file",
    "path",
    metavar="FILE",
    type=click.File("rb"),
    help="File with the task; `-` is stdin.",
)
@click.option(
    "--session",
    metavar="UUID",
    default="",
    help="UUID of the worker's session; a second spawn with this UUID starts nothing.",
)
@click.option(
    "--task-id",
    metavar="ID",
    default="",
    help="Task of the worker (`hivepipe task`); by default a new one.",
)
@click.option(
    "--profile", metavar="ID", default="", help="Profile of the worker (HIVEPIPE_AGENT_ID)."
)
@click.option(
    "--dangerously-skip-permissions",
    "skips",
    is_flag=True,
    help="Pass this flag to Claude Code, also when the worker is resumed.",
)
@json_option
def spawn(
    project: str,
    task: str,
    path: BinaryIO | None,
    session: str,
    task_id: str,
    profile: str,
    skips: bool,
) -> None:
    """Start a worker in a project and print its id.

    Without TASK, the task comes from --file or stdin.
    """
    orchestrator = Orchestrator(here_hive())
    if not skips:
        ask_once()
    flags = ALL.flags if skips else None
    worker = orchestrator.spawn(
        project,
        _task(task, path),
        session=session,
        task_id=task_id,
        profile=profile,
        flags=flags,
    )
    say_troubles(orchestrator)
    run = worker.last_run()
    if not show_json(id=worker.id, folder=str(worker.folder), pid=run.pid if run else None):
        say(worker.id)


def _task(task: str, file: BinaryIO | None) -> str:
    if task and file:
        raise click.UsageError("give the task as an argument or with --file, not both")
    if task and task != "-":
        return task
    if file is None:
        if sys.stdin.isatty():
            raise HiveError("no task: give it as an argument, with --file, or on stdin")
        file = sys.stdin.buffer
    return file.read().decode("utf-8", "replace")


@hive.command()
@click.argument("start", metavar="ID")
@click.argument("text")
def resume(start: str, text: str) -> None:
    """Resume a worker's session with a message.

    ID may be a prefix.
    """
    _do(start, lambda orchestrator, worker: orchestrator.resume(worker, _answer(text)))


@hive.command()
@click.argument("start", metavar="ID")
@click.argument("text", default="")
@click.option(
    "--option", metavar="N", type=click.IntRange(1), default=None, help="Number of the option."
)
def answer(start: str, text: str, option: int | None) -> None:
    """Answer a worker's question.

    The answer is TEXT, one of the options, or both.
    """
    _do(start, lambda orchestrator, worker: orchestrator.answer(worker, text, option or 0))


@hive.command()
@click.argument("start", metavar="ID")
def park(start: str) -> None:
    """Make a worker write down what it learned."""
    _do(start, lambda orchestrator, worker: orchestrator.park(worker))


def _do(start: str, act: Callable[[Orchestrator, Worker], None]) -> None:
    orchestrator = Orchestrator(here_hive())
    worker = orchestrator.hive.worker(start)
    act(orchestrator, worker)
    say_troubles(orchestrator)
    run = worker.last_run()
    say(f"{worker.id} is working (run {run.number if run else 0})")


def _answer(text: str) -> str:
    if not text.strip():
        raise HiveError("the message is empty")
    return prompts.ANSWER.format(text=text)


@hive.command()
@click.argument("starts", metavar="ID...", nargs=-1, required=True)
def archive(starts: tuple[str, ...]) -> None:
    """Move finished workers into .hive/archive.

    Their texts are redacted, their transcripts compressed.
    """
    found = here_hive()
    for worker in [found.worker(start) for start in starts]:
        task = worker.card().task_id
        say(short(str(retire.archive(found, worker))))
        _say_task(found, task)


@hive.command()
@click.argument("starts", metavar="ID...", nargs=-1, required=True)
@yes_option
def delete(starts: tuple[str, ...]) -> None:
    """Delete the folders of workers.

    Their costs stay recorded.
    """
    found = here_hive()
    workers = [found.worker(start) for start in starts]
    if not given("yes"):
        for worker in workers:
            say(worker.id)
        confirm_or_end("delete for good?")
    for worker in workers:
        task = worker.card().task_id
        retire.delete(found, worker)
        say(f"{worker.id} is deleted")
        _say_task(found, task)


def _say_task(hive: Hive, task: str) -> None:
    """Print the state of the worker's task if the task stays open or is cancelled.

    Only a task that `spawn` created is closed with its worker.
    """
    with listings(database_path(hive.home)) as store:
        found = find_task(store, task) if task else None
    if found and found["status"] == "open":
        say(f"task {task} stays open: hivepipe task done {task} closes it", err=True)
    elif found and found["status"] == "cancelled":
        say(f"task {task} is cancelled: {found['reason'] or 'no reason given'}", err=True)


for each in (check, costs, learnings, transcript, monitor, projects, rights):
    hive.add_command(each)
