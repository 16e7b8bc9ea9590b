"""Commands `agents` and `agent`: what is recorded of the subagents that sessions spawned."""

import click

from hivepipe.cli.tables import json_option, show_entries, show_entry, show_json, utc_option
from hivepipe.errors import StoreError
from hivepipe.home import locate
from hivepipe.store.listings import listings
from hivepipe.store.location import database_path

_COLUMNS = {
    "agent": "id",
    "status": "status",
    "type": "type",
    "name": "name",
    "start": "created_at",
    "last": "last_active",
    "session": "session_id",
}


@click.command()
@click.option("--session", "session_id", metavar="ID", help="Show only those of this session.")
@json_option
@utc_option
def agents(session_id: str | None, as_json: bool, utc: bool) -> None:
    """List the agents, the newest first."""
    with listings(database_path(locate(".").home)) as store:
        found = store.agents(store.full_id("session", session_id) if session_id else "")
    if as_json:
        show_json(agents=found)
        return
    show_entries(_COLUMNS, found, utc)


@click.group()
def agent() -> None:
    """Show one agent: `show` what is known of it."""


@agent.command()
@click.argument("agent_id", metavar="ID")
@utc_option
def show(agent_id: str, utc: bool) -> None:
    """Show one agent; ID may be the beginning of one."""
    with listings(database_path(locate(".").home)) as store:
        found = store.agent(store.full_id("agent", agent_id))
    if found is None:  # deleted between the two queries
        raise StoreError(f"no agent has the id {agent_id}")
    show_entry(found, utc)
