"""Command `transcript`: a conversation as text, Markdown, HTML or JSON lines."""

from functools import partial

import click

from hivepipe.cli.pager import paged
from hivepipe.cli.tables import as_json, json_lines_option, utc_option
from hivepipe.cli.team_choice import team_choice, team_options
from hivepipe.cli.terminal import document, say_json
from hivepipe.cli.transcript_html import show_html
from hivepipe.cli.transcript_markdown import show_markdown
from hivepipe.cli.transcript_text import show_text
from hivepipe.home import locate
from hivepipe.reading.conversation import conversation
from hivepipe.reading.conversation_reader import Conversation
from hivepipe.reading.team.conversation import team_conversation
from hivepipe.reading.team.session import session_or_agent
from hivepipe.reading.team.source import opened


@click.command()
@click.argument("session", metavar="SESSION")
@click.option(
    "--around",
    metavar="HIT",
    type=click.IntRange(0),
    help="Only lines near a hit: the number that `search` prints.",
)
@click.option("--markdown", is_flag=True, help="Print Markdown.")
@click.option("--html", is_flag=True, help="Print one HTML file without scripts.")
@team_options
@json_lines_option
@utc_option
def transcript(session: str, around: int | None, markdown: bool, html: bool) -> None:
    """Show a conversation: messages, tool calls and changes.

    SESSION is the id of a session or subagent, a prefix of one, or `last`. In a terminal the output
    is paged by `less`.
    """
    if markdown + html + as_json() > 1:
        raise click.UsageError("--markdown, --html and --json exclude each other")
    home = locate(".").home
    show = partial(_show, markdown=markdown, html=html)
    if wanted := team_choice():
        with opened() as source:
            chosen = session_or_agent(source, wanted, session)
            show(team_conversation(source, chosen, home, around))
    else:
        show(conversation(home, session, around))


def _show(found: Conversation, *, markdown: bool, html: bool) -> None:
    if as_json():
        with document():
            for piece in found.pieces:
                say_json({"schema": 1, **piece._asdict()}, at_once=False)
    elif markdown or html:
        with document():
            (show_html if html else show_markdown)(found)
    else:
        with paged(), document():
            show_text(found)
