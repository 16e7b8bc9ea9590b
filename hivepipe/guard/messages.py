"""The guard's messages: for the agent, and for a person who asks for the reason."""

from hivepipe.guard import client, rules
from hivepipe.guard.rules import Limits, Verdict
from hivepipe.text.quoting import on_one_line, quoted
from hivepipe.text.visible import printable

MOST_WHY_CHARS = 1_000
MOST_TOOL_CHARS = 200
SWITCH_OFF = "A person switches this off with `hivepipe guard mode off`."  # only people see this

_FINDINGS = {
    rules.LOOP: (
        "{tool} was called {count} times with the same arguments among the last "
        f"{client.WINDOW} calls, and nothing else has changed in between"
    ),
    rules.ALTERNATION: (
        "{tool} and one other call have taken turns for {count} calls, always with the same "
        "arguments, and nothing else has changed in between"
    ),
    rules.POLLING: "{tool} has returned the same as before {count} times in a row",
}

EXPLANATIONS = {
    rules.CANCELLED: (
        "A session whose task was cancelled (`hivepipe task cancel`) is denied every tool call, in "
        "every mode. A session's task is named by HIVEPIPE_TASK_ID, by the file in "
        "HIVEPIPE_TASK_FILE, or by `hivepipe task assign`. The next prompt tells the agent once."
    ),
    rules.SHARED_DISK: (
        "With a shared root (`shared_root`) and a profile (HIVEPIPE_AGENT_ID), a write into it "
        "is denied unless it goes to <root>/<category>/<profile>/. Links and `..` are resolved. In "
        "a shell command, redirections and the arguments of commands that write are checked; a "
        "command that names the root and cannot be parsed gets a warning, not a denial. Reading is "
        "not restricted."
    ),
    rules.LOOP: (
        "The same tool with the same arguments, among the last {window} calls of a conversation: "
        "a warning at {limits.loop_warn}, denied from {limits.loop_deny} on. Every call counts, "
        "denied ones too; the order of keys in the arguments does not matter. The count is reset "
        "when the call returns another result, when an edit tool or a new command changes a file, "
        "and by a prompt or another task."
    ),
    rules.ALTERNATION: (
        "Two calls that alternate and are over 80 % of the latest calls of a conversation: a "
        "warning at {limits.alternation_warn}, denied from {limits.alternation_deny} on. What "
        "resets the count of a loop resets this count too."
    ),
    rules.POLLING: (
        "A tool that `guard_polls` names is denied after {limits.empty_polls} "
        "results in a row that were the same as the one before."
    ),
}


def reason(verdict: Verdict, tool: str, task: str) -> str:
    """Return a denial's reason, for the agent; it names no command that lifts the denial."""
    if verdict.rule == rules.CANCELLED:
        return (
            f"{cancelled(verdict, task)}Stop here, call no more tools, and say how far you got. "
            "The user can reopen it."
        )
    if verdict.rule == rules.SHARED_DISK:
        text = f"Denied by the hivepipe guard, rule {verdict.rule}: {printable(verdict.subject)}."
        return f"{text} If that is wrong, ask the user."
    return (
        f"Denied by the hivepipe guard, rule {verdict.rule}: {_finding(verdict, tool)}. "
        "Do something else, or ask the user."
    )


def warning(verdict: Verdict, tool: str, limits: Limits) -> str:
    """Return the text of a warning: what the guard found, and what the session can do."""
    if verdict.rule == rules.SHARED_DISK:
        return (
            f"hivepipe guard, rule {verdict.rule}: {printable(verdict.subject)}. "
            "Reading is not restricted."
        )
    noticed = f"hivepipe guard, rule {verdict.rule}: {_finding(verdict, tool)}."
    if verdict.deny:
        return f"{noticed} Are you stuck? Then do something else, or ask the user."
    if verdict.subject == client.WAITING_SUBJECT:
        return f"{noticed} If you are waiting for something, wait longer between two checks."
    deny = limits.loop_deny if verdict.rule == rules.LOOP else limits.alternation_deny
    return f"{noticed} From {deny} on it counts as a loop. If you are stuck, do something else."


def cancelled(verdict: Verdict, task: str) -> str:
    """Return a sentence about a task's cancellation, with the reason if one was given."""
    _, _, why = verdict.subject.strip().partition("\n")
    if not why.strip():
        return f"Task {task} was cancelled. "
    return f"Task {task} was cancelled. The reason that was given:\n{quoted(why, MOST_WHY_CHARS)}\n"


def _finding(verdict: Verdict, tool: str) -> str:
    return _FINDINGS[verdict.rule].format(
        tool=on_one_line(tool, MOST_TOOL_CHARS), count=verdict.count
    )
