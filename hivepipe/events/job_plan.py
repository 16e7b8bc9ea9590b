"""Plan the jobs of an event and encode them. All functions are pure.

A job is an operation, its parameters and a priority (1 is most urgent). `encode` turns the jobs of
one event into messages. A message has an id, which is the same for a duplicate event, and an
envelope. The envelope is the JSON string that is the argument of the RQ job (docs/architecture.md
lists its keys).

Hooks import this module.
"""

import time
from _blake2 import blake2b

from hivepipe.events import claude_code
from hivepipe.events.claude_code import Event, PostToolUse, PostToolUseFailure

TYPE_CHECKING = False  # importing `typing` and `collections.abc` takes a quarter of a bare start
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

try:
    from _json import encode_basestring_ascii, make_encoder

    def _encoder(sort_keys: bool) -> "Callable[[object, int], tuple[str, ...]]":
        nothing: Any = None
        return make_encoder(
            nothing,
            nothing,
            encode_basestring_ascii,
            nothing,
            ":",
            ",",
            sort_keys,
            False,
            False,
        )

    _chunks = _encoder(sort_keys=False)
    _sorted_chunks = _encoder(sort_keys=True)

    def dumps(value: object) -> str:
        return "".join(_chunks(value, 0))

    def sorted_dumps(value: object) -> str:
        return "".join(_sorted_chunks(value, 0))

except (ImportError, TypeError):  # the interpreter is not CPython, or is a later version
    import json

    def dumps(value: object) -> str:
        return json.dumps(value, separators=(",", ":"))

    def sorted_dumps(value: object) -> str:
        return json.dumps(value, separators=(",", ":"), sort_keys=True)


ENVELOPE_VERSION = 1
TWIN_WINDOW_NS = 2_000_000_000

# Operations that hooks plan -> priority; other operations declare theirs in operations/families
PRIORITIES = {
    "probe": 1,
    "start_session": 1,
    "activate_session": 1,
    "pause_session": 1,
    "assign_task": 1,
    "end_session": 2,
    "update_checkpoint": 3,
    "record_goal": 4,
    "enter_profile": 5,
    "sync_profile": 5,
    "sync_identity": 5,
    "conclude_session": 5,
    "insert_agent": 5,
    "fail_agent": 5,
    "start_agent": 5,
    "finish_agent": 5,
    "update_instance": 5,
    "record_prompt": 6,
    "record_skill": 6,
    "record_recall": 6,
    "insert_log": 7,
    "record_notice": 7,
    "archive_transcript": 8,
    "index_memory": 8,
}

# A transcript is read at once and again later, because Claude Code writes it after the Stop event.
SETTLE_SECS = (0, 5)

Payload = dict[str, object]


def queue_of(priority: int) -> str:
    """Return the queue of a priority: 1-3 high, 4-6 medium, 7-10 low."""
    return "high" if priority <= 3 else "medium" if priority <= 6 else "low"


class Job:
    __slots__ = ("operation", "payload", "subject")

    def __init__(self, operation: str, payload: Payload, subject: str) -> None:
        """`subject` names the job for people: a file, type, skill or session, never free text."""
        self.operation = operation
        self.payload = payload
        self.subject = subject


class Count:
    """The throttle's result for a tool call: whether a checkpoint is due, and running totals."""

    __slots__ = ("checkpoints", "due", "operations")

    def __init__(self, due: bool, operations: int | None, checkpoints: int | None) -> None:
        """A total of None is unknown, and leaves the stored total unchanged."""
        self.due = due
        self.operations = operations
        self.checkpoints = checkpoints


NOT_COUNTED = Count(False, None, None)


class Context:
    """The circumstances of an event: its session, process and time.

    `own_session` is the session of this instance, or "" if the store must look it up.
    `enters_session` is True for the instance's first event in the session, and for its first event
    after the session's end. `claude_folder` is "" for the default. `snapshot` names the copy
    of an identity file, made after a tool call changed the file. With `wants_memories`, memories
    are added to prompts. `recalled` are the memories added to this prompt, and `shown` their ids.
    `machine` (host, boot, pid namespace) is set when a session starts.
    """

    session = own_session = instance = pid_started = project = cwd = swarm = task = ""
    claude_folder = profile = profile_folder = snapshot = ""
    enters_session = wants_memories = False
    pid = 0
    machine = ("", "", "")
    count = NOT_COUNTED
    recalled: "Sequence[dict[str, str]]" = ()
    shown: "Sequence[str]" = ()

    def __init__(self, event_time_ns: int, **values: "Any") -> None:
        """Set the attributes that `values` names. Raise TypeError for an unknown name."""
        if not values.keys() <= Context.__dict__.keys():
            raise TypeError(f"unknown: {values.keys() - Context.__dict__.keys()}")
        self.event_time_ns = event_time_ns
        self.__dict__.update(values)


class Message:
    """An encoded job, ready for Redis and the spool."""

    __slots__ = ("created_at", "description", "envelope", "id", "queue", "twins")

    def __init__(
        self, id: str, twins: str, queue: str, description: str, created_at: str, envelope: str
    ) -> None:
        """`twins` has the ids that the job would have 2 s earlier and 2 s later.

        A job with one of these ids is a duplicate. `twins` is "" if the id does not depend on time.
        """
        self.id = id
        self.twins = twins
        self.queue = queue
        self.description = description
        self.created_at = created_at
        self.envelope = envelope


# ---- the plan


def is_operation(event: Event) -> bool:
    """Tell whether the event is a tool call that counts towards the next checkpoint."""
    return isinstance(event, PostToolUse) and event.tool in claude_code.CHECKPOINT_TOOLS


def plan(event: Event, context: Context) -> list[Job]:
    """Return the jobs of an event, most urgent first."""
    jobs: list[Job] = []
    if event.name != "SessionStart" and context.enters_session and context.session:
        # Hooks were installed in a running session, or the SessionStart was lost.
        jobs += _starts(event, context)
    jobs += _PLANS.get(event.name, _on_notice)(event, context)
    return sorted(jobs, key=lambda job: PRIORITIES[job.operation])


def _start(event: Event, context: Context) -> Job:
    payload: Payload = {
        "transcript_path": event.transcript_path,
        "pid": context.pid,
        "pid_started": context.pid_started,
        "host": context.machine[0],
        "boot": context.machine[1],
        "pid_space": context.machine[2],
        "swarm": context.swarm,
        **event.about_session(),
    }
    return Job("start_session", payload, context.session[:8])


def _starts(event: Event, context: Context) -> list[Job]:
    jobs = [_start(event, context)]
    if context.task:
        jobs.append(Job("assign_task", {"task_id": context.task}, context.task))
    if context.profile:
        own: Payload = {"profile_id": context.profile, "folder": context.profile_folder}
        jobs.append(Job("enter_profile", {**own, "swarm": context.swarm}, context.profile))
        jobs.append(Job("sync_profile", own, context.profile))
    if context.wants_memories:
        jobs.append(_index_folders(_memory_folders(event, context), context, context.session[:8]))
    return jobs


def _on_start(event: claude_code.SessionStart, context: Context) -> list[Job]:
    """Return the jobs of a session's start.

    After a compaction, jobs that archive the new summary are added.
    """
    is_compacted = event.source == "compact"
    return [*_starts(event, context), *(_archive(event, context) if is_compacted else [])]


def _on_prompt(event: claude_code.UserPromptSubmit, context: Context) -> list[Job]:
    """Return the jobs of a prompt. A prompt made by Claude Code opens a turn, but is not stored."""
    jobs = [Job("activate_session", event.about_session(), context.session[:8])]
    if event.is_users:
        prompt: Payload = {"prompt_id": event.prompt_id, "prompt": event.prompt}
        jobs.append(Job("record_prompt", prompt, context.session[:8]))
    else:
        from hivepipe.events.task_notifications import finished_agent  # noqa: PLC0415  rare

        agent = finished_agent(event.whole_prompt)
        if agent:
            jobs.append(Job("finish_agent", agent, context.session[:8]))
    if context.recalled:
        jobs.append(Job("record_recall", {"memories": context.recalled}, context.session[:8]))
    return jobs


def _on_expansion(event: claude_code.UserPromptExpansion, _context: Context) -> list[Job]:
    if event.expansion == "mcp_prompt":
        return []
    # The file deep/command.md of a project or user has a name like that of a plugin's command.
    kind = "own_command" if event.source.endswith("Settings") else "command"
    return _skill_use(event.command, kind, True, event.arguments, event.prompt_id)


def _on_tool(event: claude_code.PostToolUse, context: Context) -> list[Job]:
    jobs: list[Job] = []
    if event.tool in claude_code.AGENT_TOOLS and not event.is_told_elsewhere:
        jobs.append(_insert_agent(event, context))
    if event.tool == "Skill":
        jobs += _record_skill(event, success=event.reported_success)
    if is_operation(event) and context.count.due:
        jobs += _checkpoint(event, context)
        jobs += _subagent("start_agent", event)  # the agent's SubagentStart may have been lost
    if event.tool in claude_code.EDIT_TOOLS and "/memory/" in event.file_path:
        jobs += _index_memory(event, context)
    if context.snapshot:
        jobs.append(_sync_identity(event, context))
    return jobs + (_on_notice(event, context) if event.tool in claude_code.TASK_TOOLS else [])


def _on_notice(event: Event, _context: Context) -> list[Job]:
    from hivepipe.events.notices import noticed  # noqa: PLC0415  rare

    return [Job("record_notice", notice, str(notice["kind"])) for notice in noticed(event)]


def _index_memory(event: claude_code.PostToolUse, context: Context) -> list[Job]:
    """Return the job that indexes the changed file, if the file is in a known memory folder."""
    folders = _memory_folders(event, context)
    known = [folder for folder in folders if event.file_path.startswith(f"{folder}/")]
    name = event.file_path.rsplit("/", 1)[-1]
    return [_index_folders(known, context, name)] if known else []


def _memory_folders(event: Event, context: Context) -> list[str]:
    """Return Claude Code's memory folder of this project, and the memory folder of the profile."""
    claudes = event.transcript_path.rpartition("/")[0]
    return [f"{folder}/memory" for folder in (claudes, context.profile_folder) if folder]


def _index_folders(folders: list[str], context: Context, subject: str) -> Job:
    payload: Payload = {
        "folders": "\n".join(folders),
        "swarm": context.swarm,
        "profile_id": context.profile,
        "profile_folder": context.profile_folder,
    }
    return Job("index_memory", payload, subject)


def _sync_identity(event: claude_code.PostToolUse, context: Context) -> Job:
    name = event.file_path.rsplit("/", 1)[-1]
    payload: Payload = {
        "profile_id": context.profile,
        "folder": context.profile_folder,
        "name": name,
        "snapshot": context.snapshot,
        "source": "self_edit",
    }
    return Job("sync_identity", payload, name)


def _on_tool_failure(event: PostToolUseFailure, context: Context) -> list[Job]:
    if event.tool in claude_code.AGENT_TOOLS:
        failure: Payload = {"is_interrupt": event.is_interrupt, "error": event.error}
        payload = _agent_call(event, context) | failure
        return [Job("fail_agent", payload, event.subagent_type)]
    if event.tool == "Skill" and not event.is_interrupt:  # an interrupt is not a failure
        return _record_skill(event, success=False)
    return []


def _agent_call(event: claude_code.ToolEvent, context: Context) -> Payload:
    call = event.tool_use_id or event.digest.hex()
    named = blake2b(f"{context.session}\0{call}".encode(), digest_size=8).hexdigest()
    return {
        "agent_id": event.spawned_agent or f"task-agent-{named}",
        "tool_use_id": event.tool_use_id,
        "type": event.spawned_type or event.subagent_type,
        "model": event.resolved_model or event.model,
        "description": event.description,
    }


def _insert_agent(event: claude_code.PostToolUse, context: Context) -> Job:
    payload = _agent_call(event, context) | {
        "launch": event.launch,
        "tokens": event.agent_tokens,
        "duration_ms": event.agent_duration_ms,
    }
    return Job("insert_agent", payload, event.spawned_type or event.subagent_type)


def _record_skill(event: claude_code.ToolEvent, *, success: bool) -> list[Job]:
    return _skill_use(event.skill, "tool", success, event.skill_arguments, event.prompt_id)


def _skill_use(skill: str, source: str, success: bool, arguments: str, prompt_id: str) -> list[Job]:
    payload: Payload = {
        "skill": skill,
        "source": source,
        "success": success,
        "arguments": arguments,
        "prompt_id": prompt_id,
    }
    return [Job("record_skill", payload, skill)] if skill else []


def _checkpoint(event: claude_code.PostToolUse, context: Context) -> list[Job]:
    payload: Payload = {
        "trigger": event.tool,
        "file_path": event.file_path,
        "op_count": context.count.operations,
        "checkpoint_count": context.count.checkpoints,
        "type": "auto",
    }
    subject = event.file_path.rsplit("/", 1)[-1] or event.subagent_type
    return [
        Job(operation, payload, subject)
        for operation in ("update_checkpoint", "update_instance", "insert_log")
    ]


def _final_checkpoint(event: Event, context: Context) -> Job:
    payload: Payload = {
        "trigger": event.name,
        "file_path": "",
        "op_count": context.count.operations,
        "checkpoint_count": context.count.checkpoints,
        "type": "final",
    }
    return Job("update_checkpoint", payload, context.session[:8])


def _on_subagent_stop(event: claude_code.SubagentStop, context: Context) -> list[Job]:
    ended: Payload = {
        "agent_transcript_path": event.agent_transcript_path,
        "failed": event.failed,
        "error": event.error,
    }
    finished = _subagent("finish_agent", event, ended)
    return finished and finished + _archive(event, context, event.agent_transcript_path)


def _subagent(operation: str, event: Event, more: Payload | None = None) -> list[Job]:
    if not event.agent_type or not event.agent_id:  # internal agents of Claude Code have no type
        return []
    payload: Payload = {"agent_id": event.agent_id, "type": event.agent_type, **(more or {})}
    return [Job(operation, payload, event.agent_type)]


def _on_compaction(event: claude_code.PreCompact, context: Context) -> list[Job]:
    payload: Payload = {"trigger": event.trigger, "task_id": context.task}
    return [Job("record_goal", payload, context.session[:8])]


def _on_stop(event: claude_code.Stop, context: Context) -> list[Job]:
    payload: Payload = {
        "error": event.error,
        "said": event.last_message,
        "background_tasks": event.background_tasks,
        **event.about_session(),
    }
    return [
        Job("pause_session", payload, context.session[:8]),
        _final_checkpoint(event, context),
        *_archive(event, context),
    ]


def _on_stop_failure(event: claude_code.StopFailure, context: Context) -> list[Job]:
    """Return the jobs of an API error. A subagent sends this event in place of SubagentStop."""
    if not event.agent_id:
        return _on_stop(event, context)
    error = event.last_message or event.error
    return _subagent("finish_agent", event, {"failed": True, "error": error})


def _on_session_end(event: claude_code.SessionEnd, context: Context) -> list[Job]:
    return [
        Job("end_session", {"reason": event.reason, **event.about_session()}, context.session[:8]),
        _final_checkpoint(event, context),
        *_archive(event, context),
        _conclusion(event, context),
    ]


def _conclusion(event: Event, context: Context) -> Job:
    """Return the job that does the follow-up work of a session when its last instance has ended."""
    payload: Payload = {"path": event.transcript_path, "claude": context.claude_folder}
    return Job("conclude_session", payload, context.session[:8])


def _archive(event: Event, context: Context, agent_transcript: str = "") -> list[Job]:
    """Return the jobs that archive a transcript.

    At a subagent's end this is the transcript of the subagent, else the transcript of the session.
    Without a path there are none.
    """
    is_agent = event.name == "SubagentStop"
    path = agent_transcript if is_agent else event.transcript_path
    if not path:
        return []
    payload: Payload = {
        "path": path,
        "kind": "subagent" if is_agent else "main",
        "agent_id": event.agent_id if is_agent else "",
        "agent_type": event.agent_type if is_agent else "",
        "claude": context.claude_folder,
    }
    if event.name == "SessionStart":
        payload["compacted"] = True
    subject = event.agent_type if is_agent else context.session[:8]
    return [
        Job("archive_transcript", {**payload, "settle_s": secs}, subject) for secs in SETTLE_SECS
    ]


_PLANS: "dict[str, Callable[..., list[Job]]]" = {
    "SessionStart": _on_start,
    "UserPromptSubmit": _on_prompt,
    "UserPromptExpansion": _on_expansion,
    "PostToolUse": _on_tool,
    "PostToolUseFailure": _on_tool_failure,
    "SubagentStart": lambda event, _context: _subagent("start_agent", event),
    "SubagentStop": _on_subagent_stop,
    "Stop": _on_stop,
    "StopFailure": _on_stop_failure,
    "PreCompact": _on_compaction,
    "SessionEnd": _on_session_end,
    "PreToolUse": lambda *_: [],
}

# Checkpoint jobs can name only the session of their instance. With three instances on one project,
# a guess could choose the session of another instance.
_OWN_SESSION_ONLY = ("update_checkpoint", "update_instance", "insert_log")


# ---- the encoding


def encode(jobs: list[Job], event: Event, context: Context) -> list[Message]:
    if not jobs:  # most calls have none
        return []
    created_at = utc(context.event_time_ns)
    return [_message(number, job, event, context, created_at) for number, job in enumerate(jobs)]


def _message(number: int, job: Job, event: Event, context: Context, created_at: str) -> Message:
    id, twins = _identity(event, context, job)
    priority = PRIORITIES[job.operation]
    own = job.operation in _OWN_SESSION_ONLY
    session = context.own_session if own else context.session
    if not session:
        payload = job.payload | {"tier": "own" if own else "any"}
        job = Job(job.operation, payload, job.subject)
    envelope = envelope_fields(id, job, priority, number, context, session, event.agent_id)
    subject = "".join(c if c.isprintable() and c not in "<>&\"'" else "?" for c in job.subject[:60])
    description = f"{job.operation} {subject}".rstrip()
    text = dumps(envelope)
    if "\\ud" in text or "\\u0000" in text:  # readers refuse half a surrogate pair
        text = dumps(claude_code.storable(envelope))
    return Message(id, twins, queue_of(priority), description, created_at, text)


def envelope_fields(
    id: str, job: Job, priority: int, number: int, context: Context, session: str, agent: str
) -> "dict[str, object]":
    """Return the envelope of a job; `number` is the job's place among the jobs of its event."""
    return {
        "v": ENVELOPE_VERSION,
        "id": id,
        "seq": f"{context.event_time_ns}_{number}",
        "priority": priority,
        "operation": job.operation,
        "payload": job.payload,
        "metadata": {
            "session": session or None,
            "instance": context.instance,
            "project": context.project,
            "cwd": context.cwd,
            "agent": agent or None,
        },
        "event_time_ns": context.event_time_ns,
        "created_at": f"{utc(context.event_time_ns)[:-4]}Z",
        "retries": 0,
    }


def event_keys(event: Event, session: str, instance: str, event_time_ns: int) -> tuple[bytes, ...]:
    """Return the keys by which a duplicate of the event is recognised.

    The first key is the event's own. If the key depends on time, the keys of 2 s earlier and 2 s
    later follow.

    If hooks of the settings and of the plugin fire the same event, the two copies share a key. A
    tool call is identified by Claude's id. A resumed subagent starts and stops again, so its start
    and stop are identified by agent and time. Other events are identified by their process, bytes
    and time.
    """
    name = f"{session}\0{event.name}\0"
    if isinstance(event, claude_code.ToolEvent) and event.tool_use_id:
        return (f"{name}{event.tool_use_id}".encode(),)
    if event.name in ("SubagentStart", "SubagentStop") and event.agent_id:
        stem = f"{name}{event.agent_id}\0".encode()
    else:
        # Both copies of a duplicate event come from one process. Two processes that resume one
        # session at the same moment send the same bytes, but these are two events.
        stem = f"{name}{instance}\0".encode() + event.digest
    window = event_time_ns // TWIN_WINDOW_NS
    return tuple(stem + b"%d" % (window + step) for step in (0, -1, 1))


def _identity(event: Event, context: Context, job: Job) -> tuple[str, str]:
    if job.operation == "probe":  # the sender searches for this id
        return job.subject, ""
    keys = event_keys(event, context.session, context.instance, context.event_time_ns)
    suffix = b"\0" + job.operation.encode()
    if job.operation == "start_session":  # each instance has its own assignment
        suffix += b"\0" + context.instance.encode()
    if job.payload.get("settle_s"):  # the second read of the transcript
        suffix += b"\0settled"
    id, *twins = (blake2b(key + suffix, digest_size=16).hexdigest() for key in keys)
    return id, " ".join(twins)


def utc(time_ns: int) -> str:
    """Return a time in RQ's form: 2026-11-21T01:00:00.000000Z."""
    secs, rest = divmod(time_ns, 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(secs)) + f".{rest // 1000:06d}Z"
