"""The demo's input (hook payloads of three Claude Code processes) and the expected rows.

The expected rows are written by hand, not computed from the input.
"""

from typing import Any

SESSION = "7b1f0c9e-3a52-4d0e-9c55-0d6a1f2be111"
SECRET = "sk-ant-api03-" + "EXAMPLE0123456789" * 2
INJECTION = "x','r','{}','s','now'); UPDATE sessions SET status='pwned'; --"
INSTANCES = ("ann", "ben", "cleo")

Fields = dict[str, Any]
HookCall = tuple[str, Fields]  # the hook's name, the payload on its stdin


def start(source: str) -> HookCall:
    return ("session_start", {"source": source, "model": "claude-opus-5"})


def prompt(text: str) -> HookCall:
    return ("user_prompt_submit", {"prompt": text})


def edits(instance: str, hour: str, count: int) -> list[HookCall]:
    """Return `count` edits, each with its PreToolUse, in Claude Code's order."""
    events: list[HookCall] = []
    for number in range(count):
        tool: Fields = {
            "tool_name": "Edit",
            "tool_input": {"file_path": f"src/{instance}_{hour}_{number}.py"},
            "tool_use_id": f"toolu_{instance}_{hour}_{number}",
        }
        events += [("pre_tool_use", tool), ("post_tool_use", tool)]
    return events


def agent(id: str, kind: str, task: str, status: str = "completed") -> list[HookCall]:
    """Return the events of a subagent in order: its start, the Agent call's result, its end."""
    about: Fields = {"agent_id": id, "agent_type": kind}
    call: Fields = {
        "tool_name": "Agent",
        "tool_input": {"description": task, "subagent_type": kind},
        "tool_response": {"status": status, "agentId": id},
        "tool_use_id": f"toolu_{id}",
    }
    return [("subagent_start", about), ("post_tool_use", call), ("subagent_stop", about)]


_FAILED_AGENT: Fields = {
    "tool_name": "Agent",
    "tool_input": {"description": "Read the moon", "subagent_type": "Astronomer"},
    "tool_use_id": "toolu_c63e21d099f4b2035",
    "error": "agent ended with an error",
}
_SKILL: Fields = {
    "tool_name": "Skill",
    "tool_input": {"skill": "acme:release-notes", "args": "v3.2"},
    "tool_response": {"success": True},
    "tool_use_id": "toolu_acme:release-notes",
}
STOP: HookCall = ("stop", {"background_tasks": []})
END: HookCall = ("session_end", {"reason": "other"})

MORNING: dict[str, list[HookCall]] = {
    "ann": [
        start("startup"),
        prompt(f"Split checkout.py. My key is {SECRET}."),
        *edits("ann", "morning", 12),
        *agent("a41c09be77d2f0e13", "Explore", "Map callers"),
        ("post_tool_use", _SKILL),
    ],
    "ben": [
        start("resume"),
        prompt("Write the tests."),
        *edits("ben", "morning", 12),
        *agent("b52d10cf88e3a1f24", INJECTION, "Try to break in", "async_launched"),
    ],
    "cleo": [
        start("resume"),
        prompt("Look for dead code."),
        *edits("cleo", "morning", 12),
        ("post_tool_use_failure", _FAILED_AGENT),  # no SubagentStop follows
    ],
}
WHILE_LOCKED = {name: edits(name, "locked", 4) for name in INSTANCES}
WITHOUT_SWARM = {"ann": agent("d74f32e1aa05c3146", "Explore", "Check prices")}
WHILE_REDIS_DIES = {name: edits(name, "redis", 6) for name in INSTANCES}
WHILE_WRITER_DIES = {name: edits(name, "writer", 6) for name in INSTANCES}
WHILE_ALL_IS_KILLED = {name: edits(name, "dark", 4) for name in INSTANCES}
EVENING: dict[str, list[HookCall]] = {name: [STOP, END] for name in INSTANCES}

# ---- query -> expected rows. Each person makes 12 + 4 + 6 + 6 + 4 edits. Ann calls two agents,
# Ben one, and Cleo one that fails.

EXPECTED: dict[str, list[tuple[Any, ...]]] = {
    "SELECT id, status, model, json_extract(checkpoint_data, '$.operationCount') AS operations "
    "FROM sessions": [(SESSION, "ended", "claude-opus-5", 99)],
    "SELECT instance_id, operation_count FROM instance_sessions ORDER BY instance_id": [
        ("ann", 34),
        ("ben", 33),
        ("cleo", 32),
    ],
    "SELECT name, type, status FROM agents ORDER BY name": [
        ("Check prices", "Explore", "completed"),
        ("Map callers", "Explore", "completed"),
        ("Read the moon", "Astronomer", "failed"),
        ("Try to break in", INJECTION, "completed"),
    ],
    "SELECT substr(prompt, 1, 40) FROM prompts ORDER BY prompt": [
        ("Look for dead code.",),
        ("Split checkout.py. My key is ***REDACTED",),
        ("Write the tests.",),
    ],
    "SELECT skill, arguments, success FROM skill_uses": [("acme:release-notes", "v3.2", 1)],
    "SELECT message, count(*) AS lines, count(DISTINCT job_id) AS jobs FROM session_logs "
    "GROUP BY message ORDER BY message": [
        ("Auto-checkpoint: Agent", 3, 3),
        ("Auto-checkpoint: Edit", 96, 96),
    ],
}
