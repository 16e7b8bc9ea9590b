"""Commands `sessions` and `session`: what is recorded of Claude Code's sessions."""

import click

from hivepipe.cli.tables import (
    json_option,
    moment,
    show_entry,
    show_json,
    show_table,
    utc_option,
)
from hivepipe.errors import StoreError
from hivepipe.home import locate
from hivepipe.liveness import with_activity
from hivepipe.store.listings import listings
from hivepipe.store.location import database_path


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
    rows = [
        (
            entry["id"],
            entry["condition"],
            moment(entry["last_active_at"], utc),
            entry["calls"],
            entry["operations"],
            entry["agents"],
            entry["model"],
            entry["objective"] or entry["project"],
        )
        for entry in found
    ]
    columns = ("session", "status", "last", "calls", "operations", "agents", "model", "about")
    show_table(columns, rows)


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
    rows = [
        (
            entry["instance_id"],
            entry["status"],
            moment(entry["started_at"], utc),
            moment(entry["last_seen"], utc),
            entry["operation_count"],
            entry["checkpoint_count"],
        )
        for entry in instances
    ]
    show_table(("instance", "status", "start", "last", "operations", "checkpoints"), rows)


@session.command()
@click.argument("session_id", metavar="ID")
@utc_option
def log(session_id: str, utc: bool) -> None:
    """Show what happened in a session, oldest first; ID may be the beginning of one."""
    with listings(database_path(locate(".").home)) as store:
        found = store.log(store.full_id("session", session_id))
    rows = [
        (moment(entry["created_at"], utc), entry["log_level"], entry["message"], entry["data"])
        for entry in found
    ]
    show_table(("time", "level", "message", "data"), rows)
