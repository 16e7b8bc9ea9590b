"""Command `logs`: the log lines of the stack's processes."""

import time

import click

from hivepipe.cli.log_tail import FOLLOW_SECS, NAMES, Tail, show_lines
from hivepipe.cli.parameters import Choice
from hivepipe.cli.tables import as_json, json_lines_option, show_json
from hivepipe.cli.terminal import say
from hivepipe.home import locate


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Follow new lines until Ctrl-C.")
@click.option(
    "-n",
    "--lines",
    metavar="N",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Number of lines of each process.",
)
@click.argument("process", type=Choice(NAMES), required=False)
@json_lines_option
def logs(follow: bool, lines: int, process: str | None) -> None:
    """Show the last log lines of each process, or of one.

    For what a session did, see `hivepipe session show`.
    """
    show = show_lines_as_json if as_json() else show_lines
    tail = Tail(locate(".").home, [process] if process else NAMES)
    found = tail.last_lines(lines)
    show(found)
    if lines and not (found or follow or as_json()):
        say("no log lines")
    try:
        while follow:
            time.sleep(FOLLOW_SECS)
            show(tail.new_lines())
    except KeyboardInterrupt:
        return


def show_lines_as_json(lines: list[tuple[str, str]]) -> None:
    for name, line in lines:
        show_json(process=name, line=line)
