"""Command `task`: add, assign, follow and cancel tasks."""

import click

from hivepipe.cli.here import store_here
from hivepipe.cli.tables import json_option, output_options, show_entries, show_entry, show_json
from hivepipe.cli.terminal import say
from hivepipe.db import tasks
from hivepipe.home import locate
from hivepipe.operations.tasks import task_board

_COLUMNS = {
    "task": "id",
    "status": "status",
    "last": "updated_at",
    "session": "session_id",
    "progress": "progress",
    "text": "text",
}


_unknown = click.option("--unknown", is_flag=True, help="Accept an id that is not recorded here.")


@click.group()
def task() -> None:
    """Give tasks to sessions, follow them and cancel them."""


@task.command()
@click.argument("text")
@click.option("--id", "named", metavar="ID", default="", help="Id of the task; default: a new one.")
@click.option("--session", metavar="ID", default="", help="Assign the task to this session.")
@_unknown
@json_option
def add(text: str, named: str, session: str, unknown: bool) -> None:
    """Add a task and print its id.

    A session that starts with HIVEPIPE_TASK_ID=ID works on this task.
    """
    with task_board(locate(".").home) as board:
        if session:
            session = board.session(session, unknown=unknown)
        added = board.add(text, named)
        if session:
            board.assign(added, session, unknown=True)
    if not show_json(id=added, session=session or None):
        say(added)


@task.command(name="list")
@click.option("--all", "with_finished", is_flag=True, help="Include finished tasks.")
@output_options
def list_tasks(with_finished: bool) -> None:
    """List the open tasks, most recently changed first."""
    with store_here() as store:
        found = tasks.list_tasks(store, with_finished)
    show_entries("tasks", found, _COLUMNS)


@task.command()
@click.argument("task_id", metavar="ID")
@output_options
def show(task_id: str) -> None:
    """Show one task; ID may be a prefix, as in the other commands."""
    with store_here() as store:
        found = tasks.find_task(store, store.full_id("task", task_id))
    show_entry(found or {})


@task.command()
@click.argument("task_id", metavar="ID")
@click.argument("text")
def progress(task_id: str, text: str) -> None:
    """Record the progress of a task."""
    with task_board(locate(".").home) as board:
        say(f"{board.progress(task_id, text)}: {text}")


@task.command()
@click.argument("task_id", metavar="ID")
@click.argument("session")
@_unknown
def assign(task_id: str, session: str, unknown: bool) -> None:
    """Assign a task to a running session, from its next tool call on.

    SESSION may be a prefix.
    """
    with task_board(locate(".").home) as board:
        assigned, session = board.assign(task_id, session, unknown=unknown)
    say(f"{assigned} is the task of session {session}")


@task.command()
@click.argument("task_id", metavar="ID")
def done(task_id: str) -> None:
    """Mark a task as done."""
    with task_board(locate(".").home) as board:
        say(f"{board.finish(task_id)} is done")


@task.command()
@click.argument("task_id", metavar="ID")
@click.option("--reason", default="", help="Reason; the agent is told.")
@_unknown
def cancel(task_id: str, reason: str, unknown: bool) -> None:
    """Cancel a task: its sessions are denied every further tool call."""
    with task_board(locate(".").home) as board:
        cancelled = board.cancel(task_id, reason, unknown=unknown)
    say(f"{cancelled} is cancelled; `hivepipe task reopen {cancelled}` reopens it")


@task.command()
@click.argument("task_id", metavar="ID")
def reopen(task_id: str) -> None:
    """Reopen a task that is done or cancelled."""
    with task_board(locate(".").home) as board:
        say(f"{board.reopen(task_id)} is open")
