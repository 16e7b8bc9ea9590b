"""Command `cleanup`: mark finished and expired agents as deleted."""

import time
from collections import Counter
from datetime import UTC, datetime

import click

from hivepipe.cli.tables import json_option, show_entries
from hivepipe.cli.terminal import say
from hivepipe.db.cleanups import verdicts
from hivepipe.db.database import Database, opened
from hivepipe.db.location import database_path
from hivepipe.errors import NothingRecordedError
from hivepipe.home import locate
from hivepipe.jobs.agent_expiry import Verdict
from hivepipe.operations.cleanup import clean, write_log


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what would be deleted; change nothing.")
@json_option
def cleanup(dry_run: bool) -> None:
    """Mark completed, orphaned and expired agents as deleted, but not protected ones.

    The rows stay for 30 days. cleanup.log lists each agent with its reason.
    """
    home = locate(".").home
    path = database_path(home)
    if not path.exists():
        raise NothingRecordedError(path)
    with opened(home) as db:
        judged = verdicts(db, datetime.now(UTC)) if dry_run else _deleted(home, db)
    _show(judged, dry_run)


def _deleted(home: str, db: Database) -> list[tuple[str, Verdict]]:
    now_ns = time.time_ns()
    with db.transaction():
        judged = clean(db, f"manual-{now_ns}", "manual", now_ns)
    try:
        write_log(home, db)
    except OSError as error:  # the rows are deleted; the next run writes the lines
        say(f"hivepipe: cleanup.log not written: {error}", err=True)
    return judged


def _show(judged: list[tuple[str, Verdict]], dry_run: bool) -> None:
    kept = Counter(verdict.reason for _, verdict in judged if not verdict.is_outdated)
    # Not a list, which would need much memory for a long history
    found = ({"id": agent, "reason": why.reason} for agent, why in judged if why.is_outdated)
    beside = {"dry_run": dry_run, "kept": dict(kept)}
    if show_entries("deleted", found, {"agent": "id", "reason": "reason"}, beside=beside):
        return
    terms = ", ".join(f"{count} {reason}" for reason, count in sorted(kept.items()))
    kept_line = f"kept {kept.total()}" + (f" ({terms})" if terms else "")
    say(f"{'would delete' if dry_run else 'deleted'} {len(judged) - kept.total()}, {kept_line}")
