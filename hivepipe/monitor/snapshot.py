"""Collects the figures for alerts: of Redis, the disk and the database."""

import os
import time
from pathlib import Path
from typing import Any

from redis import Redis

from hivepipe.agents import memory_server
from hivepipe.alerts.rules import SHARE_SECS, UPLINK_SECS, Vitals
from hivepipe.db.hive import states
from hivepipe.db.listings import Listings, read_store
from hivepipe.db.location import database_path
from hivepipe.db.spending import spending, spending_path
from hivepipe.errors import StoreError
from hivepipe.events.job_plan import utc
from hivepipe.files.disk_room import free_bytes, is_full
from hivepipe.home import Place, kept_folder, read_record
from hivepipe.queue.figures import Figures, shares
from hivepipe.queue.full_memory import has_room
from hivepipe.queue.lost_events import lost_events
from hivepipe.queue.rq_workers import have_settled, unserved
from hivepipe.queue.spooled import waiting_events
from hivepipe.summaries import terms
from hivepipe.team.uplink_status import uplink_report

_ZERO_ROWS = "zero_rows:"
_NEARLY = 0.9  # share of a cap; the next call may exceed it


def effectless(home: str) -> dict[str, int] | None:
    """Return the counts of jobs without effect, or None if no database can be read."""
    return read_store(home, Listings.effectless, None)


def zero_rows(counters: dict[str, int] | None) -> dict[str, int]:
    """Return operation -> number of its jobs whose update changed no row."""
    return {
        name.removeprefix(_ZERO_ROWS): count
        for name, count in (counters or {}).items()
        if name.startswith(_ZERO_ROWS)
    }


def vitals(home: str, found: Figures | None, client: Redis | None) -> Vitals:
    """Return the figures for alerts; without Redis, only those of the disk and the database."""
    spooled = waiting_events(home)
    on_disk: dict[str, Any] = {
        "spooled": len(spooled),
        "oldest_spooled_secs": max(map(age_secs, spooled), default=0.0),
        "lost": lost(home),
        "free_bytes": free_bytes(home),
        "full_disk": full_disk(home),
        "hive": hive_states(home),
        "budget": budget(),
        **_uplink(home),
        "ratings": memory_server.trouble(home),
    }
    if found is None or client is None:
        return Vitals(redis_answers=False, **on_disk)
    trouble = found.store_trouble or {"secs": 0.0, "reason": ""}
    return Vitals(
        failed=found.accounts["failed"],
        oldest_waiting_secs=found.oldest_waiting_secs or 0.0,
        redis_full=not has_room(client),
        unserved=unserved(found.workers, found.queues),
        lacks_scheduler=have_settled(found.workers) and not found.scheduler,
        store_secs=trouble["secs"],
        store_reason=trouble["reason"],
        effectless=shares(client, found.operations, zero_rows(effectless(home)), SHARE_SECS),
        **on_disk,
    )


def _uplink(home: str) -> dict[str, Any]:
    """Return how long the uplink's oldest row has waited, and the error that needs an alert.

    An alert about a refusal is due at once. An alert about another error is due when rows have
    waited for UPLINK_SECS. Return {} without a team.
    """
    report = uplink_report(home)
    if report is None:
        return {}
    waited = report["lag_secs"] or 0.0
    is_reported = report["state"] == "refused" or waited >= UPLINK_SECS
    return {"uplink_secs": waited, "uplink": report["error"] if is_reported else ""}


def lost(home: str) -> tuple[int, str, str] | None:
    """Return the count, first and last time of events lost in the last week, or None."""
    found = lost_events(home)
    if found is None:
        return None
    return found.number, utc(int(found.first * 1e9)), utc(int(found.last * 1e9))


def hive_states(home: str) -> dict[str, int]:
    """Return state -> number of hive workers, as of the last check; {} without a database."""
    return read_store(home, states, {})


def full_disk(home: str) -> str:
    """Return a folder of the home, or the runtime folder, on a disk that takes no file, or ""."""
    folders = (*data_folders(home), Place("", home, read_record(home)).runtime)
    return next(filter(is_full, folders), "")


def data_folders(home: str) -> list[str]:
    """Return the folders of a home's data, each of which may be on a disk of its own."""
    database = os.path.dirname(database_path(home))
    return [home, f"{home}/appendonlydir", f"{home}/logs", kept_folder(home), database]


def budget() -> str:
    """Return the summaries' usage and caps of today as text if a cap is nearly reached, else ""."""
    if not spending_path().exists():
        return ""
    caps = terms.caps()
    try:
        with spending() as ledger:
            spent = ledger.spent(terms.day_began())
    except StoreError:
        return ""
    pairs = (
        (spent.requests, caps.calls, f"{spent.requests} of {caps.calls} calls"),
        (spent.tokens, caps.tokens, f"{spent.tokens:,} of {caps.tokens:,} tokens"),
        (spent.dollars, caps.dollars, f"{spent.dollars:.2f} of {caps.dollars:.2f} USD"),
    )
    return ", ".join(text for taken, cap, text in pairs if taken and taken >= cap * _NEARLY)


def age_secs(spooled: Path) -> float:
    """Return the age of a spooled event in seconds, or 0 if its name has no time."""
    digits = spooled.name.partition("_")[0]
    return max(time.time() - int(digits) / 1e9, 0.0) if digits.isdigit() else 0.0
