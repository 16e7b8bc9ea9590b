"""What a hook may answer, as a table: Claude Code's contract of late 2026, event by event.

Source: https://code.claude.com/docs/en/hooks, "JSON output". What is discarded or would make Claude
go on is not in it: on those events the neutral answer is the only one.
"""

import json
from typing import Any

NEUTRAL = ""
MOST_CHARS = 10_000

CONTEXT = {"additionalContext": str}
# Event -> the fields of hookSpecificOutput that hivepipe's hooks may use.
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
    """Return hookSpecificOutput of an answer that fits the contract, empty if it is neutral."""
    if text == NEUTRAL:
        return {}
    assert event in ALLOWED, f"{event} may only be answered neutrally: {text}"
    assert text.endswith("\n")
    assert text.count("\n") == 1
    answer = json.loads(text)
    for_the_user = answer.pop("systemMessage", "")
    if for_the_user:  # a line a day, when a session starts
        assert event == "SessionStart"
        assert answer.pop("continue") is True
        assert len(for_the_user) <= MOST_CHARS
        if not answer:
            return {}
    if answer.get("decision") == "block":  # ends the turn
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
