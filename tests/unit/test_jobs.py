"""The plan: which jobs an event creates, with their ids, payloads and envelopes."""

import json
from typing import Any

import pytest

from hivepipe.events import job_plan, parse_event
from hivepipe.events.claude_code import KINDS, Event
from hivepipe.events.job_plan import Context, Count, Job, Message, encode, plan
from hivepipe.jobs.about_session import AboutSession
from hivepipe.jobs.envelope import read_envelope
from hivepipe.operations.declared import OPERATIONS
from tests import payloads
from tests.payloads import SESSION, changed, encoded

NOW = 1_795_222_800_000_000_000  # 2026-11-21T01:00:00Z, at the start of a window of 2 s
WINDOW = 2_000_000_000
DUE = Count(True, 41, 7)

Row = tuple[str, int, str]

START: Row = ("start_session", 1, "high")
CHECKPOINT: list[Row] = [
    ("update_checkpoint", 3, "high"),
    ("update_instance", 5, "medium"),
    ("insert_log", 7, "low"),
]
NOTICE: list[Row] = [("record_notice", 7, "low")]
SKILL: list[Row] = [("record_skill", 6, "medium")]
ARCHIVE: list[Row] = [("archive_transcript", 8, "low")] * 2  # at once, and settled
STOPPED: list[Row] = [("pause_session", 1, "high"), ("update_checkpoint", 3, "high"), *ARCHIVE]
AGENT_CALL: list[Row] = [
    ("update_checkpoint", 3, "high"),
    ("insert_agent", 5, "medium"),
    ("update_instance", 5, "medium"),
    ("insert_log", 7, "low"),
]

# The documented table: the jobs of every event with an instance that is not throttled.
TABLE: dict[str, list[Row]] = {
    "SessionStart": [START],
    "UserPromptSubmit": [("activate_session", 1, "high"), ("record_prompt", 6, "medium")],
    "UserPromptExpansion": SKILL,
    "PreToolUse": [],
    "PostToolUse": SKILL,
    "PostToolUseFailure": [],
    "PostToolBatch": NOTICE,
    "PermissionRequest": NOTICE,
    "PermissionDenied": NOTICE,
    "Notification": NOTICE,
    "PostModelSwitch": NOTICE,
    "SubagentStart": [("start_agent", 5, "medium")],
    "SubagentStop": [("finish_agent", 5, "medium"), *ARCHIVE],
    "PreCompact": [("record_goal", 4, "medium")],
    "Stop": STOPPED,
    "StopFailure": STOPPED,
    "SessionEnd": [
        ("end_session", 2, "high"),
        ("update_checkpoint", 3, "high"),
        ("conclude_session", 5, "medium"),
        *ARCHIVE,
    ],
    "PreToolUse-Edit": [],
    "PreToolUse-Write": [],
    "PreToolUse-Skill": [],
    "PreToolUse-Bash": [],
    "PostToolUse-Edit": CHECKPOINT,
    "PostToolUse-Write": CHECKPOINT,
    "PostToolUse-Agent-completed": AGENT_CALL,
    "PostToolUse-Agent-async": AGENT_CALL,
    "PostToolUse-Agent-remote": AGENT_CALL,
    "PostToolUse-Bash": [],
    "PostToolUseFailure-Agent": [("fail_agent", 5, "medium")],
    "PostToolUseFailure-Skill": SKILL,
}


def parse(payload: dict[str, Any]) -> Event:
    event = parse_event(payload.get("hook_event_name", "Stop"), encoded(payload))
    assert event is not None
    return event


def context(**fields: Any) -> Context:
    known: dict[str, Any] = {
        "event_time_ns": NOW,
        "session": SESSION,
        "own_session": SESSION,
        "instance": "instance-1795222000-0a1b2c3d",
        "project": "/home/ana/shop",
        "cwd": "/home/ana/shop/src",
        "swarm": "swarm-1",
        "pid": 4711,
        "pid_started": "99",
        "count": DUE,
    }
    return Context(**{**known, **fields})


def test_a_misspelt_value_of_a_context_is_an_error() -> None:
    with pytest.raises(TypeError, match="sesion"):
        context(sesion=SESSION)


def rows(planned: list[Job]) -> list[Row]:
    pairs = [(job.operation, job_plan.PRIORITIES[job.operation]) for job in planned]
    return [(operation, priority, job_plan.queue_of(priority)) for operation, priority in pairs]


def only(planned: list[Job], operation: str) -> Job:
    (job,) = [job for job in planned if job.operation == operation]
    return job


def messages(payload: dict[str, Any], **fields: Any) -> list[Message]:
    event = parse(payload)
    event_context = context(**fields)
    return encode(plan(event, event_context), event, event_context)


def ids(payload: dict[str, Any], **fields: Any) -> list[str]:
    return [message.id for message in messages(payload, **fields)]


def envelopes(payload: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    return [json.loads(message.envelope) for message in messages(payload, **fields)]


# ---- the table
@pytest.mark.parametrize("label", payloads.ALL)
def test_an_event_becomes_exactly_the_jobs_of_the_table(label: str) -> None:
    made = messages(payloads.ALL[label])
    written = [json.loads(message.envelope) for message in made]
    assert [
        (envelope["operation"], envelope["priority"], message.queue)
        for envelope, message in zip(written, made, strict=True)
    ] == TABLE[label]


@pytest.mark.parametrize("label", TABLE)
def test_what_an_event_says_about_its_session_is_in_a_job_that_stores_it(label: str) -> None:
    event = parse(payloads.ALL[label])
    said = event.about_session()
    added = said.keys() - AboutSession.__annotations__.keys()
    assert not added, "add it to hivepipe/jobs/about_session.py"
    jobs = [
        job for job in plan(event, context()) if issubclass(OPERATIONS[job.operation], AboutSession)
    ]
    assert not said or any(said.items() <= job.payload.items() for job in jobs)


@pytest.mark.parametrize("label", TABLE)
def test_the_first_event_of_an_instance_starts_its_session_once_and_first(label: str) -> None:
    planned = plan(parse(payloads.ALL[label]), context(enters_session=True))
    assert rows(planned) == [START, *(row for row in TABLE[label] if row != START)]


def test_a_session_that_continues_after_a_compaction_is_archived() -> None:
    """Its transcript holds Claude Code's summary, whose text is in no job."""
    compacted = payloads.changed(payloads.SESSION_START, source="compact")
    planned = plan(parse(compacted), context())
    assert rows(planned) == [START, *ARCHIVE]
    assert {job.payload["compacted"] for job in planned[1:]} == {True}


@pytest.mark.parametrize("payload", [payloads.SESSION_START, payloads.PRE_BASH])
def test_the_task_of_a_starting_session_is_assigned(payload: dict[str, Any]) -> None:
    planned = plan(parse(payload), context(enters_session=True, task="task-1"))
    assert rows(planned) == [START, ("assign_task", 1, "high")]
    assert planned[1].payload == {"task_id": "task-1"}
    known = plan(parse(payloads.POST_BASH), context(task="task-1"))
    assert known == []


TOOLS = {
    **dict.fromkeys(("Write", "Edit", "MultiEdit", "NotebookEdit"), (CHECKPOINT, [])),
    **dict.fromkeys(("Agent", "Task"), (AGENT_CALL, [("insert_agent", 5, "medium")])),
    **dict.fromkeys(("Bash", "Read", "mcp__x__y", "edit", "invalid", ""), ([], [])),
}


@pytest.mark.parametrize("tool", TOOLS)
def test_a_throttled_call_gives_no_job_but_that_of_its_agent(tool: str) -> None:
    planned, throttled = TOOLS[tool]
    event = parse(changed(payloads.POST_AGENT_ASYNC, tool_name=tool))
    assert rows(plan(event, context())) == planned
    assert rows(plan(event, context(count=Count(False, 41, 7)))) == throttled


NO_JOB = [
    *[(it, {"agent_type": ""}) for it in (payloads.SUBAGENT_START, payloads.SUBAGENT_STOP)],
    *[(it, {"agent_id": ...}) for it in (payloads.SUBAGENT_START, payloads.SUBAGENT_STOP)],
    (payloads.USER_PROMPT_EXPANSION, {"expansion_type": "mcp_prompt"}),
    (payloads.USER_PROMPT_EXPANSION, {"command_name": ""}),
    (payloads.FAILED_SKILL, {"is_interrupt": True}),
    (payloads.FAILED_SKILL, {"tool_input": {}}),
    (payloads.POST_SKILL, {"tool_input": {}}),
]


@pytest.mark.parametrize(("payload", "fields"), NO_JOB)
def test_an_internal_agent_and_an_unnamed_or_interrupted_skill_give_no_job(
    payload: dict[str, Any], fields: dict[str, Any]
) -> None:
    assert plan(parse(changed(payload, **fields)), context()) == []


@pytest.mark.parametrize("name", KINDS)
def test_an_event_without_fields_can_be_planned(name: str) -> None:
    """Without a session no start is planned."""
    around = context(session="", own_session="", instance="", project="", cwd="")
    around.enters_session = name != "SessionStart"
    planned = plan(parse({"hook_event_name": name}), around)
    assert ("start_session" in [job.operation for job in planned]) == (name == "SessionStart")
    for message in encode(planned, parse({}), around):
        assert json.loads(message.envelope)["metadata"]["session"] is None


# ---- payloads
def test_start_session_carries_the_fields_of_the_event_and_the_process() -> None:
    job = only(plan(parse(payloads.SESSION_START), context()), "start_session")
    process = {"pid": 4711, "pid_started": "99", "host": "", "boot": "", "pid_space": ""}
    of_event = {"source": "resume", "model": "claude-opus-5", "title": "cart-refactor"}
    common = {**process, "transcript_path": payloads.TRANSCRIPT, "swarm": "swarm-1"}
    assert job.payload == common | of_event
    stop = parse(payloads.STOP)
    job = only(plan(stop, context(enters_session=True)), "start_session")
    assert job.payload == common | stop.about_session()


USE = {"skill": "acme:release-notes", "arguments": "v3.2", "source": "tool", "success": True,
       "prompt_id": payloads.PROMPT}  # fmt: skip
EXPLORER = {"agent_id": payloads.AGENT, "type": "Explore"}
OF_EXPLORER = {"agent_id": payloads.AGENT, "agent_type": "Explore"}
CALL = {**EXPLORER, "tool_use_id": "toolu_01Hq7callers", "model": "claude-haiku-5",
        "description": "Map checkout callers", "tokens": None, "duration_ms": None}  # fmt: skip
EDITED = {"trigger": "Edit", "file_path": "/home/ana/shop/src/checkout.py", "op_count": 41,
          "checkpoint_count": 7, "type": "auto"}  # fmt: skip
PAUSE = {"said": "", "error": "", "effort": "high", "background_tasks": 1}
FAILED = {"said": "API Error: Overloaded", "error": "overloaded", "background_tasks": 0}
STOPPED_AGENT = {"agent_transcript_path": payloads.AGENT_TRANSCRIPT, "failed": False, "error": ""}
OLD_SKILL = {"skill_name": "acme:release-notes", "context": "v3.2"}  # as the predecessor wrote it

# An event, fields that are changed in it, one of its jobs, and the payload of the job.
PAYLOADS: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("UserPromptSubmit", {}, "record_prompt",
     {"prompt_id": payloads.PROMPT, "prompt": "Split checkout.py into smaller modules"}),
    ("UserPromptSubmit", {"session_title": "Mine"}, "activate_session", {"title": "Mine"}),
    ("PostToolUse", {}, "record_skill", USE),
    ("PostToolUse", {"tool_input": OLD_SKILL}, "record_skill", USE),
    ("PostToolUseFailure-Skill", {}, "record_skill", {**USE, "success": False}),
    ("UserPromptExpansion", {}, "record_skill", {**USE, "source": "command", "prompt_id": ""}),
    ("UserPromptExpansion", {"command_source": "userSettings"}, "record_skill",
     {**USE, "source": "own_command", "prompt_id": ""}),
    ("PostToolUse-Agent-completed", {}, "insert_agent",
     {**CALL, "launch": "completed", "tokens": 18422, "duration_ms": 41230}),
    ("PostToolUse-Agent-async", {}, "insert_agent", {**CALL, "launch": "async"}),
    ("SubagentStart", {}, "start_agent", EXPLORER),
    ("SubagentStop", {}, "finish_agent", {**EXPLORER, **STOPPED_AGENT}),
    *[("PostToolUse-Edit", {}, operation, EDITED) for operation, *_ in CHECKPOINT],
    ("Stop", {}, "pause_session", PAUSE),
    ("StopFailure", {"effort": {"level": "high"}}, "pause_session", {**PAUSE, **FAILED}),
    ("StopFailure", OF_EXPLORER, "finish_agent",
     {**EXPLORER, "failed": True, "error": FAILED["said"]}),
    ("SessionEnd", {}, "end_session",
     {"reason": "prompt_input_exit", "transcript_path": payloads.TRANSCRIPT}),
    ("SessionEnd", {}, "conclude_session",
     {"path": payloads.TRANSCRIPT, "claude": "/home/ana/claude"}),
]  # fmt: skip


@pytest.mark.parametrize(("label", "fields", "operation", "expected"), PAYLOADS)
def test_a_job_carries_what_its_operation_needs(
    label: str, fields: dict[str, Any], operation: str, expected: dict[str, Any]
) -> None:
    event = parse(changed(payloads.ALL[label], **fields))
    planned = plan(event, context(claude_folder="/home/ana/claude"))
    assert only(planned, operation).payload == expected


@pytest.mark.parametrize(("named", "planned"), [
    ({}, 0),  # as 2.1.197 sends it
    ({"agentId": "bob@session-f040d175"}, 0),  # in a pane, as a session of its own
    ({"agentId": "abob-8abe02a46b32d54d"}, 1),
])  # fmt: skip
def test_an_agent_of_a_team_is_recorded_once(named: dict[str, str], planned: int) -> None:
    answer = {"status": "teammate_spawned", "teammate_id": "bob@session-f040d175", **named}
    jobs = plan(parse(changed(payloads.POST_AGENT_ASYNC, tool_response=answer)), context())
    assert [job.operation for job in jobs].count("insert_agent") == planned


def test_an_agent_without_an_id_is_named_by_session_and_call() -> None:
    def agent(payload: dict[str, Any], session: str = SESSION) -> object:
        planned = plan(parse(payload), context(session=session))
        return planned[0 if planned[0].operation == "fail_agent" else 1].payload["agent_id"]

    remote = only(plan(parse(payloads.POST_AGENT_REMOTE), context()), "insert_agent").payload
    assert (remote["launch"], remote["model"]) == ("remote", "haiku")
    first = agent(payloads.POST_AGENT_REMOTE)
    assert str(first).startswith("task-agent-")
    assert first == agent(payloads.POST_AGENT_REMOTE)
    assert first != agent(payloads.POST_AGENT_REMOTE, "another")
    assert first != agent(changed(payloads.POST_AGENT_REMOTE, tool_use_id="toolu_2"))
    assert first == agent(changed(payloads.FAILED_AGENT, tool_use_id="toolu_01Remoterun"))


def test_fail_agent_carries_whether_the_user_interrupted_it() -> None:
    job = only(
        plan(parse(changed(payloads.FAILED_AGENT, is_interrupt=True)), context()), "fail_agent"
    )
    assert job.payload["is_interrupt"] is True
    assert job.payload["tool_use_id"] == "toolu_01Hq7callers"


@pytest.mark.parametrize(("outcome", "failed"), [("success", False), ("error", True)])
def test_the_predecessors_form_of_a_subagents_end_is_read(outcome: str, failed: bool) -> None:
    """The payload is that of its documentation, except for the outcome."""
    path = "~/.claude/tasks/task-xyz.jsonl"
    documented = {
        "hook_event_name": "SubagentStop", "task_id": "task-xyz", "agent_type": "architect",
        "parent_session_id": "abc123", "transcript_path": path, "outcome": outcome,
    }  # fmt: skip
    event = parse(documented)
    assert event.session_id == "abc123"
    planned = plan(event, context())
    payload = only(planned, "finish_agent").payload
    named = (payload["agent_id"], payload["type"], payload["failed"])
    assert named == ("task-xyz", "architect", failed)
    archived = [job.payload for job in planned if job.operation == "archive_transcript"]
    found = {(job["path"], job["kind"], job["agent_id"]) for job in archived}
    assert found == {(path, "subagent", "task-xyz")}


def test_the_first_edit_inside_a_subagent_starts_the_agent() -> None:
    inside = changed(payloads.POST_EDIT, agent_id=payloads.AGENT, agent_type="Explore")
    planned = plan(parse(inside), context())
    assert only(planned, "start_agent").payload["agent_id"] == payloads.AGENT
    throttled = plan(parse(inside), context(count=job_plan.NOT_COUNTED))
    assert throttled == []


@pytest.mark.parametrize(
    ("old", "new", "failed"),
    [
        ("", "", False),
        ("<status>completed<", "<status>failed<", True),
        ("<status>completed<", "<status>killed<", True),
        ("subagent_tokens>", "total_tokens>", False),  # as 2.1.77 sends it
        ("slow sub done", "<status>failed</status><subagent_tokens>1</subagent_tokens>", False),
        ("ada2d8a5de15185fc", "../../etc", None),
        ('" finished<', '" is waiting on its own background work<', None),
        (
            'Agent "Back" finished',
            'Dynamic workflow "Back" completed',
            None,
        ),  # tokens of all agents
    ],
)
def test_only_a_valid_task_notification_finishes_an_agent(
    old: str, new: str, failed: bool | None
) -> None:
    prompt = str(payloads.TASK_NOTIFICATION["prompt"]).replace(old, new)
    planned = plan(parse(changed(payloads.TASK_NOTIFICATION, prompt=prompt)), context())
    found = [job.payload for job in planned if job.operation == "finish_agent"]
    usage = {"tokens": 6100, "duration_ms": 1923}
    error = 'Agent "Back" finished' if failed else ""
    expected = {"agent_id": "ada2d8a5de15185fc", "type": "", "failed": failed, "error": error}
    expected |= usage
    assert found == ([] if failed is None else [expected])


@pytest.mark.parametrize("name", ["Stop", "StopFailure", "SessionEnd"])
def test_a_final_checkpoint_carries_the_totals(name: str) -> None:
    job = only(plan(parse(payloads.EVENTS[name]), context()), "update_checkpoint")
    assert (job.payload["type"], job.payload["trigger"]) == ("final", name)
    assert (job.payload["op_count"], job.payload["checkpoint_count"]) == (41, 7)


@pytest.mark.parametrize("name", ["Stop", "StopFailure", "SessionEnd", "SubagentStop"])
def test_a_transcript_is_archived_at_once_and_again_once_settled(name: str) -> None:
    event_context = context(claude_folder="/home/ana/claude")
    planned = plan(parse(payloads.EVENTS[name]), event_context)
    made = [job.payload for job in planned if job.operation == "archive_transcript"]
    assert [payload.pop("settle_s") for payload in made] == [0, 5]
    is_agent = name == "SubagentStop"
    expected = {
        "path": payloads.AGENT_TRANSCRIPT if is_agent else payloads.TRANSCRIPT,
        "kind": "subagent" if is_agent else "main",
        "agent_id": payloads.AGENT if is_agent else "",
        "agent_type": "Explore" if is_agent else "",
        "claude": "/home/ana/claude",
    }
    assert made == [expected, expected]


@pytest.mark.parametrize(
    ("name", "field"), [("Stop", "transcript_path"), ("SubagentStop", "agent_transcript_path")]
)
def test_without_a_transcript_there_is_nothing_to_archive(name: str, field: str) -> None:
    """SubagentStop names the session's transcript too, which is not the subagent's."""
    planned = plan(parse(changed(payloads.EVENTS[name], **{field: ...})), context())
    assert "archive_transcript" not in [job.operation for job in planned]


@pytest.mark.parametrize("label", payloads.ALL)
def test_no_content_of_a_tool_call_leaves_the_hook(label: str) -> None:
    canary = "CANARY-5f1d"
    payload = json.loads(json.dumps(payloads.ALL[label]))
    for body in ("content", "old_string", "new_string", "command", "prompt"):
        payload.setdefault("tool_input", {})[body] = canary
    payload.setdefault("tool_response", {}).update(content=canary, stdout=canary, prompt=canary)
    payload |= {"error_details": canary, "effort": canary}
    if label != "StopFailure":  # there it is the API's error message
        payload["last_assistant_message"] = canary
    made = messages(payload, enters_session=True)
    assert not any(canary in message.envelope + message.description for message in made)


# ---- descriptions
DESCRIPTIONS = {
    "SessionStart": ["start_session 7b1f0c9e"],
    "UserPromptSubmit": ["activate_session 7b1f0c9e", "record_prompt 7b1f0c9e"],
    "UserPromptExpansion": ["record_skill acme:release-notes"],
    "SubagentStop": ["finish_agent Explore", *["archive_transcript Explore"] * 2],
    "PostToolUse-Edit": [f"{operation} checkout.py" for operation, *_ in CHECKPOINT],
    "Stop": [f"{operation} 7b1f0c9e" for operation, *_ in STOPPED],
    "SessionEnd": [f"{operation} 7b1f0c9e" for operation, *_ in TABLE["SessionEnd"]],
}


@pytest.mark.parametrize("label", DESCRIPTIONS)
def test_a_description_is_operation_and_subject(label: str) -> None:
    made = messages(payloads.ALL[label])
    assert [message.description for message in made] == DESCRIPTIONS[label]


def test_a_description_is_short_and_printable_and_may_have_no_subject() -> None:
    made = messages(payloads.STOP, session="", own_session="")
    assert [message.description for message in made] == [operation for operation, *_ in STOPPED]
    payload = changed(payloads.POST_SKILL, tool_input={"skill": "a\n\x1b[31m<b>&\"'" + "x" * 190})
    (message,) = messages(payload)
    assert message.description.isprintable()
    assert not set(message.description) & set("<>&\"'")
    assert len(message.description) <= len("record_skill ") + 60


# ---- the envelope
def test_the_envelope_holds_the_values_of_the_contract_in_their_order() -> None:
    (message,) = messages(payloads.POST_SKILL)
    expected = {
        "v": 1,
        "id": message.id,
        "seq": f"{NOW}_0",
        "priority": 6,
        "operation": "record_skill",
        "payload": {
            "skill": "acme:release-notes",
            "source": "tool",
            "success": True,
            "arguments": "v3.2",
            "prompt_id": payloads.PROMPT,
        },
        "metadata": {
            "session": SESSION,
            "instance": "instance-1795222000-0a1b2c3d",
            "project": "/home/ana/shop",
            "cwd": "/home/ana/shop/src",
            "agent": payloads.AGENT,
        },
        "event_time_ns": NOW,
        "created_at": "2026-11-21T01:00:00.000Z",
        "retries": 0,
    }
    assert json.loads(message.envelope) == expected
    assert json.dumps(json.loads(message.envelope)) == json.dumps(expected), "in this order"


def test_jobs_of_one_event_are_numbered_in_their_order() -> None:
    written = envelopes(payloads.POST_AGENT_ASYNC, enters_session=True)
    assert [envelope["seq"] for envelope in written] == [f"{NOW}_{n}" for n in range(5)]
    assert {envelope["metadata"]["agent"] for envelope in written} == {None}


def test_the_envelope_is_ascii_and_survives_any_text() -> None:
    text = 'é\u2028\U0001f600"\\\x01'
    _, message = messages(changed(payloads.USER_PROMPT_SUBMIT, prompt=text))
    assert json.loads(message.envelope)["payload"]["prompt"] == text
    assert message.envelope.isascii()


@pytest.mark.parametrize("time_ns", [0, 1, NOW, NOW + 999_999_999, NOW + 123_456_789])
def test_times_are_utc_with_milliseconds_in_the_envelope_and_microseconds_for_rq(
    time_ns: int,
) -> None:
    (message,) = messages(payloads.SESSION_START, event_time_ns=time_ns)
    assert message.created_at == job_plan.utc(time_ns)
    assert len(message.created_at) == len("2026-11-21T01:00:00.000000Z")
    written = json.loads(message.envelope)["created_at"]
    assert written == f"{message.created_at[:-4]}Z"
    assert int(message.created_at[-7:-1]) == time_ns // 1000 % 1_000_000


# ---- the session of a job

OWN_ONLY = ("update_checkpoint", "update_instance", "insert_log")


@pytest.mark.parametrize(
    ("session", "own_session", "tier", "own_tier"),
    [(SESSION, SESSION, None, None), (SESSION, "", None, "own"), ("", "", "any", "own")],
)
def test_a_job_names_its_session_or_the_tiers_for_the_writer(
    session: str, own_session: str, tier: str | None, own_tier: str | None
) -> None:
    """A checkpoint names a session only if it is the instance's own."""
    for written in envelopes(payloads.POST_AGENT_ASYNC, session=session, own_session=own_session):
        is_own = written["operation"] in OWN_ONLY
        expected = (own_session or None, own_tier) if is_own else (session or None, tier)
        assert (written["metadata"]["session"], written["payload"].get("tier")) == expected


# ---- ids
@pytest.mark.parametrize("label", [label for label, planned in TABLE.items() if planned])
def test_the_same_event_twice_has_the_same_ids(label: str) -> None:
    payload = payloads.ALL[label]
    first = ids(payload)
    assert first == ids(payload, event_time_ns=NOW + WINDOW - 1)
    assert all(len(id) == 32 and int(id, 16) >= 0 for id in first)
    assert len(set(first)) == len(first)


def test_ids_do_not_depend_on_instance_process_or_folder() -> None:
    other = {"instance": "other", "pid": 1, "cwd": "/x", "count": Count(True, 1, 1)}
    assert ids(payloads.POST_EDIT) == ids(payloads.POST_EDIT, **other)


@pytest.mark.parametrize("label", ["PostToolUse-Edit", "PostToolUse-Agent-async", "PostToolUse"])
def test_another_tool_call_has_other_ids(label: str) -> None:
    payload = payloads.ALL[label]
    assert not set(ids(payload)) & set(ids(changed(payload, tool_use_id="toolu_another")))


@pytest.mark.parametrize("label", ["PostToolUse-Edit", "SubagentStart", "Stop"])
def test_another_session_has_other_ids(label: str) -> None:
    """This holds whether an event is identified by its call, its agent or its bytes."""
    payload = payloads.ALL[label]
    assert not set(ids(payload)) & set(ids(payload, session="another"))


def test_another_agent_or_the_end_of_one_has_other_ids() -> None:
    start, stop = payloads.SUBAGENT_START, payloads.SUBAGENT_STOP
    found = [ids(each)[0] for each in (start, changed(start, agent_id="b1"), stop)]
    assert len({*found, ids(changed(stop, agent_id="b1"))[0]}) == 4


@pytest.mark.parametrize("label", ["PostToolUse-Edit", "PostToolUse-Agent-async"])
def test_an_event_with_a_call_id_has_the_same_ids_at_any_time_and_no_twin(label: str) -> None:
    payload = payloads.ALL[label]
    assert ids(payload) == ids(payload, event_time_ns=NOW + 3600 * 10**9)
    assert {message.twins for message in messages(payload)} == {""}


@pytest.mark.parametrize("label", ["SubagentStart", "SubagentStop"])
def test_a_resumed_agent_starts_and_stops_again(label: str) -> None:
    payload = payloads.ALL[label]
    assert ids(payload) == ids(changed(payload, last_assistant_message="other"))
    assert not set(ids(payload)) & set(ids(payload, event_time_ns=NOW + 60 * 10**9))


@pytest.mark.parametrize(
    "label", ["Stop", "UserPromptSubmit", "SessionStart", "SessionEnd", "SubagentStop"]
)
def test_the_twins_of_a_window_are_the_ids_of_its_neighbours(label: str) -> None:
    """The second of two firings is recognized, whichever of them arrives first."""
    payload = payloads.ALL[label]
    before, after = zip(*(message.twins.split() for message in messages(payload)), strict=True)
    assert list(before) == ids(payload, event_time_ns=NOW - 1)
    assert list(before) == ids(payload, event_time_ns=NOW - WINDOW)
    assert list(after) == ids(payload, event_time_ns=NOW + WINDOW)
    assert not {*before, *after} & set(ids(payload))
    assert not {*before, *after} & set(ids(payload, event_time_ns=NOW - WINDOW - 1))


def test_an_event_without_an_id_is_identified_by_its_bytes_and_time() -> None:
    assert ids(payloads.STOP) != ids(changed(payloads.STOP, last_assistant_message="other"))
    payload = changed(payloads.POST_EDIT, tool_use_id=...)
    assert ids(payload) == ids(payload, event_time_ns=NOW + WINDOW - 1)
    assert ids(payload) != ids(payload, event_time_ns=NOW + WINDOW)
    assert all(message.twins for message in messages(payload))


def test_a_generated_prompt_opens_the_turn_and_is_not_recorded() -> None:
    generated = ("system", "loop_wakeup", "schedule_wakeup", "poll_event")
    prompts = [changed(payloads.USER_PROMPT_SUBMIT, source=source) for source in generated]
    for payload in (payloads.TASK_NOTIFICATION, *prompts):
        operations = {job.operation for job in plan(parse(payload), context())}
        assert operations - {"finish_agent"} == {"activate_session"}, payload
    text = "What is <task-notification>?"  # a prompt of the user may quote a tag
    for source in ("user", "sdk", ...):
        payload = changed(payloads.USER_PROMPT_SUBMIT, source=source, prompt=text)
        assert only(plan(parse(payload), context()), "record_prompt").payload["prompt"] == text


STOPPED_TASK = (
    "<task-notification>\n<task-id>a855b1017dce62d60</task-id>\n<status>killed</status>\n"
    "<summary>{}</summary>\n<note>A note.</note>\n</task-notification>"
)


@pytest.mark.parametrize("by", ["user", "Claude"])
def test_an_agent_that_was_stopped_has_failed(by: str) -> None:
    """Its notification has no result and no tokens."""
    said = f'Agent "Look" was stopped by {by}'
    payload = changed(payloads.TASK_NOTIFICATION, prompt=STOPPED_TASK.format(said))
    ended = only(plan(parse(payload), context()), "finish_agent").payload
    assert (ended["agent_id"], ended["failed"]) == ("a855b1017dce62d60", True)
    assert (ended["error"], ended["tokens"]) == (said, None)
    payload = changed(payloads.TASK_NOTIFICATION, prompt=STOPPED_TASK.format(said + "\0" * 9000))
    ended = only(plan(parse(payload), context()), "finish_agent").payload
    assert ended["error"] == (said + "\ufffd" * 9000)[:2000]


STOPPED_COMMAND = STOPPED_TASK.format('Background command "Agent "Look"" was stopped')
RESUMED_AGENT = STOPPED_TASK.format('Agent "Look" was resumed by another agent')


@pytest.mark.parametrize(
    "prompt",
    [
        STOPPED_COMMAND,
        STOPPED_TASK.format(""),
        RESUMED_AGENT.replace("<status>killed</status>\n", ""),
    ],
)
def test_a_notification_of_another_task_or_of_a_resumed_agent_finishes_none(prompt: str) -> None:
    payload = changed(payloads.TASK_NOTIFICATION, prompt=prompt)
    assert [job.operation for job in plan(parse(payload), context())] == ["activate_session"]


def test_a_session_of_a_profile_enters_it_and_syncs_its_file() -> None:
    own = {"profile": "ana", "profile_folder": "/home/ana/.profiles/ana"}
    started = plan(parse(payloads.SESSION_START), context(**own))
    assert [job.operation for job in started] == ["start_session", "enter_profile", "sync_profile"]
    assert started[1].payload["folder"] == own["profile_folder"]
    event = parse(payloads.POST_WRITE)
    edited = plan(event, context(**own, snapshot="1_2_SOUL.md"))
    assert only(edited, "sync_identity").payload["source"] == "self_edit"
    assert "sync_identity" not in [job.operation for job in plan(event, context(**own))]


HALF = "\ud83d"  # of an emoji, as JavaScript cuts it
CUT_TASK = changed(
    payloads.POST_BASH, tool_name="TaskCreate", tool_input={"subject": f"Paint it {HALF}\0"}
)


@pytest.mark.parametrize(
    ("payload", "fields", "key", "text"),
    [
        (CUT_TASK, {}, "text", "Paint it \ufffd\ufffd"),
        (payloads.STOP, {"claude_folder": "/home/jos\udce9"}, "claude", "/home/jos\ufffd"),
        (payloads.STOP, {"claude_folder": "/home/\U0001f600"}, "claude", "/home/\U0001f600"),
        (
            payloads.USER_PROMPT_SUBMIT,
            {"recalled": [{"name": "caf\udce9.md", "text": f"cut {HALF}"}]},
            "prompt",
            payloads.USER_PROMPT_SUBMIT["prompt"],
        ),
    ],
)
def test_every_text_of_a_job_can_be_read(
    payload: dict[str, Any], fields: dict[str, Any], key: str, text: str
) -> None:
    event = parse_event("", json.dumps(payload).encode())
    assert event
    around = context()
    for name, value in fields.items():
        setattr(around, name, value)
    found = [read_envelope(each.envelope) for each in encode(plan(event, around), event, around)]
    assert text in [each.payload.get(key) for each in found]
