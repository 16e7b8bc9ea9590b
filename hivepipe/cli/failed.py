"""Command `failed`: list, requeue or delete failed jobs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import click

from hivepipe.cli.parameters import CheckedCommand, together
from hivepipe.cli.tables import (
    Column,
    output_options,
    show_entries,
    show_json,
    show_table,
    shown_time,
)
from hivepipe.cli.terminal import (
    confirm_or_end,
    say,
    say_field,
    say_json,
    say_prose,
    unbroken,
    yes_option,
)
from hivepipe.db.location import database_path
from hivepipe.errors import HivepipeError
from hivepipe.files.action_log import actions
from hivepipe.home import Place, locate
from hivepipe.queue.failed_jobs import FailedJob, FailedJobs, Verb, failed_jobs, retry_or_discard
from hivepipe.stack.ping import answers
from hivepipe.stack.redis_access import available_redis, ensure_running
from hivepipe.stack.runtime_folder import Stack
from hivepipe.text.plurals import counted

BY = "command"
operation_option = click.option(
    "--operation", metavar="OP", help="Only jobs of this operation; `?` means unreadable jobs."
)


@click.group()
def failed() -> None:
    """List, `show`, `retry` and `discard` failed jobs; `actions` lists who did so."""


selection_options = together(
    click.argument("job_id", metavar="[ID]", required=False),
    click.option("--all", "everything", is_flag=True, help="All failed jobs."),
    operation_option,
)


def _check(*, job_id: str | None, everything: bool, operation: str | None, **_: Any) -> None:
    if sum((bool(job_id), everything, bool(operation))) != 1:
        raise click.UsageError("one of ID, --all and --operation OP is required")


@failed.command("list")
@operation_option
@output_options
def list_failed(operation: str | None) -> None:
    """List the failed jobs and the reason of each."""
    with _failed_jobs(locate(".")) as store:
        found = _jobs(store, operation)
    if show_json(failed=[_described(job) for job in found]):
        return
    rows = [
        (job.id, job.operation, job.queue, shown_time(job.failed_at), job.session[:8], job.headline)
        for job in found
    ]
    show_table(("id", "operation", "queue", "failed", "session", "reason"), rows, "no failed jobs")


@failed.command()
@click.argument("job_id", metavar="ID")
@output_options
def show(job_id: str) -> None:
    """Show one failed job, redacted, and how to repair it.

    ID may be a prefix.
    """
    place = locate(".")
    with _failed_jobs(place) as store:
        job = _failed_job(store, job_id)
    if show_json(**_described(job), database=str(database_path(place.home))):
        return
    for name, value in (
        ("id", job.id),
        ("operation", job.operation),
        ("description", job.description),
        ("session", job.session),
        ("queue", f"{job.queue}, retried in {job.target}"),
        ("attempts", job.attempts),
        ("event", shown_time(job.event_time)),
        ("failed", shown_time(job.failed_at)),
        ("reason", job.reason),
    ):
        say_field(name, str(value), 12)
    if job.payload is None:
        say("payload      cannot be read")
    else:
        say("payload")
        say_json(job.payload, indent=2)
    for line in _steps(job, str(database_path(place.home))):
        say_prose(line, 5)


@failed.command(cls=CheckedCommand, check=_check)
@selection_options
def retry(job_id: str | None, operation: str | None, **_: Any) -> None:
    """Requeue failed jobs: one (ID), all, or all of an operation."""
    chosen, retried = _act("retry", job_id, operation)
    say(f"{retried} sent back to the queues")
    if retried:
        _start_stack(locate("."))
    if retried < chosen:
        lost = counted(chosen - retried, "job", "have")
        say(f"{lost} no data left: discard with `hivepipe failed discard`", err=True)
        click.get_current_context().exit(1)


@failed.command(cls=CheckedCommand, check=_check)
@selection_options
@yes_option
def discard(job_id: str | None, operation: str | None, **_: Any) -> None:
    """Delete failed jobs: one (ID), all, or all of an operation."""
    say(f"{_act('discard', job_id, operation)[1]} discarded")


@failed.command("actions")
@output_options
def list_actions() -> None:
    """List the actions on failed jobs and who took them, newest first."""
    found = [asdict(each) for each in actions(locate(".").home)]
    columns: dict[str, Column] = {
        "time": "at",
        "user": "user",
        "by": "by",
        "action": "action",
        "jobs": lambda each: f"{each['done']} of {each['chosen']}" if each["chosen"] else "",
        "operations": lambda each: ", ".join(each["operations"]),
    }
    show_entries("actions", found, columns, without="no actions")


def _act(verb: Verb, job_id: str | None, operation: str | None) -> tuple[int, int]:
    """Retry or discard the selected jobs; return (number selected, number acted upon)."""
    place = locate(".")
    with _failed_jobs(place) as store:
        jobs = [_failed_job(store, job_id)] if job_id else _jobs(store, operation)
        if store is None or not jobs:
            return 0, 0
        if verb == "discard":
            first, many = f"{jobs[0].id} ({jobs[0].operation})", counted(len(jobs), "failed job")
            confirm_or_end(f"Discard {many if jobs[1:] else first}?")
        return len(jobs), retry_or_discard(store, place.home, verb, jobs, BY).done


@contextmanager
def _failed_jobs(place: Place) -> Iterator[FailedJobs | None]:
    """Yield the failed jobs of a home, or None without Redis data. The stack need not run."""
    with available_redis(Stack.of(place)) as address:
        if not address:
            yield None
            return
        with failed_jobs(address) as store:
            yield store


def _start_stack(place: Place) -> None:
    """Start the stack if it shut down because it was idle, but not if the user stopped it."""
    if place.state == "on" and place.python:
        ensure_running(place)
    elif not answers(place.socket):
        say("the stack is not running: the jobs wait until `hivepipe up`", err=True)


def _jobs(store: FailedJobs | None, operation: str | None) -> list[FailedJob]:
    return store.jobs(operation or "") if store else []


def _failed_job(store: FailedJobs | None, job_id: str) -> FailedJob:
    if store is None:
        raise HivepipeError(f"no failed job has the id {job_id}: see `hivepipe failed list`")
    return store.job(job_id)


def _steps(job: FailedJob, database: str) -> list[str]:
    """Return the lines that explain how to repair a job."""
    retry_it = f"`hivepipe failed retry {job.id}`"
    drop_it = f"`hivepipe failed discard {job.id}`"
    if job.missing_parent is None:
        return ["", f"try again: {retry_it}", f"or drop it: {drop_it}"]
    kind, missing = job.missing_parent
    mend = {
        "swarm": f"restore the swarm (a row with this id in `swarms`), or give session "
        f"{job.session} a `swarm_id` that exists",
        "session": "resume the session in Claude Code; if it was deleted, restore it (a row with "
        "this id in `sessions`)",
    }[kind]
    return [
        "",
        f"missing {kind}: {missing}",
        f"  1. {mend}; the database is {unbroken(database)}",
        f"  2. {retry_it}",
        f"or drop it: {drop_it}",
    ]


def _described(job: FailedJob) -> dict[str, Any]:
    missing = job.missing_parent
    return {
        "id": job.id.encode("utf-8", "replace").decode(),
        "operation": job.operation,
        "queue": job.queue,
        "description": job.description,
        "session": job.session or None,
        "attempts": job.attempts,
        "failed_at": job.failed_at or None,
        "event_time": job.event_time or None,
        "reason": job.reason,
        "missing": {"kind": missing[0], "id": missing[1]} if missing else None,
        "payload": job.payload,
    }
