"""The report on a stack, for `status`, its watch mode and the page."""

import os
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

from redis.exceptions import RedisError

from hivepipe.alerts.rules import Alert, alerts_of
from hivepipe.db import alerts as stored
from hivepipe.db.location import database_path
from hivepipe.home import Place
from hivepipe.monitor.snapshot import effectless, vitals
from hivepipe.queue import connection, endpoint
from hivepipe.queue.figures import Figures, as_report, figures
from hivepipe.queue.reductions import Reduction, reductions_of
from hivepipe.queue.rq_workers import missing_queues
from hivepipe.queue.spooled import waiting_events
from hivepipe.stack import kernel, supervisor
from hivepipe.stack.condition import BROKEN, HEALTHY, UNHEALTHY, StackFacts, condition_of
from hivepipe.stack.idle_policy import may_shut_down
from hivepipe.stack.lock import is_locked_folder
from hivepipe.stack.ping import answers
from hivepipe.stack.runtime_folder import Stack
from hivepipe.stack.stack_processes import SUPERVISOR, ProcessTable
from hivepipe.stack.starter import read_starting
from hivepipe.team.uplink_status import uplink_report

TROUBLE_SECS = 10  # other programs' transactions take less time
CHANGE_SECS = 3.0  # longer than most starts take
CHANGE_PAUSE_SECS = 0.1

# Values that only Redis has: they are None, not 0, while Redis does not answer.
_IN_REDIS = ("accepted", *(each.name for each in fields(Figures)))


def settled_report(place: Place, stack: Stack, table: ProcessTable | None = None) -> dict[str, Any]:
    """Return the report; if it is bad, wait up to CHANGE_SECS for a start or stop to end.

    Otherwise a stack that starts would be reported as broken.
    """
    deadline = time.monotonic() + CHANGE_SECS
    while True:
        was_changing = is_locked_folder(stack.home)  # the change may end during the report
        report = status_report(place, stack, table)
        is_changing = was_changing or is_locked_folder(stack.home)
        is_bad = report["condition"] in (BROKEN, UNHEALTHY)
        if not (is_bad and is_changing) or time.monotonic() > deadline:
            return report
        table = None  # read it again
        time.sleep(CHANGE_PAUSE_SECS)


def status_report(place: Place, stack: Stack, table: ProcessTable | None = None) -> dict[str, Any]:
    """Return a report on processes, Redis, disk and database; reports can share a `table`."""
    table = table or ProcessTable()
    alive = answers(stack.address)
    processes = _processes(stack)
    is_stopping = not processes and supervisor.is_stopping(stack)
    # During a stop, some programs end while Redis still answers. This raises no alert.
    found, alerts = _figures_and_alerts(place, stack, alive and not is_stopping)
    in_redis = as_report(found) if found else dict.fromkeys(_IN_REDIS)
    facts = _seen(place, stack, processes, found, in_redis, alerts, table, is_stopping)
    other_machine = "" if alive or processes else kernel.other_machine(place.home)
    if other_machine:
        facts = facts._replace(runs=True, is_ready=True)  # only its own status can say more
    condition = condition_of(facts)
    spool = Path(place.home, "spool")
    waiting = waiting_events(place.home)
    return {
        "schema": 1,
        "home": place.home,
        "state": place.state,
        "condition": condition,
        "healthy": condition == HEALTHY,
        "redis": "up" if alive else "down",
        "other_machine": other_machine,
        "trouble": None if other_machine else _trouble(stack, bool(processes), table),
        "address": endpoint.shown(place.socket),
        "processes": processes,
        "leaves_when_idle": may_shut_down(stack),
        "failed_start": _failed_start(stack),
        **in_redis,
        "spool": len(waiting),
        "in_memory": sum(path.parent != spool for path in waiting),
        "set_aside": sum(path.suffix != ".reason" for path in spool.glob("bad/*")),
        "effectless": effectless(place.home),
        "reduced": [reduction._asdict() for reduction in _reductions(stack, found)],
        "alerts": _described(place.home, alerts),
        "team": uplink_report(place.home),
    }


def _trouble(stack: Stack, is_supervised: bool, table: ProcessTable) -> str | None:
    """Return a problem of the stack's Redis or supervisor as text, or None."""
    if is_supervised:
        return supervisor.redis_trouble(stack) or None
    return supervisor.why_silent(stack, table.of(stack).get(SUPERVISOR, [])) or None


def _seen(
    place: Place,
    stack: Stack,
    processes: list[dict[str, Any]],
    found: Figures | None,
    in_redis: dict[str, Any],
    alerts: list[Alert],
    table: ProcessTable,
    is_stopping: bool,
) -> StackFacts:
    trouble = in_redis["store_trouble"]
    workers = in_redis["workers"]
    answers_of_its_own = workers is not None and not stack.url
    runs = bool(processes) or answers_of_its_own or any(each["alive"] for each in workers or ())
    return StackFacts(
        state=place.state,
        is_registered=bool(place.python),
        runs=runs,
        is_ready=_is_ready(stack, found)
        and all(entry["state"] == "running" for entry in processes),
        is_unsupervised=not (runs or is_stopping) and bool(table.of(stack)),
        could_not_start=_failed_start(stack) is not None,
        has_trouble=bool(trouble or in_redis["newer_version"]),
        has_long_trouble=bool(
            (trouble and trouble["secs"] > TROUBLE_SECS) or in_redis["newer_version"]
        ),
        alerts=tuple(alerts),
    )


def _is_ready(stack: Stack, found: Figures | None) -> bool:
    """Tell whether all processes run; without a supervisor, check their registrations in Redis."""
    if found is None:
        return False
    if os.path.exists(stack.config):
        return supervisor.is_ready(stack)
    return not missing_queues(found.workers, found.queues)


def _reductions(stack: Stack, found: Figures | None) -> list[Reduction]:
    """Return which work of the stack is late or not done; [] for a stack with a supervisor."""
    if found is None or os.path.exists(stack.config):
        return []
    return reductions_of(found.workers, found.scheduler)


def _processes(stack: Stack) -> list[dict[str, Any]]:
    return [
        {
            "name": entry["name"],
            "state": entry["statename"].lower(),
            "pid": entry["pid"],
            # The difference is negative after the clock was set back.
            "uptime_secs": max(entry["now"] - entry["start"], 0) if entry["pid"] else 0,
        }
        for entry in supervisor.processes(stack)
    ]


def _figures_and_alerts(
    place: Place, stack: Stack, alive: bool
) -> tuple[Figures | None, list[Alert]]:
    if alive:
        try:
            with connection.connect(stack.address, limit_secs=connection.REPLY_SECS) as client:
                found = figures(client)
                return found, alerts_of(vitals(place.home, found, client))
        except RedisError:  # Redis has just gone away
            pass
    return None, alerts_of(vitals(place.home, None, None))


def _described(home: str, alerts: list[Alert]) -> list[dict[str, Any]]:
    since = stored.active_alerts(database_path(home))
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
    """Return why hooks could not start the stack and when they try again, or None."""
    starting = read_starting(stack.folder)
    if not starting.failures:
        return None
    return {
        "reason": starting.reason,
        "failures": starting.failures,
        "again_in_secs": max(round(starting.not_before - time.time()), 0),
    }
