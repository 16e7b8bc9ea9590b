"""Commands `sessions` and `session`: what is recorded of Claude Code's sessions."""

import click

from hivepipe.cli.tables import json_option, show_entries, show_entry, show_json, utc_option
from hivepipe.errors import StoreError
from hivepipe.home import locate
from hivepipe.liveness import with_activity
from hivepipe.store.listings import listings
from hivepipe.store.location import database_path

_COLUMNS = {
    "session": "id",
    "status": "condition",
    "last": "last_active_at",
    "calls": "calls",
    "operations": "operations",
    "agents": "agents",
    "model": "model",
    "about": "about",
}
_OF_INSTANCES = {
    "instance": "instance_id",
    "status": "status",
    "start": "started_at",
    "last": "last_seen",
    "operations": "operation_count",
    "checkpoints": "checkpoint_count",
}
_OF_LOG = {"time": "created_at", "level": "log_level", "message": "message", "data": "data"}


@click.command()
@click.option("--all", "with_ended", is_flag=True, help="Show ended sessions too.")
@json_option
@utc_option
def sessions(with_ended: bool, as_json: bool, utc: bool) -> None:
    """List the open sessions, the last active first."""
    with listings(database_path(locate(".").home)) as store:
        found = with_activity(store, store.sessions(with_ended))
    if as_json:
        show_json(sessions=found)
        return
    entries = ({**entry, "about": entry["objective"] or entry["project"]} for entry in found)
    without = "none" if with_ended else "none is open; --all shows the ended ones"
    show_entries(_COLUMNS, entries, utc, without)


@click.group()
def session() -> None:
    """Show one session: `show` what is known of it, or its `log`."""


@session.command()
@click.argument("session_id", metavar="ID")
@utc_option
def show(session_id: str, utc: bool) -> None:
    """Show one session and its instances; ID may be the beginning of one."""
    with listings(database_path(locate(".").home)) as store:
        full_id = store.full_id("session", session_id)
        known = store.session(full_id)
        found = with_activity(store, [known])[0] if known else None
        instances = store.instances(full_id)
    if found is None:
        raise StoreError(f"session {full_id} was deleted; its log may remain: `session log`")
    show_entry(found, utc)
    show_entries(_OF_INSTANCES, instances, utc)


@session.command()
@click.argument("session_id", metavar="ID")
@utc_option
def log(session_id: str, utc: bool) -> None:
    """Show what happened in a session, oldest first; ID may be the beginning of one."""
    with listings(database_path(locate(".").home)) as store:
        found = store.log(store.full_id("session", session_id))
    show_entries(_OF_LOG, found, utc)
