"""Command `search`: full-text search over the archive and the summaries."""

import os
import time
from datetime import datetime
from itertools import chain
from typing import Any

import click
from rich.progress import Progress
from rich.text import Text

from hivepipe.archive.search.index import Archived, Hit, SearchIndex
from hivepipe.archive.search.passages import passage_of
from hivepipe.archive.search.query import Filters, Term, flat, folded, terms_of
from hivepipe.cli.rich_terminal import console
from hivepipe.cli.tables import json_option, moment, printable, show_json, size, stored, utc_option
from hivepipe.cli.terminal import say
from hivepipe.home import locate
from hivepipe.operations.archive import archives_of
from hivepipe.operations.search import all_summaries, catch_up, index_path, line_at, newest_first

AROUND = 60  # characters on either side of a match
INDEXING_SECS = 10.0  # then it searches what is indexed, the newest sessions first

_day = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M"])


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--word", "-w", "whole_words", is_flag=True, help="Match whole words only, as grep -w."
)
@click.option("--session", metavar="ID", default="", help="Only sessions whose id begins with ID.")
@click.option("--agent", metavar="TYPE", default="", help="Only subagents of this type.")
@click.option(
    "--project", metavar="DIR", default="", help="Only sessions in this folder or below it."
)
@click.option("--since", metavar="DAY", type=_day, help="Only this day (2026-11-21) and later.")
@click.option("--until", metavar="DAY", type=_day, help="Only before this day.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1, 10**6),
    default=20,
    show_default=True,
    help="Maximum number of results.",
)
@json_option
@utc_option
def search(
    words: tuple[str, ...],
    whole_words: bool,
    session: str,
    agent: str,
    project: str,
    since: datetime | None,
    until: datetime | None,
    limit: int,
    as_json: bool,
    utc: bool,
) -> None:
    """Search archived transcripts and summaries for lines with all WORDS, newest first.

    Output of hivepipe's own commands is listed last.

    A word also matches inside other words, and punctuation must match. Quote a phrase; put a *
    behind the beginning of a word.
    """
    os.umask(0o077)
    home = locate(".").home
    query = " ".join(f'"{word}"' if " " in word and '"' not in word else word for word in words)
    terms = terms_of(query, whole_words=whole_words)
    filters = Filters.of(
        project=os.path.realpath(project) if project else "",
        session=session,
        agent=agent,
        since=stored(since, utc),
        until=stored(until, utc),
    )
    index = SearchIndex(index_path(home))
    try:
        found_in = chain(all_summaries(home), newest_first(archives_of(home)))
        archived = {entry.key: entry for entry in found_in}
        left = _catch_up(index, list(archived.values()))
        hits = [hit for hit in index.find(terms, filters, limit) if hit.key in archived]
        found = [(hit, _words(archived[hit.key], hit)) for hit in hits]
        total = index.count(terms, filters)
    finally:
        index.close()
    if as_json:
        entries = [_entry(hit, text, terms) for hit, text in found]
        show_json(total=total, not_indexed_bytes=left, hits=entries)
        return
    _show(found, terms, utc)
    say(f"{total} found" if total == len(found) else f"{len(found)} of {total} found")
    if left:
        say(f"{size(left)} of older transcripts are not indexed yet: search again", err=True)


def _show(found: list[tuple[Hit, str]], terms: list[Term], utc: bool) -> None:
    screen = console()
    for hit, text in found:
        screen.print(_line(hit, text, terms, utc), soft_wrap=True)
        say(f"    {_opened_by(hit)}")


def _catch_up(index: SearchIndex, archived: list[Archived]) -> int:
    """Index new lines for at most INDEXING_SECS; show a progress bar from 10 MB on.

    Returns the number of bytes not indexed yet: the sweep and later searches continue.
    """
    until = time.monotonic() + INDEXING_SECS
    missing = sum(index.missing_bytes(entry) for entry in archived)
    with Progress(console=console(err=True), transient=True, disable=missing < 10_000_000) as bar:
        task = bar.add_task("indexing what is new", total=missing)
        return catch_up(
            index,
            archived,
            lambda done: bar.advance(task, done),
            lambda: time.monotonic() > until,
        )


def _words(archived: Archived, hit: Hit) -> str:
    passage = passage_of(line_at(archived, hit.offset))
    return passage.words if passage else ""


def _around(text: str, terms: list[Term]) -> tuple[str, str, str]:
    """Return the text before the first match, the match, and the text behind it."""
    text = flat(text)
    low = folded(text)
    places = [place for term in terms if (place := term.place_in(low))]
    if not places or len(low) != len(text):  # folding changed the length: offsets differ
        return text[: 2 * AROUND], "", ""
    begin, end = places[0]
    before = text[max(begin - AROUND, 0) : begin]
    behind = text[end : end + AROUND]
    return (
        ("…" if begin > AROUND else "") + before,
        text[begin:end],
        behind + ("…" if end + AROUND < len(text) else ""),
    )


def _opened_by(hit: Hit) -> str:
    """Return the command that shows the hit in its context."""
    if hit.who == "summary":
        return f"hivepipe summaries show {hit.session[:8]}"
    name = hit.key.partition("/")[2] or hit.session[:8]
    return f"hivepipe transcript {name} --around {hit.offset}"


def _line(hit: Hit, text: str, terms: list[Term], utc: bool) -> Text:
    who = f"{hit.who} ({hit.agent})" if hit.agent else hit.who
    head = f"{moment(hit.time, utc)}  {hit.session[:8]}  {who}: "
    before, found, behind = map(printable, _around(text, terms))
    return Text.assemble((printable(head), "dim"), before, (found, "bold yellow"), behind)


def _entry(hit: Hit, text: str, terms: list[Term]) -> dict[str, Any]:
    return {
        "time": hit.time,
        "session_id": hit.session,
        "agent_type": hit.agent,
        "project": hit.project,
        "who": hit.who,
        "text": "".join(_around(text, terms)),
        "archive": hit.key,
        "offset": hit.offset,
        "open": _opened_by(hit),
    }
