"""Command `search`: full-text search over the archive and the summaries."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import click
from rich.progress import Progress
from rich.text import Text

from hivepipe.archive.search.passages import ROLES
from hivepipe.archive.search.query import query_of
from hivepipe.cli.here import refuse_missing
from hivepipe.cli.parameters import DAY_OR_TIME, CheckedCommand, Choice
from hivepipe.cli.rich_terminal import console
from hivepipe.cli.tables import (
    limit_option,
    output_options,
    printable,
    show_json,
    shown_time,
    stored,
)
from hivepipe.cli.team_choice import team_choice, team_options
from hivepipe.cli.terminal import say
from hivepipe.home import locate
from hivepipe.reading.search import Found, Line, Question, find
from hivepipe.reading.team.search import TeamLine, team_search
from hivepipe.reading.team.source import opened
from hivepipe.text.sizes import size

_OF_THIS_MACHINE = ("whole_words", "agent", "role", "tool", "project")


def _check(**chosen: Any) -> None:
    if team_choice() and any(chosen[name] for name in _OF_THIS_MACHINE):
        raise click.UsageError("--team takes words, --session, --since, --until and --limit only")


@click.command(cls=CheckedCommand, check=_check)
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--word", "-w", "whole_words", is_flag=True, help="Match whole words only, as grep -w."
)
@click.option("--session", metavar="ID", default="", help="Only sessions whose id begins with ID.")
@click.option("--agent", metavar="TYPE", default="", help="Only subagents of this type.")
@click.option("--role", type=Choice(ROLES), help="Only lines of this author.")
@click.option(
    "--tool", metavar="NAME", default="", help="Only calls of this tool and their results."
)
@click.option(
    "--project", metavar="DIR", default="", help="Only sessions in this folder or below it."
)
@click.option(
    "--since", metavar="DAY", type=DAY_OR_TIME, help="Only this day (2026-11-21) and later."
)
@click.option("--until", metavar="DAY", type=DAY_OR_TIME, help="Only before this day.")
@limit_option(20, "Maximum number of results.")
@team_options
@output_options
def search(
    words: tuple[str, ...],
    whole_words: bool,
    session: str,
    agent: str,
    role: str | None,
    tool: str,
    project: str,
    since: datetime | None,
    until: datetime | None,
    limit: int,
) -> None:
    """Search archived transcripts and summaries for lines with all WORDS, newest first.

    Output of hivepipe's own commands is listed last. With --team, words are matched whole.

    A word also matches inside other words, and punctuation must match. Quote a phrase; put a *
    after the beginning of a word.
    """
    question = Question(
        query_of(words),
        whole_words,
        project=os.path.realpath(project) if project else "",
        session=session,
        agent=agent,
        role=role or "",
        tool=tool,
        since=stored(since),
        until=stored(until),
    )
    if wanted := team_choice(since=question.since, until=question.until):
        with opened() as source:
            found = team_search(source, wanted, question, limit)
    else:
        refuse_missing(home := locate(".").home)
        with _indexing() as progress:
            found = find(home, question, limit, progress)
    hits = [line.entry() for line in found.lines]
    left = found.not_indexed_bytes
    if not show_json(total=found.total, not_indexed_bytes=left, hits=hits):
        _show_found(found)


@contextmanager
def _indexing() -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar while 10 MB or more are indexed."""
    bar = Progress(console=console(err=True), transient=True)
    task = bar.add_task("indexing what is new")

    def advance(done: int, missing: int) -> None:
        if missing >= 10_000_000:
            bar.start()
            bar.update(task, advance=done, total=missing)

    try:
        yield advance
    finally:
        if bar.live.is_started:  # else the bar would print an empty line
            bar.stop()


def _show_found(found: Found) -> None:
    screen = console()
    for line in found.lines:
        screen.print(_line(line), soft_wrap=True)
        say(f"    {line.opened_by}")
    shown, total = len(found.lines), found.total
    so_far = " so far" if found.not_indexed_bytes else ""
    say(f"{total} found{so_far}" if total == shown else f"{shown} of {total} found{so_far}")
    if found.not_indexed_bytes:
        left = f"{size(found.not_indexed_bytes)} of older transcripts are not indexed yet"
        say(f"The result is incomplete: {left}. Search again.", err=True)


def _line(line: Line) -> Text:
    hit = line.hit
    who = f"{hit.who} ({hit.agent})" if hit.agent else hit.who
    if isinstance(line, TeamLine):
        who = f"{line.person}/{line.machine} {who}"
    head = f"{shown_time(hit.time)}  {hit.session[:8]}  {who}: "
    before, found, behind = map(printable, (line.before, line.match, line.behind))
    return Text.assemble((printable(head), "dim"), before, (found, "bold yellow"), behind)
