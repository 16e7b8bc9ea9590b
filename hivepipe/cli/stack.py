"""Commands around the process stack: up, down, restart, url, root."""

import os
import signal
import sys
import time

import click

from hivepipe.cli.log_tail import FOLLOW_SECS, PROGRAMS, Tail, show_lines
from hivepipe.cli.terminal import say, say_prose, unbroken
from hivepipe.config.config_file import unseen
from hivepipe.home import (
    Place,
    absolute,
    is_in_project,
    locate,
    main_checkout,
    read_record,
    real_path,
)
from hivepipe.install import users_folder
from hivepipe.install.early_events import take_early_events
from hivepipe.install.renamed import refuse_renamed
from hivepipe.orchestrator.folder import running_workers
from hivepipe.queue import connection
from hivepipe.settings import variable
from hivepipe.stack import kernel, lifecycle, other_redis, processes, registration, supervisor
from hivepipe.stack.all_stacks import known_stacks
from hivepipe.stack.runtime_folder import Stack
from hivepipe.stack.stack_processes import ProcessTable


@click.command()
@click.option("-d", "--detach", is_flag=True, help="Return as soon as the stack is ready.")
@click.option("--adopt", is_flag=True, help="Use the data that this project contains already.")
@click.option(
    "--redis-url", metavar="URL", help="Use this Redis, with a database that nothing else uses."
)
@click.option("--use-env-redis", is_flag=True, help="Use the Redis in REDIS_URL.")
@click.option("--embedded", is_flag=True, help="Use the home's own Redis again.")
def up(
    detach: bool, adopt: bool, redis_url: str | None, use_env_redis: bool, embedded: bool
) -> None:
    """Register the current project and start its stack, or join the running one."""
    project, home = _to_register(adopt=adopt)
    registration.refuse_switched_off(project)
    kernel.refuse_another(home)  # whose sockets the record must keep
    stack = Stack.prepared(home)._replace(
        url=_chosen_redis(home, redis_url, use_env_redis, embedded)
    )
    owner = registration.owner_id(home)
    if stack.url:  # claim Redis first, because hooks connect as soon as its URL is recorded
        for warning in other_redis.claim(stack.url, home, owner):
            say(f"warning: {warning}", err=True)
    tree = registration.tree_with_data(project, home, adopt=adopt)
    with users_folder.removed_if_refused(stack):
        registration.register(project, stack, sys.executable, adopt=adopt, owner=owner, tree=tree)
    for note in unseen(home):
        say(f"note: {note}", err=True)
    begun = time.monotonic()
    stack = lifecycle.bring_up(project, stack)
    take_early_events(project, stack.home)
    say_prose(f"ready after {time.monotonic() - begun:.2f} s: {unbroken(stack.home)}", 2)
    if detach:
        return
    tail = Tail(stack.home, PROGRAMS)
    tail.last_lines(0)  # skip the earlier lines
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        while supervisor.processes(stack):
            show_lines(tail.new_lines())
            time.sleep(FOLLOW_SECS)
    except KeyboardInterrupt:
        lifecycle.take_down(stack)


@click.command()
@click.option("--all", "every", is_flag=True, help="Stop all of your stacks.")
def down(every: bool) -> None:
    """Stop the stack; until the next `up`, hooks keep their events on disk."""
    if not every:
        place = locate(".")
        _registered(place)
        lifecycle.take_down(Stack.of(place))
        say_prose(f"down: {unbroken(place.home)}; hooks keep events on disk until `hivepipe up`", 6)
        _name_workers(place.home)
        return
    table = ProcessTable()
    failed = False
    for stack, error in lifecycle.take_all_down(
        [each.stack for each in known_stacks(table)], table
    ):
        if error:
            failed = True
            say(f"{stack.home}: {error}", err=True)
        else:
            say(stack.home)
            _name_workers(stack.home)
    sys.exit(1 if failed else 0)


def _name_workers(home: str) -> None:
    """Print the hive workers that keep running, because each of them may cost money."""
    for worker in running_workers(home):
        say(f"hive worker {worker.id} keeps running")


@click.command()
def restart() -> None:
    """Stop the stack and start it again with the installed code."""
    place = locate(".")
    for note in unseen(place.home):
        say(f"note: {note}", err=True)
    begun = time.monotonic()
    stack = lifecycle.restart(_registered(place), Stack.of(place))
    say_prose(f"ready after {time.monotonic() - begun:.2f} s: {unbroken(stack.home)}", 2)


@click.command()
def url() -> None:
    """Print the URL of Redis for RQ's own tools."""
    say(connection.url(locate(".").socket))


@click.command()
def root() -> None:
    """Print the folder of the hooks and the workers."""
    say(processes.root_folder())


def _to_register(*, adopt: bool) -> tuple[str, str]:
    """Return the project and the home that `up` registers."""
    override = variable("HIVEPIPE_HOME")
    project = main_checkout(real_path("."))  # hooks in a linked git worktree look here
    if not (override or adopt):
        refuse_renamed(project)
    home = absolute(override) if override else registration.own_home(project, adopt=adopt)
    registration.refuse_broken_line(home if override else project, home)
    registration.refuse_predecessor(home if override else project, home)
    if not is_in_project(home):
        home = os.path.realpath(home)
    return (home if override else project), home


def _chosen_redis(home: str, url: str | None, use_env: bool, embedded: bool) -> str:
    """Return the URL of the user's Redis (option, setting or record), or "" for the stack's own."""
    if sum((bool(url), use_env, embedded)) > 1:
        raise click.UsageError("--redis-url, --use-env-redis and --embedded exclude each other")
    if embedded:
        return ""
    named = url or variable("HIVEPIPE_REDIS_URL")
    if use_env:
        named = variable("REDIS_URL")
        if not named:
            raise click.UsageError("REDIS_URL is not set")
    return other_redis.canonical(named) if named else Stack.prepared(home).url


def _registered(place: Place) -> str:
    """Return the project's folder if it has a record, else the home if the home has a record.

    With HIVEPIPE_HOME, only the home is tried. Raises RegistrationError if there is no record.
    """
    for folder in (place.home,) if variable("HIVEPIPE_HOME") else (place.project, place.home):
        if read_record(folder):
            return folder
    raise registration.unregistered(place.project)
