"""Recorded events of other hosts than Claude Code, with invented paths."""

from typing import Any

Payload = dict[str, Any]

# Codex CLI 0.169.0.
_ROLLOUT = "rollout-2026-11-22T23-51-16-01a205ab-d103-7783-8da7-0b4ab90fa79e.jsonl"
_CODEX: Payload = {
    "session_id": "01a205ab-d103-7783-8da7-0b4ab90fa79e",
    "transcript_path": f"/home/ana/.codex/sessions/2026/11/22/{_ROLLOUT}",
    "cwd": "/home/ana/shop",
    "model": "gpt-5.5",
    "permission_mode": "bypassPermissions",
}
CODEX_START = {**_CODEX, "hook_event_name": "SessionStart", "source": "startup"}
_CODEX_TURN = {**_CODEX, "turn_id": "01a205ab-d1bc-7122-a476-e64e88b84fbd"}
CODEX_PROMPT = {**_CODEX_TURN, "hook_event_name": "UserPromptSubmit", "prompt": "please work"}
CODEX_CALL = {
    **_CODEX_TURN,
    "hook_event_name": "PreToolUse",
    "tool_name": "Bash",
    "tool_input": {"command": "ls"},
    "tool_use_id": "call_1",
}
CODEX_PATCH = {
    **_CODEX_TURN,
    "hook_event_name": "PostToolUse",
    "tool_name": "apply_patch",
    "tool_input": {"command": "*** Begin Patch\n*** Add File: a.txt\n+one\n*** End Patch"},
    "tool_response": "Exit code: 0\nOutput:\nSuccess. Updated the following files:\nA a.txt\n",
    "tool_use_id": "call_3",
}
CODEX_END = {
    "session_id": CODEX_START["session_id"],
    "transcript_path": CODEX_START["transcript_path"],
    "cwd": "/home/ana/shop",
    "hook_event_name": "SessionEnd",
    "reason": "other",
}
CODEX = [CODEX_START, CODEX_PROMPT, CODEX_CALL, CODEX_PATCH, CODEX_END]

# Copilot CLI 1.0.102.
_COPILOT: Payload = {
    "session_id": "2cd4fff1-77fd-4217-a713-73351461c609",
    "timestamp": "2026-11-22T23:52:41.639Z",
    "cwd": "/home/ana/shop",
}
COPILOT_START = {
    **_COPILOT,
    "hook_event_name": "SessionStart",
    "source": "new",
    "initial_prompt": "please work",
}
COPILOT_WRITE = {
    **_COPILOT,
    "hook_event_name": "PostToolUse",
    "tool_name": "Write",
    "tool_input": {"path": "/home/ana/shop/a.txt", "file_text": "one"},
    "tool_result": {"result_type": "success", "text_result_for_llm": "Created"},
}
COPILOT_FAILURE = {
    **_COPILOT,
    "hook_event_name": "PostToolUseFailure",
    "tool_name": "Read",
    "tool_input": {"path": "/home/ana/shop/none.txt"},
    "error": "Path does not exist",
}
COPILOT_STOP = {
    **_COPILOT,
    "hook_event_name": "Stop",
    "transcript_path": f"/home/ana/.copilot/session-state/{_COPILOT['session_id']}/events.jsonl",
    "stop_reason": "end_turn",
    "stop_hook_active": False,
}
COPILOT = [COPILOT_START, COPILOT_WRITE, COPILOT_FAILURE, COPILOT_STOP]
CURSOR = {**COPILOT_START, "cursor_version": "2.0", "transcript_path": "/home/ana/t.jsonl"}

# Cursor 3.21, by its documentation and public tests of other hooks.
_CURSOR: Payload = {
    "conversation_id": "9c1f6a52-1111-4222-8333-944445555666",
    "generation_id": "gen-1",
    "cursor_version": "3.21.18",
    "workspace_roots": ["/home/ana/shop"],
    "user_email": None,
    "transcript_path": None,
}
CURSOR_START = {**_CURSOR, "hook_event_name": "sessionStart"}
CURSOR_PROMPT = {**_CURSOR, "hook_event_name": "beforeSubmitPrompt", "prompt": "please work"}
CURSOR_CALL = {
    **_CURSOR,
    "hook_event_name": "postToolUse",
    "tool_name": "Shell",
    "tool_input": {"command": "ls", "working_directory": "/home/ana/shop"},
    "tool_output": "a.txt",
    "tool_use_id": "t1",
    "duration": 10,
}
CURSOR_FAILURE = {
    **_CURSOR,
    "hook_event_name": "postToolUseFailure",
    "tool_name": "Shell",
    "tool_input": {"command": "npm test"},
    "tool_use_id": "t2",
    "error_message": "Command timed out after 30s",
    "failure_type": "timeout",
    "duration": 5000,
    "is_interrupt": False,
}
CURSOR_END = {**_CURSOR, "hook_event_name": "sessionEnd", "reason": "completed"}
CURSOR_OWN = [CURSOR_START, CURSOR_PROMPT, CURSOR_CALL, CURSOR_FAILURE, CURSOR_END]
