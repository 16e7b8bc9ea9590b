"""A seeded mix of events, and the rows that every table must have afterwards.

`expected` uses none of the product's handlers. `messages` makes the input with the product's own
plan and encoding, at chosen times.
"""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.payloads import (
    FAILED_AGENT,
    FAILED_SKILL,
    POST_AGENT_ASYNC,
    POST_AGENT_COMPLETED,
    POST_AGENT_REMOTE,
    POST_EDIT,
    POST_SKILL,
    SESSION_END,
    SESSION_START,
    STOP,
    STOP_FAILURE,
    SUBAGENT_STOP,
    USER_PROMPT_SUBMIT,
    Payload,
    changed,
)

Rows = dict[str, list[dict[str, Any]]]

FIRST_NS = 1_790_000_000_000_000_000  # September 2026
# Longer than the window in which a doubled event is recognised by its bytes.
STEP_NS = 7_003_000_000
SESSIONS = tuple(f"5e551011-0000-4000-8000-00000000000{n}" for n in range(4))
INSTANCES = {0: ("inst-a", "inst-b", "inst-c"), 1: ("inst-d", "inst-e"), 2: ("inst-f",)}
OPERATIONS = ("Write", "Edit", "MultiEdit", "NotebookEdit", "Agent", "Task")
# Immediately, and after the transcript has settled.
ARCHIVE = ("archive_transcript", "archive_transcript")
CONCLUSION = "conclude_session"  # short work outside of the writer's transactions
PROCESS_END = "finish_process"
SLOW = {ARCHIVE[0], PROCESS_END}
PROCESS_GOES_ON = ("clear", "resume")


@dataclass(frozen=True)
class Fired:
    """One event with its instance, its nominal time, and how often it is fired."""

    payload: Payload
    instance: str
    time_ns: int = 0
    times: int = 1

    @property
    def name(self) -> str:
        return str(self.payload["hook_event_name"])

    @property
    def session(self) -> str:
        return str(self.payload["session_id"])

    @property
    def time(self) -> str:
        return at(self.time_ns)


@dataclass(frozen=True)
class Mix:
    """Events: `opening` and `closing` are fired one by one, `bulk` in parallel and in any order."""

    opening: tuple[Fired, ...]
    bulk: tuple[Fired, ...]
    closing: tuple[Fired, ...]

    @property
    def all(self) -> tuple[Fired, ...]:
        return (*self.opening, *self.bulk, *self.closing)


def at(time_ns: int) -> str:
    """Return UTC with milliseconds, the format of stored times."""
    moment = datetime.fromtimestamp(time_ns // 1_000_000_000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ns // 1_000_000 % 1000:03d}Z"


def timed(events: Iterable[Fired], first_ns: int = FIRST_NS) -> tuple[Fired, ...]:
    """Return the events with nominal times in their order."""
    return tuple(replace(e, time_ns=first_ns + n * STEP_NS) for n, e in enumerate(events))


# ---- the mix
def mix(seed: int, size: int) -> Mix:
    """Return about `size` events: 40 % Agent, 20 % Skill, 20 % Edit, 10 % prompts, 5 % Stop, 5 %
    SubagentStop; a tenth of them fired twice."""
    rng = random.Random(seed)
    opening = _opening()
    closing = _closing()
    rest = max(size - len(opening) - len(closing), 20)
    kinds = [
        kind
        for kind, share in (
            ("agent", 0.4),
            ("skill", 0.2),
            ("edit", 0.2),
            ("prompt", 0.1),
            ("stop", 0.05),
            ("subagent", 0.05),
        )
        for _ in range(max(1, round(rest * share)))
    ]
    launched: list[tuple[str, str, str]] = []
    bulk: list[Fired] = []
    for number, kind in enumerate(kinds):
        place = rng.choice((0, 0, 0, 1, 1, 2))
        instance = rng.choice(INSTANCES[place])
        made = _MAKERS[kind](rng, number, SESSIONS[place], instance, launched)
        bulk.append(replace(made, times=2 if number % 10 == 3 else 1))
    rng.shuffle(bulk)
    whole = timed((*opening, *bulk, *closing))
    cut = len(opening)
    return Mix(whole[:cut], whole[cut : cut + len(bulk)], whole[cut + len(bulk) :])


def start(place: int, instance: str, **more: Any) -> Fired:
    return Fired(changed(SESSION_START, session_id=SESSIONS[place], **more), instance)


def prompt(number: int, session: str, instance: str) -> Fired:
    text = f"Prompt {number}: schöne Grüße"
    payload = changed(USER_PROMPT_SUBMIT, session_id=session, prompt_id=f"p-{number}", prompt=text)
    return Fired(payload, instance)


def edit(number: int, session: str, instance: str) -> Fired:
    path = f"/home/ana/shop/src/file{number}.py"
    payload = changed(
        POST_EDIT,
        session_id=session,
        tool_use_id=f"toolu_edit{number}",
        tool_input={**POST_EDIT["tool_input"], "file_path": path},
    )
    return Fired(payload, instance)


def edit_without_session(number: int, instance: str) -> Fired:
    """Return an edit without a session: its jobs only change counters.

    A job that is executed twice would make the counter wrong.
    """
    return edit(number, "", instance)


def agent(number: int, session: str, instance: str, kind: str = "completed") -> Fired:
    base = {
        "completed": POST_AGENT_COMPLETED,
        "async": POST_AGENT_ASYNC,
        "remote": POST_AGENT_REMOTE,
        "failed": FAILED_AGENT,
        "bare": POST_AGENT_REMOTE,
    }[kind]
    wanted = {**base["tool_input"], "description": f"Task {number} " + "x" * 120}
    if kind == "bare":  # without these, the defaults apply
        del wanted["model"], wanted["subagent_type"]
    more: dict[str, Any] = {}
    if kind in ("completed", "async"):
        response = {**base["tool_response"], "agentId": f"a{number:05d}"}
        if kind == "completed":
            response |= {"totalTokens": 1000 + number, "totalDurationMs": 2000 + number}
        more["tool_response"] = response
    payload = changed(
        base, session_id=session, tool_use_id=f"toolu_agent{number}", tool_input=wanted, **more
    )
    return Fired(payload, instance)


def stop(number: int, session: str, instance: str, **more: Any) -> Fired:
    payload = changed(STOP, session_id=session, prompt_id=f"stop-{number}", **more)
    return Fired(payload, instance)


def subagent_stop(agent_id: str, session: str, instance: str) -> Fired:
    return Fired(changed(SUBAGENT_STOP, session_id=session, agent_id=agent_id), instance)


def _agent(
    rng: random.Random, number: int, session: str, instance: str, launched: list[Any]
) -> Fired:
    kind = rng.choice(("completed", "completed", "async", "async", "remote", "failed", "bare"))
    if kind == "async":
        launched.append((f"a{number:05d}", session, instance))
    return agent(number, session, instance, kind)


def skill(rng: random.Random, number: int, session: str, instance: str) -> Fired:
    base = rng.choice((POST_SKILL, POST_SKILL, FAILED_SKILL))
    interrupted = {"is_interrupt": True} if base is FAILED_SKILL and rng.random() < 0.5 else {}
    payload = changed(
        base,
        session_id=session,
        tool_use_id=f"toolu_skill{number}",
        tool_input={"skill": rng.choice(("acme:notes", "lint")), "args": f"args-{number}"},
        **interrupted,
    )
    return Fired(payload, instance)


def _subagent(
    rng: random.Random, number: int, session: str, instance: str, launched: list[Any]
) -> Fired:
    if launched and rng.random() < 0.7:
        return subagent_stop(*launched.pop())
    return subagent_stop(f"u{number:05d}", session, instance)


_MAKERS = {
    "agent": _agent,
    "skill": lambda rng, number, session, instance, _l: skill(rng, number, session, instance),
    "edit": lambda _r, number, session, instance, _l: edit(number, session, instance),
    "prompt": lambda _r, number, session, instance, _l: prompt(number, session, instance),
    "stop": lambda _r, number, session, instance, _l: stop(number, session, instance),
    "subagent": _subagent,
}


def _opening() -> list[Fired]:
    """Return the first event of each instance; the hooks of the last one were installed later."""
    starts = [
        start(place, instance, source="resume" if n else "startup", session_title=f"title {n}")
        for place in (0, 1)
        for n, instance in enumerate(INSTANCES[place])
    ]
    return [*starts, prompt(90_001, SESSIONS[2], "inst-f")]


def _closing() -> list[Fired]:
    """Return a last event of each session, so that its state is independent of the bulk's order."""
    s0, s1, s2, s3 = SESSIONS
    return [
        Fired(changed(SESSION_END, session_id=s0, reason="logout"), "inst-c"),
        edit(90_101, s0, "inst-b"),
        stop(90_102, s0, "inst-a", background_tasks=[]),
        Fired(changed(SESSION_END, session_id=s1, reason="clear"), "inst-e"),
        start(3, "inst-e", source="clear"),
        edit(90_103, s3, "inst-e"),
        Fired(changed(STOP_FAILURE, session_id=s3), "inst-e"),
        edit(90_104, s1, "inst-d"),
        stop(90_105, s1, "inst-d"),  # work continues in the background
        stop(90_106, s2, "inst-f", background_tasks=[]),
        Fired(changed(SESSION_END, session_id=s2), "inst-f"),
    ]


# ---- the jobs of an event
def operations(event: Fired, enters_session: bool) -> list[str]:  # noqa: C901  a table
    """Return the jobs of an event, with HIVEPIPE_CHECKPOINT_INTERVAL=0."""
    p = event.payload
    tool = p.get("tool_name")
    found = ["start_session"] if enters_session or event.name == "SessionStart" else []
    match event.name:
        case "UserPromptSubmit":
            found += ["activate_session", "record_prompt"]
        case "PostToolUse":
            if tool in ("Agent", "Task"):
                found.append("insert_agent")
            if tool == "Skill":
                found.append("record_skill")
            if tool in OPERATIONS:
                found += ["update_checkpoint", "update_instance", "insert_log"]
        case "PostToolUseFailure":
            if tool in ("Agent", "Task"):
                found.append("fail_agent")
            if tool == "Skill" and not p["is_interrupt"]:
                found.append("record_skill")
        case "SubagentStop":
            found += ["finish_agent", *ARCHIVE]
        case "Stop" | "StopFailure":
            found += ["pause_session", "update_checkpoint", *ARCHIVE]
        case "SessionEnd":
            found += ["end_session", "update_checkpoint", *ARCHIVE, CONCLUSION]
    return found


def _entering(events: Sequence[Fired]) -> list[bool]:
    """Return for each event whether its instance enters the session, as its marker shows."""
    marked: dict[str, str] = {}
    ended: set[str] = set()
    found = []
    for event in events:
        is_end = event.name == "SessionEnd"
        comes_back = event.instance in ended and not is_end
        found.append(
            bool(event.session) and (comes_back or event.session != marked.get(event.instance))
        )
        marked[event.instance] = event.session
        (ended.add if is_end else ended.discard)(event.instance)
    return found


def _follow_ups(events: Sequence[Fired]) -> int:
    """Return how many jobs follow from sessions' ends: each archives and may clean up.

    Every end is concluded before the next event.
    """
    inside: dict[str, str] = {}
    exits: set[str] = set()  # sessions that a process has left since their last conclusion
    found = 0
    for event in events:
        if not event.session:
            continue
        inside[event.instance] = event.session
        if event.name == "SessionEnd":
            del inside[event.instance]
            if event.payload["reason"] not in PROCESS_GOES_ON:
                exits.add(event.session)
            if event.session not in inside.values():
                found += 1 + (event.session in exits)
                exits.discard(event.session)
    return found


def job_count(events: Sequence[Fired]) -> int:
    """Return how many jobs the events make; repeated events count once."""
    return _follow_ups(events) + sum(
        len(operations(event, enters_session))
        for event, enters_session in zip(events, _entering(events), strict=True)
    )


def slow_count(events: Sequence[Fired]) -> int:
    """Return how many of these jobs are slow work, which the writer hands on."""
    entering = _entering(events)
    made = [operations(event, new) for event, new in zip(events, entering, strict=True)]
    return _follow_ups(events) + sum(name in SLOW for names in made for name in names)


# ---- the rows
def expected(events: Sequence[Fired], project: str, swarm: str) -> Rows:
    """Return the rows of every table after these events, whose times are ascending."""
    name = project.rsplit("/", 1)[-1]
    rows: dict[str, Any] = defaultdict(dict)
    lists: Rows = {"session_logs": [], "prompts": [], "skill_uses": []}
    effectless: Counter[str] = Counter()
    for event, enters_session in zip(events, _entering(events), strict=True):
        if not event.session:
            effectless.update(operations(event, enters_session))
            continue
        if enters_session or event.name == "SessionStart":
            _start(rows, event, name, project, swarm)
        session = rows["sessions"][event.session]
        for operation in operations(event, enters_session):
            _apply(rows, lists, event, session, operation, swarm)
    for session_id, session in rows["sessions"].items():
        _settle(session, rows["instance_sessions"].values())
        if session["checkpoint_data"]:
            session["checkpoint_data"]["operationCount"] = sum(
                row["operation_count"]
                for row in rows["instance_sessions"].values()
                if row["session_id"] == session_id
            )
    tables = ("swarms", "sessions", "instances", "instance_sessions", "agents")
    return {
        **{table: list(rows[table].values()) for table in tables},
        **lists,
        "counters": [
            {"name": f"no_session:{operation}", "value": count}
            for operation, count in effectless.items()
        ],
    }


def _start(rows: Any, event: Fired, name: str, project: str, swarm: str) -> None:
    p, time = event.payload, event.time
    said = event.name == "SessionStart"
    if event.session not in rows["sessions"]:
        new = {"id": swarm, "name": name, "objective": None, "status": "active"}
        times = {"created_at": time, "updated_at": time, "deleted_at": None}
        rows["swarms"].setdefault(swarm, new | times)
        rows["sessions"][event.session] = {
            "id": event.session,
            "swarm_id": swarm,
            "swarm_name": name,
            "objective": None,
            "status": "active",
            "checkpoint_data": None,
            "child_pids": None,
            "created_at": time,
            "updated_at": time,
            "project": project,
            "transcript_path": None,
            "model": None,
            "source": None,
            "client": None,
            "effort": None,
            "state_time_ns": event.time_ns,
            "end": None,
        }
    rows["swarms"][swarm]["updated_at"] = time
    session = rows["sessions"][event.session]
    _state(session, event, "active")
    session["transcript_path"] = p["transcript_path"]
    if said:
        session["objective"] = p.get("session_title") or session["objective"]
        session["model"] = p.get("model") or session["model"]
        session["source"] = session["source"] or p.get("source")
    instance = {"id": event.instance, "status": "running", "started_at": time}
    rows["instances"].setdefault(event.instance, instance)
    for row in rows["instance_sessions"].values():
        if row["instance_id"] == event.instance:
            row["status"] = "detached"
    key = f"{event.instance}:{event.session}"
    assigned = {
        "id": key,
        "session_id": event.session,
        "instance_id": event.instance,
        "tty": None,
        "started_at": time,
        "checkpoint_count": 0,
        "operation_count": 0,
    }
    rows["instance_sessions"].setdefault(key, assigned)["status"] = "active"


def _state(session: dict[str, Any], event: Fired, status: str) -> None:
    session["status"] = status
    session["updated_at"] = event.time
    session["state_time_ns"] = event.time_ns


def _settle(session: dict[str, Any], assignments: Iterable[dict[str, Any]]) -> None:
    """Set the final status: a session ends with its last instance, and a later event reopens it."""
    inside = [
        row
        for row in assignments
        if row["session_id"] == session["id"] and row["status"] == "active"
    ]
    end: Fired | None = session.pop("end")
    if end and end.time_ns > session["state_time_ns"] and not inside:
        session["status"] = "ended"
    else:
        end = None
    is_paused = session["status"] == "paused"
    session["paused_at"] = at(session["state_time_ns"]) if is_paused else None
    session["ended_at"] = end.time if end else None
    session["end_reason"] = end.payload["reason"] if end else None


def _apply(  # noqa: C901  a table
    rows: Any, lists: Rows, event: Fired, session: Any, operation: str, swarm: str
) -> None:
    p, time = event.payload, event.time
    own = rows["instance_sessions"][f"{event.instance}:{event.session}"]
    match operation:
        case "activate_session":
            _state(session, event, "active")
        case "pause_session":
            busy = [t for t in p.get("background_tasks", []) if t["status"] == "running"]
            _state(session, event, "active" if busy else "paused")
            session["effort"] = p.get("effort", {}).get("level") or session["effort"]
            if event.name == "StopFailure":
                message = f"Turn ended by an error: {p['error']}: {p['last_assistant_message']}"
                lists["session_logs"].append(_log(event, "ERROR", message, {}))
        case "end_session":
            session["end"] = event
            own["status"] = "detached"
        case "update_checkpoint":
            is_auto = event.name == "PostToolUse"
            if is_auto:
                own["operation_count"] += 1
                own["checkpoint_count"] += 1
                _state(session, event, "active")
            session["updated_at"] = time
            session["checkpoint_data"] = {
                "timestamp": time,
                "savedBy": event.instance,
                "operationCount": None,
                "checkpointType": "auto" if is_auto else "final",
                "trigger": p["tool_name"] if is_auto else event.name,
            }
        case "insert_log":
            tool = p["tool_name"]
            path = p["tool_input"].get("file_path", "")
            data = {"trigger": tool, "file_path": path, "instance": event.instance}
            lists["session_logs"].append(_log(event, "INFO", f"Auto-checkpoint: {tool}", data))
        case "record_prompt":
            row = {"session_id": event.session, "prompt_id": p["prompt_id"], "prompt": p["prompt"]}
            lists["prompts"].append(row | {"created_at": time})
        case "record_skill":
            skill = {
                "session_id": event.session,
                "skill": p["tool_input"]["skill"],
                "kind": "tool",
                "arguments": p["tool_input"]["args"],
                "success": int(event.name == "PostToolUse"),
                "created_at": time,
                "prompt_id": p["prompt_id"],
            }
            lists["skill_uses"].append(skill)
        case "insert_agent" | "fail_agent" | "finish_agent":
            _sign(rows["agents"], event, operation, swarm)


def _log(event: Fired, level: str, message: str, data: dict[str, Any]) -> dict[str, Any]:
    return {
        "session_id": event.session,
        "log_level": level,
        "message": message,
        "data": data,
        "created_at": event.time,
    }


def _sign(agents: Any, event: Fired, operation: str, swarm: str) -> None:
    p, time = event.payload, event.time
    is_call = operation != "finish_agent"
    response = p.get("tool_response", {})
    key = p["agent_id"] if not is_call else response.get("agentId")
    key = key or f"task-agent of {p['tool_use_id']}"
    new = {
        "id": key,
        "swarm_id": swarm,
        "name": None,
        "type": None,
        "role": "task-agent",
        "status": "spawned",
        "created_at": time,
        "began_at": None,  # no SubagentStart is fired
        "deleted_at": None,
        "deleted_reason": None,
        "deleted_by": None,
        "session_id": event.session,
        "tool_use_id": None,
        "model": None,
        "completed_at": None,
        "outcome": None,
        "error": None,
        "metadata": {"usage": {"tokens": None, "duration_ms": None}},
    }
    row = agents.setdefault(key, new)
    row["last_active"] = time
    if is_call:
        wanted = p["tool_input"]
        row["name"] = wanted["description"][:100]
        row["model"] = response.get("resolvedModel", wanted.get("model", "default"))
        row["type"] = row["type"] or response.get(
            "agentType", wanted.get("subagent_type", "general-purpose")
        )
        row["tool_use_id"] = p["tool_use_id"]
        usage = {
            "tokens": response.get("totalTokens"),
            "duration_ms": response.get("totalDurationMs"),
        }
    else:
        row["type"] = p["agent_type"]
        usage = row["metadata"]["usage"]
    if operation == "fail_agent":
        row["status"], row["completed_at"] = "failed", time
        row["error"] = p["error"]
    elif operation == "finish_agent" or response.get("status") == "completed":
        row["status"] = "completed" if row["status"] != "failed" else "failed"
        row["completed_at"] = time
    row["outcome"] = row["status"] if row["status"] in ("completed", "failed") else None
    expires = datetime.fromisoformat(time) + timedelta(seconds=3600)
    row["metadata"] = {
        "model": row["model"],
        "spawnedAt": row["created_at"],
        "source": "claude-code-task",
        "sessionId": event.session,
        "lifecycle": {
            "type": "ephemeral",
            "ttl": 3600,
            "expires_at": f"{expires:%Y-%m-%dT%H:%M:%SZ}",
            "cleanup_trigger": "task_complete",
            "protected": False,
        },
        "spawn_context": {
            "spawned_by": "claude-code-task",
            "session_id": event.session,
            "instance_id": event.instance,
        },
        "usage": usage,
    }


# ---- comparing

_OURS_ALONE = {  # columns that are not compared: pids, hosts and the order of events
    "sessions": {
        *("checkpoint_time_ns", "metadata", "turn", "last_end_ns", "last_end_reason"),
        *("process_end_ns", "concluded_ns", "concluded_before_ns", "concluded_by", "turn_ended_at"),
    },
    "instances": {"pid", "pid_started", "host", "boot", "pid_space", "last_seen", "gone_at"},
    "instance_sessions": {"pid", "last_seen", "assigned_time_ns", "detached_time_ns"},
    "session_logs": {"id", "job_id"},
    "prompts": {"id", "job_id"},
    "skill_uses": {"id", "job_id"},
}
_TIMES = {
    "created_at", "updated_at", "started_at", "last_active", "completed_at", "ended_at",
    "paused_at", "timestamp", "spawnedAt", "expires_at", "state_time_ns",
}  # fmt: skip


def comparable(rows: Rows) -> Rows:
    """Return rows of the database in the oracle's shape."""
    found: Rows = {}
    for table in (*TABLES, "counters"):
        found[table] = []
        for row in rows.get(table, []):
            kept = {k: v for k, v in row.items() if k not in _OURS_ALONE.get(table, ())}
            for key in ("data", "metadata", "checkpoint_data"):
                if isinstance(kept.get(key), str):
                    kept[key] = json.loads(kept[key])
            if table == "agents" and str(kept["id"]).startswith("task-agent-"):
                kept["id"] = f"task-agent of {kept['tool_use_id']}"
            found[table].append(kept)
    return found


TABLES = (
    "swarms",
    "sessions",
    "instances",
    "instance_sessions",
    "agents",
    "session_logs",
    "prompts",
    "skill_uses",
)


def without_times(value: Any, name: str = "") -> Any:
    """Replace times by a marker that says only whether there is one."""
    if name in _TIMES:
        return None if value is None else "~"
    if isinstance(value, dict):
        return {key: without_times(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_times(inner) for inner in value]
    return value


def differences(wanted: Rows, found: Rows) -> list[str]:
    """Return what to do about the columns that only one side has, then the rows that differ.

    The rows of a table whose columns differ are left out: all of them differ.
    """
    columns, said = [], []
    for table in wanted:
        if found.get(table) and wanted[table]:
            ours, theirs = wanted[table][0].keys(), found[table][0].keys()
            columns += [
                f"{table}: add `{name}` to tests/faults/oracle.py" for name in theirs - ours
            ]
            columns += [f"{table}: the database lacks `{name}`" for name in ours - theirs]
            if ours != theirs:
                continue
        left = [json.dumps(row, sort_keys=True) for row in found.get(table, [])]
        for row in wanted[table]:
            text = json.dumps(row, sort_keys=True)
            if text in left:
                left.remove(text)
            else:
                said.append(f"{table} - {text}")
        said += [f"{table} + {text}" for text in left]
    return sorted(columns) + sorted(said)


# ---- the input
def messages(events: Sequence[Fired], project: str, swarm: str) -> list[list[Any]]:
    """Return the jobs that hooks would push, one list for each firing, in order."""
    # The oracle above is independent of the product.
    from hivepipe.events import job_plan, parse_event  # noqa: PLC0415

    totals: dict[tuple[str, str], int] = defaultdict(int)
    found = []
    for event, enters_session in zip(events, _entering(events), strict=True):
        data = json.dumps(event.payload).encode()
        parsed = parse_event(event.name, data)
        assert parsed is not None
        key = (event.instance, event.session)
        due = event.name == "PostToolUse" and event.payload.get("tool_name") in OPERATIONS
        totals[key] += due
        known = totals[key] or None
        context = job_plan.Context(
            event_time_ns=event.time_ns,
            session=event.session,
            own_session=event.session,
            instance=event.instance,
            enters_session=enters_session,
            project=project,
            cwd=project,
            swarm=swarm,
            pid=4711,
            pid_started="1",
            count=job_plan.Count(due, known, known),
        )
        sent = job_plan.encode(job_plan.plan(parsed, context), parsed, context)
        found += [sent] * event.times
    return found
