"""Commands around the process stack: up, down, status, url, root."""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import click
from redis.exceptions import RedisError

from hivepipe.home import Place, absolute, locate, read_small, real_path
from hivepipe.queues import connection
from hivepipe.settings import variable
from hivepipe.stack import processes, registration, supervisor
from hivepipe.stack.hook_bundle import write_bundle_if_possible
from hivepipe.stack.lock import Stack, make_private, runtime_for
from hivepipe.stack.redis_server import answers

FOLLOW_SECS = 0.2


@click.command()
@click.option("-d", "--detach", is_flag=True, help="Return as soon as the stack is ready.")
def up(detach: bool) -> None:
    """Register the current project and start its stack, or join the one that runs."""
    os.umask(0o077)
    project, home = _to_register()
    stack = Stack(home, runtime_for(home))
    registration.register(project, home, stack.socket, sys.executable)
    write_bundle_if_possible()
    begun = time.monotonic()
    supervisor.start(stack)
    click.echo(f"ready after {time.monotonic() - begun:.2f} s: {home}")
    if detach:
        return
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        _follow_logs(stack)
    except KeyboardInterrupt:
        _stop(project, stack)


@click.command()
def down() -> None:
    """Stop the stack; until the next `up`, hooks keep their events on disk."""
    os.umask(0o077)
    place = locate(".")
    _stop(_registered(place), _stack(place))


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status(as_json: bool) -> None:
    """Show processes, queues and spool; exit with 1 if the stack is unwell."""
    place = locate(".")
    report = _report(place, _stack(place))
    if as_json:
        click.echo(json.dumps(report))
    else:
        _show(report)
    sys.exit(0 if report["healthy"] else 1)


@click.command()
def url() -> None:
    """Print the address of Redis, as RQ's own tools take it."""
    click.echo(connection.url(locate(".").socket))


@click.command()
def root() -> None:
    """Print the folder of the hooks and the workers."""
    click.echo(processes.root_folder())


def _to_register() -> tuple[str, str]:
    """Return the project and the home that `up` is about."""
    override = variable("HIVEPIPE_HOME")
    if override:
        home = absolute(override)
        make_private(home)  # before it is resolved, or a link above it would stay in the name
        home = real_path(home)
        return home, home
    here = real_path(".")
    # Hooks in a linked git worktree belong to its main checkout, and never look here.
    if "/.git/worktrees/" in read_small(f"{here}/.git"):
        here = locate(here).project
    return here, f"{here}/.hive-mind"


def _registered(place: Place) -> str:
    return place.home if variable("HIVEPIPE_HOME") else place.project


def _stack(place: Place) -> Stack:
    return Stack(place.home, os.path.dirname(place.socket))


def _stop(project: str, stack: Stack) -> None:
    registration.set_state(project, "down")
    supervisor.stop(stack)


def _report(place: Place, stack: Stack) -> dict[str, Any]:
    alive = answers(stack.socket)
    queued, accepted = _counts(stack) if alive else ({}, 0)
    entries = [
        {
            "name": entry["name"],
            "state": entry["statename"].lower(),
            "pid": entry["pid"],
            "uptime_secs": entry["now"] - entry["start"] if entry["pid"] else 0,
        }
        for entry in supervisor.processes(stack)
    ]
    spool = Path(place.home, "spool")
    return {
        "schema": 1,
        "home": place.home,
        "state": place.state,
        "healthy": supervisor.is_ready(stack) and all(e["state"] == "running" for e in entries),
        "redis": "up" if alive else "down",
        "processes": entries,
        "queues": queued,
        "spool": sum(1 for _ in spool.glob("*.json")) if spool.is_dir() else 0,
        "accepted": accepted,
    }


def _counts(stack: Stack) -> tuple[dict[str, int], int]:
    """Return the jobs that wait in each queue, and all that were ever accepted."""
    try:
        with connection.connect(stack.socket) as client:
            queued = {name: client.llen(f"rq:queue:{name}") for name in connection.QUEUES}
            return queued, int(client.get(connection.ACCEPTED_KEY) or 0)
    except RedisError:  # it went away just now
        return {}, 0


def _show(report: dict[str, Any]) -> None:
    click.echo(f"home      {report['home']} ({report['state']})")
    click.echo(f"redis     {report['redis']}")
    for entry in report["processes"]:
        line = f"{entry['name']:<9} {entry['state']}, pid {entry['pid']}"
        click.echo(f"{line}, up {entry['uptime_secs']} s")
    for name, count in report["queues"].items():
        click.echo(f"{name:<9} {count} waiting")
    click.echo(f"spool     {report['spool']} files")
    click.echo(f"accepted  {report['accepted']} jobs, ever")
    click.echo("healthy" if report["healthy"] else "not healthy")


def _follow_logs(stack: Stack) -> None:
    """Print what the processes log from now on, until the stack is gone."""
    logs = [Path(stack.home, "logs", f"{entry.name}.log") for entry in processes.PROCESSES]
    seen = {log: log.stat().st_size if log.exists() else 0 for log in logs}
    while supervisor.processes(stack):
        for log in logs:
            size = log.stat().st_size if log.exists() else 0
            if size < seen[log]:  # rotated
                seen[log] = 0
            if size > seen[log]:
                with log.open("rb") as stream:
                    stream.seek(seen[log])
                    new = stream.read()
                seen[log] += len(new)
                for line in new.decode("utf-8", "replace").splitlines():
                    click.echo(f"{log.stem:<9} {line}")
        time.sleep(FOLLOW_SECS)
