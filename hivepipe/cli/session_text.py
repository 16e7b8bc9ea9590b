"""The time line of a session as text."""

from collections.abc import Iterator

from rich.console import Console  # noqa: TID251  a type
from rich.text import Text

from hivepipe.cli.parameters import given
from hivepipe.cli.rich_terminal import console as new_console
from hivepipe.cli.tables import printable, shown_time
from hivepipe.cli.terminal import MARGIN, is_terminal, printable_lines, short
from hivepipe.db.listings import Entry
from hivepipe.db.sessions import CLAUDE_CODE
from hivepipe.reading.session_events import Event
from hivepipe.reading.time_line import Spent, TimeLine
from hivepipe.text.plurals import counted

_MOST_CHARS = 240  # most characters of an event in a terminal; a pipe and --json get all
_COLOURS = {"prompt": "bold", "error": "red", "warning": "yellow", "failed": "red", "lost": "red"}


def show_time_line(found: TimeLine, session: str) -> None:
    """Print a session's time line: head, events, files and summary."""
    console = new_console()
    console.print(Text(printable(session), "bold"))
    for name, text in _head(found):
        if text:
            _show(console, f"  {name:<10}  ", Text(printable(text)))
    for day, events in _days(found.events):
        console.print()
        console.print(Text(printable(day), "dim"))
        for event in events:
            _show(console, f"{shown_time(event.at)[11:19]}  {event.kind:<10}  ", _text(event))
    if found.left_out:
        more = counted(found.left_out, "older event", "are not shown")
        console.print(f"{more}: --limit {len(found.events) + found.left_out}")
    _show_files(console, found)
    _show_summary(console, found.summary)


def _show(console: Console, before: str, text: Text) -> None:
    """Print a text after the label `before`.

    In a terminal further lines are indented, or begin with MARGIN if the label is MARGIN.
    """
    width = max(console.width - len(before), 20)
    for line in text.wrap(console, width) if is_terminal() else [text]:
        line.rstrip()
        console.print(Text.assemble((before, "dim"), line), soft_wrap=True)
        before = before if before == MARGIN else " " * len(before)


def _head(found: TimeLine) -> Iterator[tuple[str, str]]:
    session = found.session
    if session is None:
        yield "state", "deleted; its events remain"
        return
    state = session["condition"]
    why = session["end_reason"] or session.get("waits_for")
    yield "state", f"{state} ({why})" if why else state
    if session.get("client", CLAUDE_CODE) != CLAUDE_CODE:
        yield "client", session["client"]
    yield "title", session["objective"] or ""
    yield "project", short(session["project"] or "")
    effort = f"effort {session['effort']}" if session.get("effort") else ""
    yield "model", ", ".join(filter(None, (session["model"], effort)))
    yield "task", session["task_id"] or ""
    began, last = shown_time(session["created_at"]), shown_time(session["last_active_at"])
    yield "time", f"{began} to {last}"
    yield "work", ", ".join(_work(found, session))
    yield "cost", _cost(found.cost)
    yield "transcript", short(session["transcript_path"] or "")


def _work(found: TimeLine, session: Entry) -> Iterator[str]:
    if session["condition"] == "archived":  # the sweep found it: no hook reported its prompts
        yield counted(session["messages"] or 0, "message")
    else:
        yield counted(session["prompts"], "prompt")
    failed = f" ({session['failed']} failed)" if session["failed"] else ""
    yield counted(session["calls"], "tool call") + failed
    for name, thing in (("agents", "agent"), ("skill_uses", "skill use")):
        if session[name]:
            yield counted(session[name], thing)
    if len(found.instances) > 1:
        yield counted(len(found.instances), "Claude Code process")


def _cost(spent: Spent) -> str:
    if not spent.messages:
        return "none, as no answer of Claude is recorded"
    dollars = "no price" if spent.dollars is None else f"{spent.dollars:.4f} USD"
    return f"{dollars} ({counted(spent.messages, 'message')}, {counted(spent.tokens, 'token')})"


def _days(events: list[Event]) -> Iterator[tuple[str, list[Event]]]:
    days: dict[str, list[Event]] = {}
    for event in events:
        days.setdefault(shown_time(event.at)[:10], []).append(event)
    for day, found in days.items():
        yield f"{day} (UTC)" if given("utc") else day, found


def _text(event: Event) -> Text:
    style = _COLOURS.get(event.outcome or "") or _COLOURS.get(event.kind, "")
    flat = printable(" ".join(_event_text(event).split()))
    is_long = is_terminal() and len(flat) > _MOST_CHARS
    return Text(f"{flat[:_MOST_CHARS]}…" if is_long else flat, style)


def _event_text(event: Event) -> str:
    if event.kind == "checkpoint":
        return f"{event.text} {short(event.file_path)}" if event.file_path else event.text
    if event.agent_id:
        text = f"{event.outcome} {event.text}"
    else:
        text = f"{event.text} (failed)" if event.outcome == "failed" else event.text
    return f"{text}: {event.error}" if event.error else text


def _show_files(console: Console, found: TimeLine) -> None:
    if found.files:
        console.print()
        console.print(f"{counted(len(found.files), 'file')} written")
        for path in found.files:
            _show(console, "  ", Text(printable(short(path))))


def _show_summary(console: Console, summary: Entry | None) -> None:
    if summary is None:
        return
    by = summary["model"] or "made of metadata"
    console.print()
    console.print(Text(printable(f"summary ({by}, {shown_time(summary['made_at'])})")))
    for line in printable_lines(summary["summary"]):
        _show(console, MARGIN, Text(line))
