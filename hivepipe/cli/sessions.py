"""Commands `sessions` and `session`: the recorded sessions of Claude Code."""

import click

from hivepipe.cli.here import store_here
from hivepipe.cli.session_text import show_time_line
from hivepipe.cli.tables import Column, limit_option, output_options, show_entries, show_json
from hivepipe.cli.team_choice import COLUMNS, first_entries, team_choice, team_options
from hivepipe.cli.terminal import is_terminal, say, say_prose, short, unbroken
from hivepipe.db.sessions import CLAUDE_CODE
from hivepipe.home import locate
from hivepipe.operations.liveness import with_activity
from hivepipe.queue.spooled import waiting_events
from hivepipe.reading.session_events import file_of
from hivepipe.reading.session_lookup import session_in
from hivepipe.reading.team.session import session_starting, session_store, team_time_line
from hivepipe.reading.team.sessions import MOST_SESSIONS, team_sessions
from hivepipe.reading.team.source import opened
from hivepipe.reading.time_line import time_line
from hivepipe.text.plurals import counted

_COLUMNS: dict[str, Column] = {
    "session": "id",
    "status": "condition",
    "last": "last_active_at",
    "calls": "calls",
    "operations": "operations",
    "agents": "agents",
    "model": "model",
    "about": lambda entry: entry["objective"] or _shown_project(entry["project"] or ""),
}
_OF_LOG: dict[str, Column] = {
    "time": "created_at",
    "level": "log_level",
    "message": "message",
    "file": lambda entry: short(file_of(entry["data"]) or ""),
}


@click.command()
@click.option("--all", "with_ended", is_flag=True, help="Include ended sessions.")
@team_options
@output_options
def sessions(with_ended: bool) -> None:
    """List the open sessions, most recently active first."""
    if wanted := team_choice():
        with opened() as source:
            most = MOST_SESSIONS + 1
            found = team_sessions(source, wanted, with_ended=with_ended, limit=most)
        found = first_entries(found, MOST_SESSIONS)
    else:
        with store_here() as store:
            found = with_activity(store, store.sessions(with_ended))
    without = "none" if with_ended else "no open sessions; --all shows ended ones"
    if not (found or wanted) and (waiting := len(waiting_events(locate(".").home))):
        without += f"; {counted(waiting, 'event', 'wait on disk')}: see `hivepipe status`"
    others = any(entry.get("client", CLAUDE_CODE) != CLAUDE_CODE for entry in found)
    columns: dict[str, Column] = {
        **_COLUMNS,
        **(COLUMNS if wanted else {}),
        **({"client": "client"} if others else {}),
    }
    show_entries("sessions", found, columns, without=without)


def _shown_project(project: str) -> str:
    """Return a project's path. Shorten it only on a terminal, because programs read a pipe."""
    return short(project) if is_terminal() else project


@click.group()
def session() -> None:
    """Show the time line (`show`) or the `log` of a session."""


@session.command()
@click.argument("session_id", metavar="ID")
@limit_option(500, "Show at most this many of the newest events.")
@team_options
@output_options
def show(session_id: str, limit: int) -> None:
    """Show the time line of a session.

    It has prompts, agents, skills, checkpoints, files, cost and summary. ID may be a prefix.
    """
    home, owner = locate(".").home, {}
    if wanted := team_choice():
        with opened() as source:
            chosen = session_starting(source, wanted, session_id)
            with session_store(source, chosen) as store:
                found = team_time_line(source, chosen, store, home, limit)
        full_id, owner = chosen.id, {"person": chosen.person, "machine": chosen.machine}
    else:
        with store_here() as store:
            full_id = session_in(home, store, session_id)
            found = time_line(home, store, full_id, limit)
    events = [event._asdict() for event in found.events]
    parts = {**found._asdict(), "events": events, "cost": found.cost._asdict()}
    if not show_json(id=full_id, **owner, **parts):
        if wanted:
            say(f"of {owner['person']}, machine {owner['machine']}")
        show_time_line(found, full_id)


@session.command()
@click.argument("session_id", metavar="ID")
@team_options
@output_options
def log(session_id: str) -> None:
    """Show the checkpoints and errors of a session, oldest first.

    ID may be a prefix. For prompts, agents, skills and cost see `hivepipe session show ID`.
    """
    if wanted := team_choice():
        with opened() as source:
            chosen = session_starting(source, wanted, session_id)
            with session_store(source, chosen) as store:
                full_id, found = chosen.id, store.log(chosen.id)
    else:
        with store_here() as store:
            full_id = session_in(locate(".").home, store, session_id)
            found = store.log(full_id)
    if not show_entries("log", found, _OF_LOG, beside={"id": full_id}, is_newest_last=True):
        show = unbroken(f"hivepipe session show {full_id}")
        say_prose(f"prompts, agents, skills and cost: {show}", 2, err=True)
