"""The events of a probe: the fields that Claude Code 2.1 sends, without user data."""

from typing import Any

from hivepipe.home import real_path

_TOOL = {
    "tool_name": "Read",
    "tool_input": {"file_path": "/nonexistent/hivepipe-probe"},
    "tool_use_id": "toolu_probe",
}
_FIELDS: dict[str, dict[str, Any]] = {
    "SessionStart": {"source": "startup", "model": "probe"},
    "UserPromptSubmit": {"prompt": "hivepipe probe"},
    "UserPromptExpansion": {
        "expansion_type": "slash_command",
        "command_name": "hivepipe-probe",
        "command_args": "",
        "prompt": "/hivepipe-probe",
    },
    "PreToolUse": _TOOL,
    "PostToolUse": {**_TOOL, "tool_response": {}, "duration_ms": 1},
    "PostToolUseFailure": {**_TOOL, "error": "probe", "is_interrupt": False, "duration_ms": 1},
    "PostToolBatch": {"tool_calls": []},
    "PermissionRequest": {"tool_name": "Read", "tool_input": {}},
    "PermissionDenied": {**_TOOL, "reason": "probe"},
    "Notification": {"notification_type": "permission_prompt", "message": "probe"},
    "PostModelSwitch": {"from_model": "probe", "to_model": "probe", "source": "command"},
    "SubagentStart": {"agent_id": "probe", "agent_type": "probe"},
    "SubagentStop": {"agent_id": "probe", "agent_type": "probe", "stop_hook_active": False},
    "PreCompact": {"trigger": "manual", "custom_instructions": ""},
    "Stop": {"stop_hook_active": False, "last_assistant_message": "", "background_tasks": []},
    "StopFailure": {"error": "unknown"},
    "SessionEnd": {"reason": "other"},
}


def probe_event(name: str, session: str) -> dict[str, Any]:
    """Return an event of a session that does not exist."""
    return {
        "session_id": session,
        "transcript_path": f"/nonexistent/{session}.jsonl",
        "cwd": real_path("."),
        "permission_mode": "default",
        "hook_event_name": name,
        **_FIELDS.get(name, {}),
    }
