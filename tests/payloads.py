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

# the input and the id of a call of each tool
_CALLS: dict[str, tuple[Payload, str]] = {
    "Edit": (_EDIT_INPUT, "toolu_01Editcheckout"),
    "Write": (_WRITE_INPUT, "toolu_01Writetotals"),
    "Agent": (_AGENT_INPUT, "toolu_01Hq7callers"),
    "Skill": (_SKILL_INPUT, "toolu_01Skillrun"),
    "Bash": (_BASH_INPUT, "toolu_01Pytest"),
}
_TURN: Payload = {
    "prompt_id": PROMPT,
    "permission_mode": "acceptEdits",
    "effort": {"level": "high"},
}


def _event(name: str, **fields: Any) -> Payload:
    """Return an event, with fields of its session and turn before its name."""
    first = {key: fields.pop(key) for key in ("scratchpad_dir", *_TURN) if key in fields}
    return {**_COMMON, **first, "hook_event_name": name, **fields}


def _tool(event: str, tool: str, **fields: Any) -> Payload:
    given, id = _CALLS[tool]
    call = {"tool_name": tool, "tool_input": given, "tool_use_id": id}
    return _event(event, **{**_TURN, **call, **fields})


PRE_EDIT, PRE_WRITE, PRE_AGENT, PRE_SKILL, PRE_BASH = (
    _tool("PreToolUse", tool) for tool in ("Edit", "Write", "Agent", "Skill", "Bash")
)

POST_EDIT = _tool(
    "PostToolUse",
    "Edit",
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
    tool_response={"filePath": "/home/ana/shop/src/totals.py", "type": "create"},
    duration_ms=9,
)
POST_AGENT_COMPLETED = _tool(
    "PostToolUse",
    "Agent",
    tool_input=changed(_AGENT_INPUT, run_in_background=False),
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
    tool_input=changed(_AGENT_INPUT, isolation="remote"),
    tool_use_id="toolu_01Remoterun",
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
    agent_id=AGENT,
    agent_type="general-purpose",
    tool_response={"success": True, "commandName": "acme:release-notes"},
    duration_ms=38,
)
POST_BASH = _tool(
    "PostToolUse",
    "Bash",
    tool_response={"stdout": "42 passed", "stderr": "", "interrupted": False, "isImage": False},
    duration_ms=6120,
)

# Responses to `echo same >> ran.txt`, by 2.1.332 with --permission-mode bypassPermissions.
APPENDED, APPENDED_AGAIN = (
    {
        "stdout": "",
        "stderr": "",
        "interrupted": False,
        "isImage": False,
        "noOutputExpected": False,
        "bashEditDiff": {
            "files": [{"filePath": f"{CWD}/ran.txt", "hunks": [hunk], **more}],
            "moreFiles": 0,
            "changedFiles": [f"{CWD}/ran.txt"],
        },
    }
    for hunk, more in (
        (
            {"oldStart": 0, "oldLines": 0, "newStart": 1, "newLines": 1, "lines": ["+same"]},
            {"created": True},
        ),
        (
            {
                "oldStart": 1,
                "oldLines": 1,
                "newStart": 1,
                "newLines": 2,
                "lines": [" same", "+same"],
            },
            {},
        ),
    )
)

FAILED_BASH = _tool(
    "PostToolUseFailure",
    "Bash",
    error="Exit code 1\n2 failed, 40 passed",
    is_interrupt=False,
    duration_ms=6120,
)
FAILED_AGENT = _tool(
    "PostToolUseFailure",
    "Agent",
    error="Agent type 'Explore' not found",
    is_interrupt=False,
    duration_ms=3,
)
FAILED_SKILL = _tool(
    "PostToolUseFailure", "Skill", error="Unknown skill", is_interrupt=False, duration_ms=2
)

SESSION_START = _event(
    "SessionStart",
    scratchpad_dir="/tmp/claude-1000/-home-ana-shop/7b1f0c9e/scratchpad",
    source="resume",
    model="claude-opus-5",
    session_title="cart-refactor",
    seconds_since_last_response=5400,
    context_tokens=91230,
    prompt_cache_likely_expired=True,
    estimated_cache_write_usd=0.57,
)
USER_PROMPT_SUBMIT = _event(
    "UserPromptSubmit",
    prompt_id=PROMPT,
    permission_mode="acceptEdits",
    prompt="Split checkout.py into smaller modules",
)
# as 2.1.330 sends it when a background agent has finished
TASK_NOTIFICATION = _event(
    "UserPromptSubmit",
    prompt_id="909031c5-4855-42f2-981d-922d89d2322a",
    permission_mode="default",
    prompt=(
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
)
USER_PROMPT_EXPANSION = _event(
    "UserPromptExpansion",
    permission_mode="default",
    expansion_type="slash_command",
    command_name="acme:release-notes",
    command_args="v3.2",
    command_source="plugin",
    prompt="/acme:release-notes v3.2",
)
SUBAGENT_START = _event("SubagentStart", agent_id=AGENT, agent_type="Explore")
SUBAGENT_STOP = _event(
    "SubagentStop",
    permission_mode="acceptEdits",
    stop_hook_active=False,
    agent_id=AGENT,
    agent_type="Explore",
    agent_transcript_path=AGENT_TRANSCRIPT,
    last_assistant_message="Found 7 callers.",
    background_tasks=[],
    session_crons=[],
)
PRE_COMPACT = _event("PreCompact", trigger="auto", custom_instructions=None)
STOP = _event(
    "Stop",
    **_TURN,
    stop_hook_active=False,
    last_assistant_message="checkout.py is split into three modules; tests pass.",
    background_tasks=[
        {
            "id": "b2",
            "type": "shell",
            "status": "running",
            "description": "dev server",
            "command": "npm run dev",
        }
    ],
    session_crons=[],
)
NOT_READ = "<tool_use_error>File has not been read yet. Read it first.</tool_use_error>"
POST_BATCH = _event(
    "PostToolBatch",
    **_TURN,
    tool_calls=[
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
)
PERMISSION_REQUEST = _event(
    "PermissionRequest",
    prompt_id=PROMPT,
    permission_mode="default",
    effort={"level": "medium"},
    tool_name="Bash",
    tool_input={"command": "ls /no/such/place", "description": "A failing call"},
    permission_suggestions=[
        {
            "type": "addRules",
            "rules": [{"toolName": "Bash", "ruleContent": "ls *"}],
            "behavior": "allow",
            "destination": "localSettings",
        }
    ],
)
PERMISSION_DENIED = _tool(
    "PermissionDenied",
    "Bash",
    tool_input={"command": "rm -rf /home/ana/nothing-here", "description": "Tidy up"},
    tool_use_id="toolu_01Denied",
    permission_mode="auto",
    reason="Classifier unavailable",
)
NOTIFICATION = _event(
    "Notification",
    prompt_id=PROMPT,
    message="Claude needs your permission",
    notification_type="permission_prompt",
)
MODEL_SWITCH = _event(
    "PostModelSwitch",
    from_model="claude-opus-5",
    to_model="claude-haiku-4-5",
    requested_model="haiku",
    source="command",
    context_tokens=1200,
)
STOP_FAILURE = _event(
    "StopFailure",
    error="overloaded",
    error_details="529 overloaded_error",
    last_assistant_message="API Error: Overloaded",
)
SESSION_END = _event("SessionEnd", reason="prompt_input_exit")

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


def pasted(text: str) -> str:
    """Return a text in the form in which 2.1.332 puts a pasted text into a prompt."""
    tag = 'pasted_content id="3e35">'
    return f"\n\n<{tag}\n{text}\n</{tag}\n\n"


def spooled_start(session: str, project: str) -> dict[str, Any]:
    """Return the job of a spool file that would start a session."""
    metadata = {"session": session, "instance": "i", "project": project, "cwd": project}
    envelope = {
        "v": 1,
        "id": "a" * 32,
        "seq": "1_0",
        "priority": 1,
        "operation": "start_session",
        "payload": {"source": "startup"},
        "metadata": {**metadata, "agent": None},
        "event_time_ns": 1,
        "created_at": "2026-01-01T00:00:00.000Z",
        "retries": 0,
    }
    return {"twins": "", "queue": "high", "description": session, "envelope": envelope}
