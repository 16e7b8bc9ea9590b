"""The condition of a stack as text, for `status` and its watch mode."""

from typing import Any

from hivepipe.stack import condition
from hivepipe.text.plurals import counted

NOT_RUNNING = (
    condition.RESTING,
    condition.STOPPED,
    condition.OFF,
    condition.UNREGISTERED,
    condition.BROKEN,
)
_MEANING = {
    condition.UNHEALTHY: "hivepipe doctor says what to do",
    condition.RESTING: "no process runs; the next event of a session starts the stack",
    condition.STOPPED: "by `hivepipe down`; events wait on disk until `hivepipe up -d`",
    condition.OFF: "by `hivepipe off`; nothing is recorded until `hivepipe on`",
    condition.UNREGISTERED: "not set up here; events wait on disk; hivepipe doctor says what to do",
    condition.BROKEN: "the stack should run and does not; hivepipe doctor says why",
}


def verdict(report: dict[str, Any]) -> str:
    """Return the condition of the stack, its meaning and the number of alerts."""
    word: str = report["condition"]
    alerts = counted(len(report["alerts"]), "alert") if report["alerts"] else ""
    if word == condition.DEGRADED:
        return f"running, with {alerts}" if alerts else "running; the database was busy just now"
    text = f"{word}: {_MEANING[word]}" if word in _MEANING else word
    return f"{text}; {alerts}" if alerts and word in NOT_RUNNING else text


def silence(report: dict[str, Any], pid: int) -> str:
    """Return a note if a running process sends no heartbeat (it hangs or was suspended), or ""."""
    for worker in report["workers"] or ():
        if worker["pid"] == pid and not worker["alive"] and worker["heartbeat_secs"] is not None:
            return f", no heartbeat for {worker['heartbeat_secs']:.0f} s"
    return ""


def balance(report: dict[str, Any]) -> str:
    """Return `accepted = sum of jobs by state` as text; add a note if the two are not equal."""
    accounts = report["accounts"]
    parts = {name: count for name, count in accounts.items() if name != "accepted"}
    found = sum(parts.values())
    sign = "=" if found == accounts["accepted"] else f"but {found} are found:"
    terms = " + ".join(f"{count} {name}" for name, count in parts.items())
    periodic = f", {report['periodic']} of them periodic" if report["periodic"] else ""
    return f"{accounts['accepted']} {sign} {terms}{periodic}"
