"""The condition of a stack, as one word.

healthy       it runs, and no alert is active
degraded      it runs, but an alert that is not urgent is active, or the database fails at present
unhealthy     it runs or rests, with a problem that needs a person
resting       no process runs, or all are ending, and nothing is wrong; the next event of a session
              starts it
stopped       a user ran `hivepipe down`; hooks keep their events on disk
off           a user ran `hivepipe off`; hooks do nothing
unregistered  neither `init` nor `up` was run here
broken        it should run but does not
"""

from collections.abc import Iterable
from typing import NamedTuple

from hivepipe.alerts.rules import Alert

HEALTHY, DEGRADED, UNHEALTHY = "healthy", "degraded", "unhealthy"
RESTING, STOPPED, OFF = "resting", "stopped", "off"
UNREGISTERED, BROKEN = "unregistered", "broken"
FINE = (HEALTHY, DEGRADED, RESTING)  # no action is needed: exit code 0

_BY_WORD = {"down": STOPPED, "off": OFF}  # states set by a user's command


class StackFacts(NamedTuple):
    state: str  # state in the record: on, down or off
    is_registered: bool
    runs: bool  # the stack runs, and is not stopping
    is_ready: bool  # all processes run and are ready
    is_unsupervised: bool  # processes run, but their supervisor was killed
    could_not_start: bool
    has_trouble: bool  # the database fails, or jobs need a newer version
    has_long_trouble: bool  # `has_trouble` for a long time
    alerts: tuple[Alert, ...]


def condition_of(facts: StackFacts) -> str:
    """Return the condition of a stack: one of the words in this module's docstring."""
    if facts.state in _BY_WORD:
        return _BY_WORD[facts.state]
    if facts.runs:
        return _of_running(facts)
    if not facts.is_registered:
        return UNREGISTERED
    # Events have then waited on disk for longer than an automatic start takes.
    wait_too_long = any(alert.name == "spool" for alert in facts.alerts)
    if facts.could_not_start or facts.is_unsupervised or wait_too_long:
        return BROKEN
    return UNHEALTHY if _is_urgent(facts.alerts) else RESTING


def _of_running(facts: StackFacts) -> str:
    if not facts.is_ready or facts.has_long_trouble or _is_urgent(facts.alerts):
        return UNHEALTHY
    return DEGRADED if facts.alerts or facts.has_trouble else HEALTHY


def _is_urgent(alerts: Iterable[Alert]) -> bool:
    return any(alert.is_urgent for alert in alerts)
