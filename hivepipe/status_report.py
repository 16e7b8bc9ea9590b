"""How a stack is: one report, which `status` prints, watches and a dashboard shows."""

import os
import time
from pathlib import Path
from typing import Any

from redis.exceptions import RedisError

from hivepipe.alerts import Alert, alerts_of
from hivepipe.home import Place
from hivepipe.queues import connection, endpoint
from hivepipe.queues.figures import as_report, figures
from hivepipe.queues.names import ALL_QUEUES
from hivepipe.stack import supervisor
from hivepipe.stack.leave import may_leave
from hivepipe.stack.lock import Stack
from hivepipe.stack.ping import answers
from hivepipe.stack.starter import read_starting
from hivepipe.store import alerts as stored
from hivepipe.store.location import database_path
from hivepipe.vitals import effectless, vitals

TROUBLE_SECS = 10  # shorter ones are other people's transactions

# What only Redis knows: None while it does not answer, which is not 0.
_IN_REDIS = (
    *("queues", "accepted", "periodic", "accounts", "oldest_waiting_secs", "store_trouble"),
    *("newer_version", "operations", "workers"),
)


def status_report(place: Place, stack: Stack) -> dict[str, Any]:
    """Look once at processes, Redis, disk and store."""
    alive = answers(stack.address)
    processes = _processes(stack)
    in_redis, alerts = _look(place, stack, alive)
    trouble = in_redis["store_trouble"]
    is_well = (
        place.state != "down"  # what was killed before may look alive in another's Redis
        and _is_ready(stack, in_redis["workers"])
        and all(entry["state"] == "running" for entry in processes)
        and not any(alert.is_urgent for alert in alerts)
        and not in_redis["newer_version"]
        and not (trouble and trouble["secs"] > TROUBLE_SECS)
    )
    spool = Path(place.home, "spool")
    return {
        "schema": 1,
        "home": place.home,
        "state": place.state,
        "healthy": is_well,
        "redis": "up" if alive else "down",
        "address": endpoint.shown(place.socket),
        "processes": processes,
        "leaves_when_idle": may_leave(stack),
        "failed_start": _failed_start(stack),
        **in_redis,
        "spool": len(list(spool.glob("*.json"))),
        "set_aside": sum(path.suffix != ".reason" for path in spool.glob("bad/*")),
        "effectless": effectless(place.home),
        "alerts": _described(place.home, alerts),
    }


def _is_ready(stack: Stack, workers: list[dict[str, Any]] | None) -> bool:
    """Is everybody there? Under a Procfile or in containers only their own word can say so."""
    if os.path.exists(stack.config):
        return supervisor.is_ready(stack)
    served = {queue for entry in workers or () if entry["alive"] for queue in entry["queues"]}
    return served.issuperset(ALL_QUEUES)


def _processes(stack: Stack) -> list[dict[str, Any]]:
    return [
        {
            "name": entry["name"],
            "state": entry["statename"].lower(),
            "pid": entry["pid"],
            "uptime_secs": entry["now"] - entry["start"] if entry["pid"] else 0,
        }
        for entry in supervisor.processes(stack)
    ]


def _look(place: Place, stack: Stack, alive: bool) -> tuple[dict[str, Any], list[Alert]]:
    if alive:
        try:
            with connection.connect(stack.address) as client:
                found = figures(client)
                return as_report(found), alerts_of(vitals(place.home, found, client))
        except RedisError:  # it went away just now
            pass
    return dict.fromkeys(_IN_REDIS), alerts_of(vitals(place.home, None, None))


def _described(home: str, alerts: list[Alert]) -> list[dict[str, Any]]:
    since = stored.standing(database_path(home))
    return [
        {
            "name": alert.name,
            "text": alert.text,
            "urgent": alert.is_urgent,
            "since": since.get(alert.name),
        }
        for alert in alerts
    ]


def _failed_start(stack: Stack) -> dict[str, Any] | None:
    """Return why hooks could not start the stack, and when one tries again; None if they could."""
    starting = read_starting(stack.folder)
    if not starting.failures:
        return None
    return {
        "reason": starting.reason,
        "failures": starting.failures,
        "again_in_secs": max(round(starting.not_before - time.time()), 0),
    }
