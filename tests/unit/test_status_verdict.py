"""The condition of a stack, and the last line of `hivepipe status`."""

from typing import Any

import pytest

from hivepipe.alerts.rules import Alert
from hivepipe.monitor.status_words import verdict
from hivepipe.stack import condition
from hivepipe.stack.condition import StackFacts, condition_of

RESTING = StackFacts(
    state="on",
    is_registered=True,
    runs=False,
    is_ready=False,
    is_unsupervised=False,
    could_not_start=False,
    has_trouble=False,
    has_long_trouble=False,
    alerts=(),
)
RUNNING = RESTING._replace(runs=True, is_ready=True)
MINOR = Alert("failed", "1 failed job")
URGENT = Alert("disk", "the disk is full", is_urgent=True)
WAITING = Alert("spool", "3 events wait on disk")


@pytest.mark.parametrize(
    ("seen", "word"),
    [
        (RUNNING, "healthy"),
        (RUNNING._replace(alerts=(MINOR,)), "degraded"),
        (RUNNING._replace(has_trouble=True), "degraded"),
        (RUNNING._replace(has_trouble=True, has_long_trouble=True), "unhealthy"),
        (RUNNING._replace(alerts=(URGENT, MINOR)), "unhealthy"),
        (RUNNING._replace(is_ready=False), "unhealthy"),
        (RUNNING._replace(state="down"), "stopped"),
        (RUNNING._replace(state="off"), "off"),
        (RESTING, "resting"),
        (RESTING._replace(alerts=(MINOR,)), "resting"),
        (RESTING._replace(alerts=(URGENT,)), "unhealthy"),
        (RESTING._replace(alerts=(WAITING,)), "broken"),
        (RESTING._replace(could_not_start=True), "broken"),
        (RESTING._replace(is_unsupervised=True), "broken"),
        (RESTING._replace(state="down", could_not_start=True), "stopped"),
        (RESTING._replace(state="off"), "off"),
        (RESTING._replace(is_registered=False), "unregistered"),
        (RESTING._replace(is_registered=False, alerts=(WAITING,)), "unregistered"),
    ],
)
def test_each_condition_has_its_word(seen: StackFacts, word: str) -> None:
    assert condition_of(seen) == word


def verdict_of(word: str, alerts: int = 0) -> str:
    report: dict[str, Any] = {"condition": word, "alerts": [{}] * alerts}
    return verdict(report)


def test_nothing_is_called_healthy_under_an_alert_or_trouble() -> None:
    assert verdict_of("healthy") == "healthy"
    assert verdict_of("degraded", 1) == "running, with 1 alert"
    assert verdict_of("degraded", 2) == "running, with 2 alerts"
    assert "healthy" not in verdict_of("degraded")
    assert verdict_of("resting", 1).endswith("; 1 alert")


REMEDIES = {
    "resting": "the next event of a session starts the stack",
    "stopped": "`hivepipe up -d`",
    "off": "`hivepipe on`",
    "unregistered": "events wait on disk; hivepipe doctor says what to do",
    "broken": "hivepipe doctor",
    "unhealthy": "hivepipe doctor",
}


def test_every_other_condition_is_shown_with_the_command_that_changes_it() -> None:
    for word, part in REMEDIES.items():
        assert verdict_of(word).startswith(f"{word}: ")
        assert part in verdict_of(word)


def test_only_a_state_without_urgent_work_exits_with_zero() -> None:
    words = {name for name in vars(condition) if name.isupper()} - {"FINE"}
    assert words > {"HEALTHY", "RESTING", "STOPPED", "BROKEN"}
    assert set(condition.FINE) == {"healthy", "degraded", "resting"}
