"""Command `rq`: RQ's own command line, which here neither executes nor unpickles a job."""

import sys

import click

from hivepipe.cli.terminal import lines_of_others
from hivepipe.home import locate
from hivepipe.stack.redis_access import ensure_running


@click.command(
    context_settings={
        "ignore_unknown_options": True,
        "allow_extra_args": True,
        "allow_interspersed_args": False,
    },
    options_metavar="-- COMMAND [ARGS]...",
)
@click.pass_context
def rq(context: click.Context) -> None:
    """Run RQ's own commands (info, requeue ...) on the project's Redis.

    Job data is loaded as plain values only. `-u` defaults to the project's Redis. A stack that
    shut down when idle is started first, and shuts down again.
    """
    from hivepipe.queue.restricted_rq import run  # noqa: PLC0415  rq costs 150 ms to import

    place = locate(".")
    arguments = context.args or ["--help"]
    address = place.socket if arguments[0].startswith("-") else ensure_running(place)
    with lines_of_others():
        sys.exit(run(address, arguments))
