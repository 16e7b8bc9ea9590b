"""Read an answer of Claude: the skill at work, and the outcome of the conversation."""

from typing import Any

from hivepipe.transcripts.lines import Fields, text

_MCP_PROMPT = "mcp__"  # the name begins so: mcp__server__prompt
_BAD_ENDS = ("max_tokens", "refusal", "model_context_window_exceeded")


def skill_at_work(line: Fields) -> str:
    """Return the skill that an answer's line names, or "".

    The line also names a skill that the user typed. Such a skill has no tool call. An MCP prompt is
    no skill; the line names it in the same field.
    """
    skill, plugin = text(line, "attributionSkill"), text(line, "attributionPlugin")
    if skill.startswith(_MCP_PROMPT):
        return ""
    return f"{plugin}:{skill}" if skill and plugin and ":" not in skill else skill


def outcome_of(stop_reason: Any, has_text: bool, has_calls: bool) -> str:
    """Return the outcome of a conversation with this end: success, error or unknown."""
    if stop_reason in _BAD_ENDS:
        return "error"
    if has_calls or not has_text:
        return "unknown"
    return "success" if stop_reason in (None, "end_turn", "stop_sequence") else "unknown"
