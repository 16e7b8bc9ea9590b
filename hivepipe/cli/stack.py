"""Commands around the process stack: up, down, url, root."""

import os
import signal
import sys
import time
from pathlib import Path

import click

from hivepipe.home import Place, absolute, locate, main_checkout, real_path
from hivepipe.queues import connection
from hivepipe.settings import variable
from hivepipe.stack import processes, registration, supervisor
from hivepipe.stack.hook_bundle import write_bundle_if_possible
from hivepipe.stack.lock import Stack, make_private, runtime_for

FOLLOW_SECS = 0.2


@click.command()
@click.option("-d", "--detach", is_flag=True, help="Return as soon as the stack is ready.")
@click.option("--adopt", is_flag=True, help="Take over a .hive-mind that this project came with.")
def up(detach: bool, adopt: bool) -> None:
    """Register the current project and start its stack, or join the one that runs."""
    os.umask(0o077)
    project, home = _to_register()
    stack = Stack(home, runtime_for(home))
    registration.register(project, home, stack.socket, sys.executable, adopt=adopt)
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
    _stop(_registered(place), stack_of(place))


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
    here = main_checkout(here)  # where hooks in a linked git worktree look
    return here, f"{here}/.hive-mind"


def _registered(place: Place) -> str:
    return place.home if variable("HIVEPIPE_HOME") else place.project


def stack_of(place: Place) -> Stack:
    """Return the stack that serves a place."""
    return Stack(place.home, os.path.dirname(place.socket))


def _stop(project: str, stack: Stack) -> None:
    registration.set_state(project, "down")
    supervisor.stop(stack)


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
