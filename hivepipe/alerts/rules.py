"""The alerts of a stack, computed from its figures. No I/O."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from hivepipe.text.plurals import counted

STORE_SECS = 60.0  # shorter times are transactions of other programs
WAITING_SECS = 60.0
SPOOLED_SECS = 60.0
SPOOLED_WHILE_AWAY_SECS = 600.0  # longer than any restart takes
ROOM_BYTES = 200_000_000
UPLINK_SECS = 900.0  # shorter times are network outages and restarts
SHARE_PERCENT = 5
SHARE_LEAST = 20
SHARE_SECS = 900.0
# Checks without the condition before an alert resolves (debounce).
CHECKS_TO_RESOLVE = 3


# Hive workers that need an action: state, and its description.
_WAITING = (
    ("need_input", "waiting for an answer"),
    ("error", "with an error"),
    ("died", "ended without a result"),
    ("ended", "ended without a status.json"),
    ("stale", "silent"),
    ("context_full", "out of context"),
    ("broken", "with an unreadable status.json"),
    ("not started", "never started"),
)


class Vitals(NamedTuple):
    """The figures of a stack; an unknown figure has its default."""

    redis_answers: bool = True
    failed: int = 0
    oldest_waiting_secs: float = 0.0
    spooled: int = 0
    oldest_spooled_secs: float = 0.0
    free_bytes: int | None = None
    lost: tuple[int, str, str] | None = None  # lost in the last week: number, first, last time
    unserved: tuple[str, ...] = ()  # queues that no living worker serves
    clock_stands_still: bool = False  # no scheduler is active
    store_secs: float = 0.0  # how long the database has not been writable
    store_reason: str = ""
    hive: dict[str, int] = {}  # noqa: RUF012  state -> hive workers; never modified
    budget: str = ""  # use of the day's caps by summaries, if a cap is nearly reached
    uplink: str = ""  # why the team's server does not have all rows
    uplink_secs: float = 0.0  # how long the oldest of them has waited
    ratings: str = ""  # why the memory server refused the last ratings
    # operation -> (jobs without effect, all jobs), within SHARE_SECS
    effectless: dict[str, tuple[int, int]] = {}  # noqa: RUF012  never modified


class Alert(NamedTuple):
    """One condition that the user should know; a stack with an urgent one is not healthy."""

    name: str
    text: str
    is_urgent: bool = False


class Change(NamedTuple):
    """The result of one check: new alerts, resolved ones, and the state for the next check."""

    begun: list[Alert]
    over: list[str]
    standing: dict[str, int]  # name -> number of checks in a row without the condition


def compare(seen: Iterable[Alert], standing: Mapping[str, int]) -> Change:
    """Compare the alerts of a check with the active ones."""
    now = {alert.name: alert for alert in seen}
    absent = {name: checks + 1 for name, checks in standing.items() if name not in now}
    over = sorted(name for name, checks in absent.items() if checks >= CHECKS_TO_RESOLVE)
    left = {name: checks for name, checks in absent.items() if checks < CHECKS_TO_RESOLVE}
    begun = [alert for name, alert in now.items() if name not in standing]
    return Change(begun, over, left | dict.fromkeys(now, 0))


def alerts_of(vitals: Vitals) -> list[Alert]:
    """Return the alerts for these figures, urgent ones first."""
    judged = (
        _unserved,
        _clock,
        _store,
        _disk,
        _lost,
        _dead,
        _waiting,
        _spool,
        _hive,
        _effectless,
        _budget,
        _ratings,
        _uplink,
    )
    found = [alert for judge in judged if (alert := judge(vitals))]
    return sorted(found, key=lambda alert: not alert.is_urgent)


def _unserved(vitals: Vitals) -> Alert | None:
    if not vitals.unserved:
        return None
    return Alert("no_worker", f"no worker serves {', '.join(vitals.unserved)}", is_urgent=True)


def _clock(vitals: Vitals) -> Alert | None:
    if not vitals.clock_stands_still:
        return None
    text = "no scheduler is active: periodic jobs do not run (`hivepipe logs scheduler`)"
    return Alert("no_scheduler", text, is_urgent=True)


def _store(vitals: Vitals) -> Alert | None:
    if vitals.store_secs < STORE_SECS:
        return None
    text = (
        f"the database has not been writable for {_span(vitals.store_secs)}: {vitals.store_reason}"
    )
    return Alert("store", text, is_urgent=True)


def _disk(vitals: Vitals) -> Alert | None:
    if vitals.free_bytes is None or vitals.free_bytes >= ROOM_BYTES:
        return None
    text = f"{vitals.free_bytes / 1e6:.0f} MB are free on the disk: a full disk loses events"
    return Alert("disk", text, is_urgent=True)


def _lost(vitals: Vitals) -> Alert | None:
    if not vitals.lost:
        return None
    count, first, last = vitals.lost
    text = f"{counted(count, 'event')} could not be kept between {first[:19]} and {last[:19]} UTC"
    return Alert("lost_events", f"{text}: neither Redis nor a disk took them")


def _dead(vitals: Vitals) -> Alert | None:
    if not vitals.failed:
        return None
    return Alert("failed_jobs", f"{counted(vitals.failed, 'failed job')}: hivepipe failed list")


def _waiting(vitals: Vitals) -> Alert | None:
    if vitals.oldest_waiting_secs < WAITING_SECS:
        return None
    return Alert("queue_age", f"a job has waited for {_span(vitals.oldest_waiting_secs)}")


def _spool(vitals: Vitals) -> Alert | None:
    patience = SPOOLED_SECS if vitals.redis_answers else SPOOLED_WHILE_AWAY_SECS
    if not vitals.spooled or vitals.oldest_spooled_secs < patience:
        return None
    oldest = _span(vitals.oldest_spooled_secs)
    return Alert(
        "spool", f"{counted(vitals.spooled, 'event', 'wait')} on disk, the oldest for {oldest}"
    )


def _hive(vitals: Vitals) -> Alert | None:
    found = [f"{vitals.hive[state]} {called}" for state, called in _WAITING if state in vitals.hive]
    if not found:
        return None
    return Alert("hive_workers", f"hive workers: {', '.join(found)}; see `hivepipe hive check`")


def _effectless(vitals: Vitals) -> Alert | None:
    counts = [
        f"{nothing} of {all_} {operation}"
        for operation, (nothing, all_) in sorted(vitals.effectless.items())
        if all_ >= SHARE_LEAST and nothing * 100 >= all_ * SHARE_PERCENT
    ]
    if not counts:
        return None
    text = f"no-op updates within {_span(SHARE_SECS)}: {', '.join(counts)}"
    return Alert("no_effect", text)


def _budget(vitals: Vitals) -> Alert | None:
    return Alert("budget", f"summaries wait: {vitals.budget} today") if vitals.budget else None


def _ratings(vitals: Vitals) -> Alert | None:
    if not vitals.ratings:
        return None
    return Alert("memory_server", f"the memory server did not take ratings: {vitals.ratings}")


def _uplink(vitals: Vitals) -> Alert | None:
    if vitals.uplink_secs < UPLINK_SECS and not vitals.uplink:
        return None
    lag = f"rows have waited for the team's server for {_span(vitals.uplink_secs)}"
    if vitals.uplink_secs < UPLINK_SECS:
        return Alert("uplink", vitals.uplink)
    return Alert("uplink", f"{lag}: {vitals.uplink}" if vitals.uplink else lag)


def _span(secs: float) -> str:
    if secs < 120:
        return f"{secs:.0f} s"
    return f"{secs / 60:.0f} min" if secs < 7200 else f"{secs / 3600:.0f} h"
