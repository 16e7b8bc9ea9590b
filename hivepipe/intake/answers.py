"""The form of an answer: one JSON object in Claude Code's contract.

Never "allow": it would answer for the user, who was asked.
On the hook path, when there is something to say.
"""

from hivepipe.jobs import dumps

MOST_CHARS = 10_000  # Claude Code cuts what is longer


def denial(reason: str) -> bytes:
    """Return the answer that stops a tool call, PreToolUse alone."""
    said = {"permissionDecision": "deny", "permissionDecisionReason": reason[:MOST_CHARS]}
    return _line(_specific("PreToolUse", said))


def stop(reason: str) -> bytes:
    """Return the answer that ends the turn after a batch of calls."""
    return _line({"decision": "block", "reason": reason[:MOST_CHARS]})


def context(event_name: str, text: str, for_the_user: str = "") -> bytes:
    """Return the answer that tells Claude something, and perhaps the user a line."""
    said = _specific(event_name, {"additionalContext": text[:MOST_CHARS]})
    if for_the_user:
        return _line({"continue": True, "systemMessage": for_the_user, **said})
    return _line(said)


def message(text: str) -> bytes:
    """Return the answer that shows the user a line and tells Claude nothing."""
    return _line({"continue": True, "systemMessage": text})


def _specific(event_name: str, said: dict[str, str]) -> dict[str, object]:
    return {"hookSpecificOutput": {"hookEventName": event_name, **said}}


def _line(answer: dict[str, object]) -> bytes:
    return f"{dumps(answer)}\n".encode()
