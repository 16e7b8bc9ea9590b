"""The alerts of a stack, computed from measured values (`Vitals`). No I/O."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from hivepipe.text.plurals import counted
from hivepipe.times import span

STORE_SECS = 60.0  # other programs' transactions take less time
WAITING_SECS = 60.0
SPOOLED_SECS = 60.0
SPOOLED_WHILE_AWAY_SECS = 600.0  # longer than any restart takes
ROOM_BYTES = 200_000_000
UPLINK_SECS = 900.0  # network outages and restarts take less time
SHARE_PERCENT = 5
SHARE_LEAST = 20
SHARE_SECS = 900.0
# Checks without the condition before an alert resolves (debounce).
CHECKS_TO_RESOLVE = 3


# States of hive workers that need a person's action -> the words after a number of workers.
WAITING_WORKERS = {
    "need_input": "waiting for an answer",
    "error": "with an error",
    "died": "ended without a result",
    "ended": "ended without a status.json",
    "stale": "silent",
    "context_full": "out of context",
    "broken": "with an unreadable status.json",
    "not started": "never started",
}


class Vitals(NamedTuple):
    """The measured values of a stack. A value that is unknown keeps its default."""

    redis_answers: bool = True
    failed: int = 0
    oldest_waiting_secs: float = 0.0
    spooled: int = 0
    oldest_spooled_secs: float = 0.0
    free_bytes: int | None = None
    full_disk: str = ""  # a folder of the home, or that of its sockets, whose disk is full
    # events lost in the last week: number, first, last time
    lost: tuple[int, str, str] | None = None
    redis_full: bool = False
    unserved: tuple[str, ...] = ()  # queues that no living worker serves
    lacks_scheduler: bool = False
    store_secs: float = 0.0  # how long the database has not been writable
    store_reason: str = ""
    hive: dict[str, int] = {}  # noqa: RUF012  state -> hive workers; never modified
    budget: str = ""  # use of the day's caps by summaries, if a cap is nearly reached
    uplink: str = ""  # why the team's server does not have all rows
    uplink_secs: float = 0.0  # how long the oldest unsent row has waited
    ratings: str = ""  # why the memory server refused the last ratings
    # operation -> (jobs without effect, all jobs), within SHARE_SECS
    effectless: dict[str, tuple[int, int]] = {}  # noqa: RUF012  never modified


class Alert(NamedTuple):
    """One problem that the user should know of. A stack with an urgent alert is unhealthy."""

    name: str
    text: str
    is_urgent: bool = False


class Change(NamedTuple):
    """The result of one check: new alerts, resolved alerts, and the state for the next check."""

    begun: list[Alert]
    over: list[str]
    standing: dict[str, int]  # name -> number of checks in a row without the condition


def compare(seen: Iterable[Alert], standing: Mapping[str, int]) -> Change:
    """Return the changes; `standing` is active alert -> number of successive checks without it."""
    now = {alert.name: alert for alert in seen}
    absent = {name: checks + 1 for name, checks in standing.items() if name not in now}
    over = sorted(name for name, checks in absent.items() if checks >= CHECKS_TO_RESOLVE)
    left = {name: checks for name, checks in absent.items() if checks < CHECKS_TO_RESOLVE}
    begun = [alert for name, alert in now.items() if name not in standing]
    return Change(begun, over, left | dict.fromkeys(now, 0))


def alerts_of(vitals: Vitals) -> list[Alert]:
    """Return the alerts for these values, urgent alerts first."""
    rules = (_of_processes, _of_store, _of_jobs, _of_hive, _of_updates, _of_servers)
    found = [alert for rule in rules for alert in rule(vitals)]
    return sorted(found, key=lambda alert: not alert.is_urgent)


def _of_processes(vitals: Vitals) -> Iterator[Alert]:
    if vitals.redis_full:  # workers and scheduler cannot register
        text = "the memory of Redis is full: events wait on disk; silent workers are not seen"
        yield Alert("redis_memory", text, is_urgent=True)
        return
    if vitals.unserved:
        text = f"no worker serves {', '.join(vitals.unserved)}"
        yield Alert("no_worker", text, is_urgent=True)
    if vitals.lacks_scheduler:
        text = "no scheduler is active: periodic jobs do not run (`hivepipe logs scheduler`)"
        yield Alert("no_scheduler", text, is_urgent=True)


def _of_store(vitals: Vitals) -> Iterator[Alert]:
    if vitals.store_secs >= STORE_SECS:
        text = f"the database has not been writable for {span(vitals.store_secs)}"
        yield Alert("store", f"{text}: {vitals.store_reason}", is_urgent=True)
    if vitals.full_disk:
        text = f"no file can be made on the disk of {vitals.full_disk}"
        yield Alert("disk", text, is_urgent=True)
    elif vitals.free_bytes is not None and vitals.free_bytes < ROOM_BYTES:
        free = f"{vitals.free_bytes / 1e6:.0f} MB are free on the disk"
        yield Alert("disk", f"{free}: a full disk loses events", is_urgent=True)
    if vitals.lost:
        count, first, last = vitals.lost
        when = f"between {first[:19]} and {last[:19]} UTC"
        text = f"{counted(count, 'event')} could not be kept {when}"
        yield Alert("lost_events", f"{text}: neither Redis nor a disk accepted them")


def _of_jobs(vitals: Vitals) -> Iterator[Alert]:
    if vitals.failed:
        yield Alert("failed_jobs", f"{counted(vitals.failed, 'failed job')}: hivepipe failed list")
    if vitals.oldest_waiting_secs >= WAITING_SECS:
        yield Alert("queue_age", f"a job has waited for {span(vitals.oldest_waiting_secs)}")
    limit = SPOOLED_SECS if vitals.redis_answers else SPOOLED_WHILE_AWAY_SECS
    if vitals.spooled and vitals.oldest_spooled_secs >= limit:
        waiting = counted(vitals.spooled, "event", "wait")
        oldest = span(vitals.oldest_spooled_secs)
        yield Alert("spool", f"{waiting} on disk, the oldest for {oldest}")


def _of_hive(vitals: Vitals) -> Iterator[Alert]:
    states = [state for state in WAITING_WORKERS if state in vitals.hive]
    found = [f"{vitals.hive[state]} {WAITING_WORKERS[state]}" for state in states]
    if found:
        text = f"hive workers: {', '.join(found)}; see `hivepipe hive check`"
        yield Alert("hive_workers", text)


def _of_updates(vitals: Vitals) -> Iterator[Alert]:
    counts = [
        f"{nothing} of {all_} {operation}"
        for operation, (nothing, all_) in sorted(vitals.effectless.items())
        if all_ >= SHARE_LEAST and nothing * 100 >= all_ * SHARE_PERCENT
    ]
    if counts:
        text = f"updates that changed no row within {span(SHARE_SECS)}: {', '.join(counts)}"
        yield Alert("no_effect", text)


def _of_servers(vitals: Vitals) -> Iterator[Alert]:
    if vitals.budget:
        yield Alert("budget", f"summaries wait: {vitals.budget} today")
    if vitals.ratings:
        text = f"the memory server did not accept ratings: {vitals.ratings}"
        yield Alert("memory_server", text)
    lag = f"rows have waited for the team's server for {span(vitals.uplink_secs)}"
    reasons = [lag] if vitals.uplink_secs >= UPLINK_SECS else []
    if vitals.uplink:
        reasons.append(vitals.uplink)
    if reasons:
        yield Alert("uplink", ": ".join(reasons))
