"""Commands `agents` and `agent`: the recorded subagents."""

from datetime import datetime, timedelta

import click

from hivepipe.cli.here import store_here
from hivepipe.cli.parameters import DAY
from hivepipe.cli.tables import Column, output_options, show_entries, show_entry, stored
from hivepipe.cli.team_choice import COLUMNS, first_entries, team_choice, team_options
from hivepipe.db.listings import unknown_id
from hivepipe.errors import StoreError
from hivepipe.home import locate
from hivepipe.reading.session_lookup import session_in
from hivepipe.reading.team.agents import MOST_AGENTS, team_agents
from hivepipe.reading.team.source import opened

_COLUMNS: dict[str, Column] = {
    "agent": "id",
    "status": lambda entry: entry["outcome"] or entry["status"],
    "type": "type",
    "name": "name",
    "start": "created_at",
    "last": "last_active",
    "tokens": "tokens",
    "error": "error",
    "session": "session_id",
}


@click.command()
@click.option("--session", "session_id", metavar="ID", help="Only agents of this session.")
@click.option("--day", metavar="DAY", type=DAY, help="Only agents spawned on this day.")
@click.option("--since", metavar="DAY", type=DAY, help="Only agents spawned since this day.")
@team_options
@output_options
def agents(session_id: str | None, day: datetime | None, since: datetime | None) -> None:
    """List the agents with their outcome or status, newest first.

    An agent is `lost` if it had not finished when its session ended. Days are local, or UTC with
    --utc.
    """
    if day and since:
        raise click.UsageError("--day and --since exclude each other")
    until = day + timedelta(days=1) if day else None
    first, behind = stored(day or since), stored(until)
    if wanted := team_choice(since=first, until=behind):
        with opened() as source:
            session = session_id or ""
            found = team_agents(source, wanted, session=session, limit=MOST_AGENTS + 1)
        show_entries("agents", first_entries(found, MOST_AGENTS), {**_COLUMNS, **COLUMNS})
        return
    with store_here() as store:
        session = session_in(locate(".").home, store, session_id) if session_id else ""
        show_entries("agents", store.agents(session, first, behind), _COLUMNS)


@click.group()
def agent() -> None:
    """Show one agent (`show`)."""


@agent.command()
@click.argument("agent_id", metavar="ID")
@output_options
def show(agent_id: str) -> None:
    """Show one agent; ID may be a prefix."""
    with store_here() as store:
        found = store.agent(store.full_id("agent", agent_id))
    if found is None:  # the agent was deleted between the two queries
        raise StoreError(unknown_id("agent", agent_id))
    show_entry(found)
