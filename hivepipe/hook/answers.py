"""The format of a hook's answer, one JSON object that Claude Code defines.

An answer never says "allow", because that would answer a permission prompt for the user. Texts for
Claude are cut at MOST_CHARS. Hooks import this module when there is an answer.
"""

from hivepipe.events.job_plan import dumps

MOST_CHARS = 10_000  # Claude Code truncates longer texts


def denial(reason: str) -> bytes:
    """Return the answer that denies a tool call. Only hooks on PreToolUse can deny."""
    decision = {"permissionDecision": "deny", "permissionDecisionReason": reason[:MOST_CHARS]}
    return _line(_specific("PreToolUse", decision))


def stop(reason: str) -> bytes:
    """Return the answer that ends the turn after a batch of calls."""
    return _line({"decision": "block", "reason": reason[:MOST_CHARS]})


def context(event_name: str, text: str, for_the_user: str = "") -> bytes:
    """Return the answer that adds context for Claude, and optionally a line for the user."""
    fields = _specific(event_name, {"additionalContext": text[:MOST_CHARS]})
    if for_the_user:
        return _line({"continue": True, "systemMessage": for_the_user, **fields})
    return _line(fields)


def message(text: str) -> bytes:
    """Return the answer that shows the user a line and adds nothing for Claude."""
    return _line({"continue": True, "systemMessage": text})


def _specific(event_name: str, fields: dict[str, str]) -> dict[str, object]:
    return {"hookSpecificOutput": {"hookEventName": event_name, **fields}}


def _line(answer: dict[str, object]) -> bytes:
    return f"{dumps(answer)}\n".encode()
