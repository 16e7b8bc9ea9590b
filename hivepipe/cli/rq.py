"""Command `rq`: RQ's own command line, which runs nothing that a job carries."""

import sys

import click

from hivepipe.home import locate


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
    """Run RQ's own commands (info, requeue ...) on the project's Redis, pickles disarmed.

    What a job carries is loaded as plain values only. `-u` is filled in; yours wins.
    """
    from hivepipe.queues.restricted_rq import run  # noqa: PLC0415  rq costs 150 ms to import

    sys.exit(run(locate(".").socket, context.args or ("--help",)))
