"""How a stack is, in one word.

healthy       it runs, and no alert stands
degraded      it runs; an alert stands that is not urgent, or the database did not answer just now
unhealthy     it runs, or rests, with something wrong that needs a person
resting       no process runs and nothing is wrong: the next event of a session starts it
stopped       by `hivepipe down`: hooks keep their events on disk
off           by `hivepipe off`: hooks do nothing
unregistered  no `init` and no `up` was run here
broken        it should run and does not
"""

from collections.abc import Iterable
from typing import NamedTuple

from hivepipe.alerts import Alert

HEALTHY, DEGRADED, UNHEALTHY = "healthy", "degraded", "unhealthy"
RESTING, STOPPED, OFF, UNREGISTERED, BROKEN = (
    "resting",
    "stopped",
    "off",
    "unregistered",
    "broken",
)
FINE = (HEALTHY, DEGRADED, RESTING)  # nobody has to do anything at once: exit code 0

_BY_WORD = {"down": STOPPED, "off": OFF}  # what a person said


class Seen(NamedTuple):
    """What one look found of a stack."""

    state: str  # of the record: on, down, off
    is_registered: bool
    runs: bool
    is_ready: bool  # all processes are there and well
    is_unsupervised: bool  # processes are left of a supervisor that was killed
    could_not_start: bool
    has_trouble: bool  # with the database, or with jobs of a newer version, however short
    has_long_trouble: bool
    alerts: tuple[Alert, ...]


def condition_of(seen: Seen) -> str:
    """Return how a stack is; this module's docstring has the words."""
    if seen.state in _BY_WORD:
        return _BY_WORD[seen.state]
    if seen.runs:
        return _of_running(seen)
    if not seen.is_registered:
        return UNREGISTERED
    if seen.could_not_start or seen.is_unsupervised or _wait_in_vain(seen.alerts):
        return BROKEN
    return UNHEALTHY if _is_urgent(seen.alerts) else RESTING


def _of_running(seen: Seen) -> str:
    if not seen.is_ready or seen.has_long_trouble or _is_urgent(seen.alerts):
        return UNHEALTHY
    return DEGRADED if seen.alerts or seen.has_trouble else HEALTHY


def _is_urgent(alerts: Iterable[Alert]) -> bool:
    return any(alert.is_urgent for alert in alerts)


def _wait_in_vain(alerts: Iterable[Alert]) -> bool:
    """Do events wait on disk for so long that a hook would have started the stack?"""
    return any(alert.name == "spool" for alert in alerts)
