"""The answers that Claude Code accepts from hooks, by event, as of late 2026.

Source: https://code.claude.com/docs/en/hooks, "JSON output". The table omits fields that are
discarded, and fields that make Claude continue. For events that are not in it only the empty answer
is allowed.
"""

import json
from typing import Any

NEUTRAL = ""
MOST_CHARS = 10_000

CONTEXT = {"additionalContext": str}
# event -> the fields of hookSpecificOutput that hivepipe's hooks may use
ALLOWED: dict[str, dict[str, type]] = {
    "SessionStart": CONTEXT,
    "UserPromptSubmit": CONTEXT,
    "UserPromptExpansion": CONTEXT,
    "PreToolUse": {**CONTEXT, "permissionDecision": str, "permissionDecisionReason": str},
    "PostToolUse": CONTEXT,
    "PostToolUseFailure": CONTEXT,
    "PostToolBatch": CONTEXT,
    "SubagentStart": CONTEXT,
}


def checked(event: str, text: str) -> dict[str, Any]:
    """Check an answer against the contract and return its hookSpecificOutput; {} if it is empty."""
    if text == NEUTRAL:
        return {}
    assert event in ALLOWED, f"{event} may only be answered neutrally: {text}"
    assert text.endswith("\n")
    assert text.count("\n") == 1
    answer = json.loads(text)
    for_the_user = answer.pop("systemMessage", "")
    if for_the_user:  # at most once a day, at the start of a session
        assert event == "SessionStart"
        assert answer.pop("continue") is True
        assert len(for_the_user) <= MOST_CHARS
        if not answer:
            return {}
    if answer.get("decision") == "block":  # this ends the turn
        assert event == "PostToolBatch"
        assert set(answer) == {"decision", "reason"}
        return {}
    assert set(answer) == {"hookSpecificOutput"}
    output: dict[str, Any] = answer["hookSpecificOutput"]
    assert output.pop("hookEventName") == event
    assert output
    assert set(output) <= set(ALLOWED[event])
    for name, value in output.items():
        assert isinstance(value, ALLOWED[event][name])
        assert 0 < len(value) <= MOST_CHARS
    if "permissionDecision" in output:
        assert output["permissionDecision"] == "deny"  # "allow" would answer for the user
        assert output["permissionDecisionReason"]
    return output
