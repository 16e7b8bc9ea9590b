"""Example events as Claude Code sends them: exact field names, invented values.

They are plain dicts that must not be changed in place; `changed` and `encoded` make variants.
"""

import json
from typing import Any

Payload = dict[str, Any]

SESSION = "7b1f0c9e-3a52-4d0e-9c55-0d6a1f2be111"
PROMPT = "1d0a6c1e-5b7f-4a6f-8f0e-4c2f3a9b7d22"
AGENT = "a41c09be77d2f0e13"
FOLDER = "/home/ana/.claude/projects/-home-ana-shop"
TRANSCRIPT = f"{FOLDER}/{SESSION}.jsonl"
AGENT_TRANSCRIPT = f"{FOLDER}/{SESSION}/subagents/agent-{AGENT}.jsonl"
CWD = "/home/ana/shop"

_COMMON: Payload = {"session_id": SESSION, "transcript_path": TRANSCRIPT, "cwd": CWD}


def changed(payload: Payload, **fields: Any) -> Payload:
    """Return a copy with these fields replaced; the value `...` removes a field."""
    merged = {**payload, **fields}
    return {key: value for key, value in merged.items() if value is not ...}


def encoded(payload: object) -> bytes:
    """Return the JSON as JavaScript writes it: compact, with unescaped non-ASCII characters."""
    text = json.dumps(payload, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def _tool(event: str, tool: str, tool_input: Payload, id: str, **rest: Any) -> Payload:
    return {
        **_COMMON,
        "prompt_id": PROMPT,
        "permission_mode": "acceptEdits",
        "effort": {"level": "high"},
        "hook_event_name": event,
        "tool_name": tool,
        "tool_input": tool_input,
        "tool_use_id": id,
        **rest,
    }


_EDIT_INPUT: Payload = {
    "file_path": "/home/ana/shop/src/checkout.py",
    "old_string": "def pay(cart):\n    pass\n",
    "new_string": "def pay(cart):\n    return total(cart)\n",
    "replace_all": False,
}
_WRITE_INPUT: Payload = {
    "file_path": "/home/ana/shop/src/totals.py",
    "content": "def total(cart):\n    return sum(cart)\n",
}
_AGENT_INPUT: Payload = {
    "description": "Map checkout callers",
    "prompt": "List every caller of checkout.pay",
    "subagent_type": "Explore",
    "model": "haiku",
    "run_in_background": True,
}
_SKILL_INPUT: Payload = {"skill": "acme:release-notes", "args": "v3.2"}
_BASH_INPUT: Payload = {"command": "pytest -q", "description": "Run tests"}

PRE_EDIT = _tool("PreToolUse", "Edit", _EDIT_INPUT, "toolu_01Editcheckout")
PRE_WRITE = _tool("PreToolUse", "Write", _WRITE_INPUT, "toolu_01Writetotals")
PRE_AGENT = _tool("PreToolUse", "Agent", _AGENT_INPUT, "toolu_01Hq7callers")
PRE_SKILL = _tool("PreToolUse", "Skill", _SKILL_INPUT, "toolu_01Skillrun")
PRE_BASH = _tool("PreToolUse", "Bash", _BASH_INPUT, "toolu_01Pytest")

POST_EDIT = _tool(
    "PostToolUse",
    "Edit",
    _EDIT_INPUT,
    "toolu_01Editcheckout",
    tool_response={
        "filePath": "/home/ana/shop/src/checkout.py",
        "oldString": "def pay(cart):\n    pass\n",
        "newString": "def pay(cart):\n    return total(cart)\n",
        "originalFile": "def pay(cart):\n    pass\n",
        "structuredPatch": [{"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2}],
        "userModified": False,
        "replaceAll": False,
    },
    duration_ms=12,
)
POST_WRITE = _tool(
    "PostToolUse",
    "Write",
    _WRITE_INPUT,
    "toolu_01Writetotals",
    tool_response={"filePath": "/home/ana/shop/src/totals.py", "type": "create"},
    duration_ms=9,
)
POST_AGENT_COMPLETED = _tool(
    "PostToolUse",
    "Agent",
    changed(_AGENT_INPUT, run_in_background=False),
    "toolu_01Hq7callers",
    tool_response={
        "status": "completed",
        "agentId": AGENT,
        "agentType": "Explore",
        "content": [{"type": "text", "text": "Found 7 callers."}],
        "resolvedModel": "claude-haiku-5",
        "totalTokens": 18422,
        "totalDurationMs": 41230,
        "totalToolUseCount": 9,
        "usage": {"input_tokens": 17800, "output_tokens": 622},
        "prompt": "List every caller of checkout.pay",
    },
    duration_ms=41260,
)
POST_AGENT_ASYNC = _tool(
    "PostToolUse",
    "Agent",
    _AGENT_INPUT,
    "toolu_01Hq7callers",
    tool_response={
        "status": "async_launched",
        "agentId": AGENT,
        "description": "Map checkout callers",
        "prompt": "List every caller of checkout.pay",
        "outputFile": "/tmp/claude-1000/-home-ana-shop/tasks/a41c09be77d2f0e13.output",
        "resolvedModel": "claude-haiku-5",
        "isAsync": True,
    },
    duration_ms=35,
)
POST_AGENT_REMOTE = _tool(
    "PostToolUse",
    "Agent",
    changed(_AGENT_INPUT, isolation="remote"),
    "toolu_01Remoterun",
    tool_response={
        "status": "remote_launched",
        "taskId": "task_01Zx",
        "sessionUrl": "https://claude.ai/code/session_01Zx",
        "description": "Map checkout callers",
        "prompt": "List every caller of checkout.pay",
        "outputFile": "/tmp/claude-1000/-home-ana-shop/tasks/task_01Zx.output",
    },
    duration_ms=1210,
)
POST_SKILL = _tool(  # fired inside a subagent
    "PostToolUse",
    "Skill",
    _SKILL_INPUT,
    "toolu_01Skillrun",
    agent_id=AGENT,
    agent_type="general-purpose",
    tool_response={"success": True, "commandName": "acme:release-notes"},
    duration_ms=38,
)
POST_BASH = _tool(
    "PostToolUse",
    "Bash",
    _BASH_INPUT,
    "toolu_01Pytest",
    tool_response={"stdout": "42 passed", "stderr": "", "interrupted": False, "isImage": False},
    duration_ms=6120,
)

FAILED_BASH = _tool(
    "PostToolUseFailure",
    "Bash",
    _BASH_INPUT,
    "toolu_01Pytest",
    error="Exit code 1\n2 failed, 40 passed",
    is_interrupt=False,
    duration_ms=6120,
)
FAILED_AGENT = _tool(
    "PostToolUseFailure",
    "Agent",
    _AGENT_INPUT,
    "toolu_01Hq7callers",
    error="Agent type 'Explore' not found",
    is_interrupt=False,
    duration_ms=3,
)
FAILED_SKILL = _tool(
    "PostToolUseFailure",
    "Skill",
    _SKILL_INPUT,
    "toolu_01Skillrun",
    error="Unknown skill",
    is_interrupt=False,
    duration_ms=2,
)

SESSION_START: Payload = {
    **_COMMON,
    "scratchpad_dir": "/tmp/claude-1000/-home-ana-shop/7b1f0c9e/scratchpad",
    "hook_event_name": "SessionStart",
    "source": "resume",
    "model": "claude-opus-5",
    "session_title": "cart-refactor",
    "seconds_since_last_response": 5400,
    "context_tokens": 91230,
    "prompt_cache_likely_expired": True,
    "estimated_cache_write_usd": 0.57,
}
USER_PROMPT_SUBMIT: Payload = {
    **_COMMON,
    "prompt_id": PROMPT,
    "permission_mode": "acceptEdits",
    "hook_event_name": "UserPromptSubmit",
    "prompt": "Split checkout.py into smaller modules",
}
# as 2.1.330 sends it when a background agent has finished
TASK_NOTIFICATION: Payload = {
    **_COMMON,
    "prompt_id": "909031c5-4855-42f2-981d-922d89d2322a",
    "permission_mode": "default",
    "hook_event_name": "UserPromptSubmit",
    "prompt": (
        "<task-notification>\n<task-id>ada2d8a5de15185fc</task-id>\n"
        "<tool-use-id>toolu_fake007790015616</tool-use-id>\n"
        "<output-file>/tmp/claude-0/tasks/ada2d8a5de15185fc.output</output-file>\n"
        '<status>completed</status>\n<summary>Agent "Back" finished</summary>\n'
        "<note>A task-notification fires each time this agent stops with no live background "
        "children of its own. The user can send it another message and resume it, so the same "
        "task-id may notify more than once.</note>\n<result>slow sub done</result>\n"
        "<usage><subagent_tokens>6100</subagent_tokens><tool_uses>1</tool_uses>"
        "<duration_ms>1923</duration_ms></usage>\n</task-notification>"
    ),
}
USER_PROMPT_EXPANSION: Payload = {
    **_COMMON,
    "permission_mode": "default",
    "hook_event_name": "UserPromptExpansion",
    "expansion_type": "slash_command",
    "command_name": "acme:release-notes",
    "command_args": "v3.2",
    "command_source": "plugin",
    "prompt": "/acme:release-notes v3.2",
}
SUBAGENT_START: Payload = {
    **_COMMON,
    "hook_event_name": "SubagentStart",
    "agent_id": AGENT,
    "agent_type": "Explore",
}
SUBAGENT_STOP: Payload = {
    **_COMMON,
    "permission_mode": "acceptEdits",
    "hook_event_name": "SubagentStop",
    "stop_hook_active": False,
    "agent_id": AGENT,
    "agent_type": "Explore",
    "agent_transcript_path": AGENT_TRANSCRIPT,
    "last_assistant_message": "Found 7 callers.",
    "background_tasks": [],
    "session_crons": [],
}
PRE_COMPACT: Payload = {
    **_COMMON,
    "hook_event_name": "PreCompact",
    "trigger": "auto",
    "custom_instructions": None,
}
STOP: Payload = {
    **_COMMON,
    "prompt_id": PROMPT,
    "permission_mode": "acceptEdits",
    "effort": {"level": "high"},
    "hook_event_name": "Stop",
    "stop_hook_active": False,
    "last_assistant_message": "checkout.py is split into three modules; tests pass.",
    "background_tasks": [
        {
            "id": "b2",
            "type": "shell",
            "status": "running",
            "description": "dev server",
            "command": "npm run dev",
        }
    ],
    "session_crons": [],
}
NOT_READ = "<tool_use_error>File has not been read yet. Read it first.</tool_use_error>"
POST_BATCH: Payload = {
    **_COMMON,
    "prompt_id": PROMPT,
    "permission_mode": "acceptEdits",
    "effort": {"level": "high"},
    "hook_event_name": "PostToolBatch",
    "tool_calls": [
        {
            "tool_name": "Edit",
            "tool_input": _EDIT_INPUT,
            "tool_use_id": "toolu_01Refused",
            "tool_response": NOT_READ,
        },
        {
            "tool_name": "Bash",
            "tool_input": {"command": "pwd", "description": "Where"},
            "tool_use_id": "toolu_01Where",
            "tool_response": "/home/ana/shop",
        },
    ],
}
PERMISSION_REQUEST: Payload = {
    **_COMMON,
    "prompt_id": PROMPT,
    "permission_mode": "default",
    "effort": {"level": "medium"},
    "hook_event_name": "PermissionRequest",
    "tool_name": "Bash",
    "tool_input": {"command": "ls /no/such/place", "description": "A failing call"},
    "permission_suggestions": [
        {
            "type": "addRules",
            "rules": [{"toolName": "Bash", "ruleContent": "ls *"}],
            "behavior": "allow",
            "destination": "localSettings",
        }
    ],
}
PERMISSION_DENIED: Payload = {
    **_tool(
        "PermissionDenied",
        "Bash",
        {"command": "rm -rf /home/ana/nothing-here", "description": "Tidy up"},
        "toolu_01Denied",
    ),
    "permission_mode": "auto",
    "reason": "Classifier unavailable",
}
NOTIFICATION: Payload = {
    **_COMMON,
    "prompt_id": PROMPT,
    "hook_event_name": "Notification",
    "message": "Claude needs your permission",
    "notification_type": "permission_prompt",
}
MODEL_SWITCH: Payload = {
    **_COMMON,
    "hook_event_name": "PostModelSwitch",
    "from_model": "claude-opus-5",
    "to_model": "claude-haiku-4-5",
    "requested_model": "haiku",
    "source": "command",
    "context_tokens": 1200,
}
STOP_FAILURE: Payload = {
    **_COMMON,
    "hook_event_name": "StopFailure",
    "error": "overloaded",
    "error_details": "529 overloaded_error",
    "last_assistant_message": "API Error: Overloaded",
}
SESSION_END: Payload = {
    **_COMMON,
    "hook_event_name": "SessionEnd",
    "reason": "prompt_input_exit",
}

# one example of each event, in the order of a session
EVENTS: dict[str, Payload] = {
    payload["hook_event_name"]: payload
    for payload in (
        SESSION_START,
        USER_PROMPT_SUBMIT,
        USER_PROMPT_EXPANSION,
        PRE_AGENT,
        POST_SKILL,
        FAILED_BASH,
        POST_BATCH,
        PERMISSION_REQUEST,
        PERMISSION_DENIED,
        NOTIFICATION,
        MODEL_SWITCH,
        SUBAGENT_START,
        SUBAGENT_STOP,
        PRE_COMPACT,
        STOP,
        STOP_FAILURE,
        SESSION_END,
    )
}

# every example, by a name for test ids
ALL: dict[str, Payload] = {
    **EVENTS,
    "PreToolUse-Edit": PRE_EDIT,
    "PreToolUse-Write": PRE_WRITE,
    "PreToolUse-Skill": PRE_SKILL,
    "PreToolUse-Bash": PRE_BASH,
    "PostToolUse-Edit": POST_EDIT,
    "PostToolUse-Write": POST_WRITE,
    "PostToolUse-Agent-completed": POST_AGENT_COMPLETED,
    "PostToolUse-Agent-async": POST_AGENT_ASYNC,
    "PostToolUse-Agent-remote": POST_AGENT_REMOTE,
    "PostToolUse-Bash": POST_BASH,
    "PostToolUseFailure-Agent": FAILED_AGENT,
    "PostToolUseFailure-Skill": FAILED_SKILL,
}
