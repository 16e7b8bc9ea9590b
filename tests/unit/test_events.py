"""Parsing of events: typed fields, length limits, invalid values and broken JSON."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hivepipe.events import claude_code, other_events, parse_event
from hivepipe.events.claude_code import Event
from hivepipe.events.pastes import with_short_pastes
from hivepipe.redact import redact_text
from tests import payloads
from tests.payloads import changed, encoded

CHECKOUT = "/home/ana/shop/src/checkout.py"
SKILL = {"tool": "Skill", "skill": "acme:release-notes"}
BASH = {"tool": "Bash", "tool_use_id": "toolu_01Pytest"}
SPAWNED = {"spawned_agent": payloads.AGENT, "spawned_type": "Explore"}
NO_USAGE = {"agent_tokens": None, "agent_duration_ms": None}

# The typed fields that each example gives.
EXPECTED: dict[str, dict[str, object]] = {
    "SessionStart": {"source": "resume", "model": "claude-opus-5", "title": "cart-refactor"},
    "UserPromptSubmit": {"prompt": "Split checkout.py into smaller modules"},
    "UserPromptExpansion": {"expansion": "slash_command", "command": "acme:release-notes",
                            "arguments": "v3.2"},
    "PreToolUse": {"tool": "Agent", "tool_use_id": "toolu_01Hq7callers", "model": "haiku",
                   "subagent_type": "Explore", "description": "Map checkout callers"},
    "PostToolUse": {**SKILL, "tool_use_id": "toolu_01Skillrun", "skill_arguments": "v3.2",
                    "reported_success": True, "duration_ms": 38},
    "PostToolUseFailure": {**BASH, "error": "Exit code 1\n2 failed, 40 passed",
                           "is_interrupt": False, "duration_ms": 6120},
    "PostToolBatch": {"is_activity": True},
    "PermissionRequest": {"tool": "Bash", "tool_use_id": "", "description": "A failing call"},
    "PermissionDenied": {"tool": "Bash", "reason": "Classifier unavailable"},
    "Notification": {"kind": "permission_prompt", "is_activity": True},
    "PostModelSwitch": {"to_model": "claude-haiku-4-5", "source": "command"},
    "SubagentStart": {},
    "SubagentStop": {"agent_transcript_path": payloads.AGENT_TRANSCRIPT},
    "PreCompact": {"trigger": "auto"},
    "Stop": {"error": "", "background_tasks": 1},
    "StopFailure": {"error": "overloaded", "last_message": "API Error: Overloaded",
                    "background_tasks": 0},
    "SessionEnd": {"reason": "prompt_input_exit"},
    "PreToolUse-Edit": {"tool": "Edit", "file_path": CHECKOUT},
    "PreToolUse-Write": {"tool": "Write", "file_path": "/home/ana/shop/src/totals.py"},
    "PreToolUse-Skill": SKILL,
    "PreToolUse-Bash": {**BASH, "file_path": ""},
    "PostToolUse-Edit": {"tool": "Edit", "file_path": CHECKOUT, "duration_ms": 12},
    "PostToolUse-Write": {"tool": "Write", "file_path": "/home/ana/shop/src/totals.py"},
    "PostToolUse-Agent-completed": {**SPAWNED, "tool": "Agent", "launch": "completed",
                                    "agent_tokens": 18422, "agent_duration_ms": 41230},
    "PostToolUse-Agent-async": {**SPAWNED, **NO_USAGE, "launch": "async", "spawned_type": "",
                                "subagent_type": "Explore"},
    "PostToolUse-Agent-remote": {**NO_USAGE, "launch": "remote", "spawned_agent": ""},
    "PostToolUse-Bash": {"tool": "Bash", "file_path": "", "skill": "", "launch": ""},
    "PostToolUseFailure-Agent": {"tool": "Agent", "is_interrupt": False},
    "PostToolUseFailure-Skill": SKILL,
}  # fmt: skip


def parse(payload: object, name: str = "UserPromptSubmit") -> Event:
    event = parse_event(name, payload if isinstance(payload, bytes) else encoded(payload))
    assert event is not None
    return event


def all_fields(event: Event) -> dict[str, object]:
    """Return the values of all fields of an event, as the plan reads them."""
    names = {name for kind in type(event).__mro__ for name in dir(kind) if name[0] != "_"}
    return {
        name: value
        for name in names - {"data", "digest", "problems", "calls", "waits_for"}
        if not callable(value := getattr(event, name))
    }


# ---- good events
@pytest.mark.parametrize("label", payloads.ALL)
def test_every_example_is_read_into_its_typed_fields_without_a_problem(label: str) -> None:
    payload = payloads.ALL[label]
    event = parse(payload, "SessionStart")
    fields = all_fields(event)
    assert type(event).__name__ == event.name == payload["hook_event_name"]
    assert {key: fields[key] for key in EXPECTED[label]} == EXPECTED[label]
    for key in ("session_id", "transcript_path", "cwd"):
        assert fields[key] == payload[key]
    for key in ("prompt_id", "agent_id", "agent_type"):
        assert fields[key] == payload.get(key, "")
    assert event.problems == []


def test_there_is_an_example_and_a_type_for_each_event() -> None:
    assert set(payloads.EVENTS) == {*claude_code.KINDS, *other_events.OTHER_KINDS}


@pytest.mark.parametrize("label", payloads.ALL)
def test_unknown_fields_change_nothing_and_are_no_problem(label: str) -> None:
    payload = payloads.ALL[label]
    new = {"from_the_future": {"deep": [1, None]}, "effort2": 7}
    event = parse(changed(payload, **new))
    assert all_fields(event) == all_fields(parse(payload))
    assert event.problems == []


@pytest.mark.parametrize("name", claude_code.KINDS)
def test_an_event_without_a_name_has_the_name_of_the_executable(name: str) -> None:
    event = parse(changed(payloads.EVENTS[name], hook_event_name=...), name)
    assert type(event).__name__ == event.name == name
    assert parse(payloads.STOP, name).name == "Stop"


@pytest.mark.parametrize("name", ["ConfigChange", "stop", "Event", "", "X" * 500])
def test_an_unknown_event_is_none(name: str) -> None:
    assert parse_event(name, b"{}") is None
    assert parse_event("Stop", encoded({"hook_event_name": name or "CwdChanged"})) is None


def test_null_counts_as_missing() -> None:
    event = parse(changed(payloads.PRE_COMPACT, trigger=None, session_id=None), "PreCompact")
    assert (all_fields(event)["trigger"], event.session_id, event.problems) == ("", "", [])
    empty = parse(b"{}", "Stop")
    assert (empty.session_id, empty.cwd, empty.problems) == ("", "", [])


TEAMMATE = {"id": "t1", "type": "teammate", "status": "running", "description": "Review"}


def tasks(*statuses: Any) -> list[dict[str, Any]]:
    return [{"id": "b", "status": status} for status in statuses]


def tokens(number: float) -> dict[str, Any]:
    return {**payloads.POST_AGENT_COMPLETED["tool_response"], "totalTokens": number}


# An example, a field that is changed in it, and what is then read.
READ: list[tuple[payloads.Payload, dict[str, Any], str, object]] = [
    (payloads.STOP, {"background_tasks": tasks("running", "pending")}, "background_tasks", 2),
    (payloads.STOP, {"background_tasks": tasks("completed", "failed")}, "background_tasks", 0),
    (payloads.STOP, {"background_tasks": tasks(None, 3)}, "background_tasks", 0),
    (payloads.STOP, {"background_tasks": [TEAMMATE, *tasks("running")]}, "background_tasks", 1),
    (payloads.STOP_FAILURE, {}, "is_activity", True),
    (payloads.STOP_FAILURE, {"agent_id": payloads.AGENT}, "is_activity", False),
    *[(payloads.POST_SKILL, {"tool_input": {key: "lint"}}, "skill", "lint")
      for key in ("skill", "skill_name", "name")],
    (payloads.POST_SKILL, {"tool_response": {"success": False}}, "reported_success", False),
    (payloads.POST_SKILL, {"tool_response": {}}, "reported_success", True),
    (payloads.POST_SKILL, {"tool_response": "text"}, "reported_success", True),
    (payloads.POST_EDIT, {"tool_name": "NotebookEdit", "tool_input": {"notebook_path": "/a"}},
     "file_path", "/a"),
    *[(payloads.POST_EDIT, {"tool_name": tool}, "tool", tool)
      for tool in ("mcp__github__create_issue", "x" * 200)],
    *[(payloads.POST_AGENT_COMPLETED, {"tool_response": tokens(number)}, "agent_tokens", kept)
      for number, kept in ((0, 0), (12.7, 12), (2**53 - 1, 2**53 - 1), (2**53, None), (-1, None))],
    *[(payloads.NOTIFICATION, {"notification_type": kind}, "is_activity", False)
      for kind in ("idle_prompt", "auth_success", "elicitation_complete", "")],
]  # fmt: skip


@pytest.mark.parametrize(("payload", "fields", "attribute", "value"), READ)
def test_a_field_is_read_in_each_of_its_forms(
    payload: payloads.Payload, fields: dict[str, Any], attribute: str, value: object
) -> None:
    event = parse(changed(payload, **fields))
    assert all_fields(event)[attribute] == value
    assert bool(event.problems) is (value is None)


# ---- wrong types, caps, ids

WRONG = [7, 1.5, True, [], ["x"], {}, {"x": 1}]
NO_VALUES = {"background_tasks": 0, "duration_ms": None, "is_interrupt": False, "file_path": ""}

FIELDS = [
    ("SessionStart", "session_id", "session_id", WRONG),
    ("SessionStart", "transcript_path", "transcript_path", WRONG),
    ("SessionStart", "cwd", "cwd", WRONG),
    ("SessionStart", "source", "source", WRONG),
    ("SessionStart", "model", "model", WRONG),
    ("SessionStart", "session_title", "title", WRONG),
    ("UserPromptSubmit", "session_title", "title", WRONG),
    ("StopFailure", "last_assistant_message", "last_message", WRONG),
    ("UserPromptSubmit", "prompt", "prompt", WRONG),
    ("UserPromptSubmit", "prompt_id", "prompt_id", WRONG),
    ("UserPromptExpansion", "expansion_type", "expansion", WRONG),
    ("UserPromptExpansion", "command_name", "command", WRONG),
    ("UserPromptExpansion", "command_args", "arguments", WRONG),
    ("PostToolUse", "tool_name", "tool", WRONG),
    ("PostToolUse", "tool_use_id", "tool_use_id", WRONG),
    ("PostToolUse", "agent_id", "agent_id", WRONG),
    ("PostToolUse", "agent_type", "agent_type", WRONG),
    ("PostToolUseFailure", "error", "error", WRONG),
    ("SubagentStop", "agent_transcript_path", "agent_transcript_path", WRONG),
    ("PreCompact", "trigger", "trigger", WRONG),
    ("StopFailure", "error", "error", WRONG),
    ("SessionEnd", "reason", "reason", WRONG),
    ("PostToolUse-Edit", "tool_input", "file_path", [7, "text", [1], True]),
    ("PostToolUse-Edit", "duration_ms", "duration_ms", ["12", [], {}, True]),
    ("PostToolUseFailure", "is_interrupt", "is_interrupt", ["yes", 1, [], {}]),
    ("Stop", "background_tasks", "background_tasks", ["b2", 1, {}, True]),
]


@pytest.mark.parametrize(("label", "key", "attribute", "wrong"), FIELDS)
def test_a_field_of_the_wrong_type_counts_as_missing_and_is_named(
    label: str, key: str, attribute: str, wrong: list[object]
) -> None:
    for value in wrong:
        event = parse(changed(payloads.ALL[label], **{key: value}))
        assert all_fields(event)[attribute] == NO_VALUES.get(key, NO_VALUES.get(attribute, ""))
        assert any(key in problem for problem in event.problems), event.problems


@pytest.mark.parametrize("wrong", [7, [], {}, True], ids=repr)
def test_an_event_name_of_the_wrong_type_counts_as_missing_and_is_named(wrong: object) -> None:
    event = parse(changed(payloads.STOP, hook_event_name=wrong), "Stop")
    assert event.name == "Stop"
    assert any("hook_event_name" in problem for problem in event.problems)


@pytest.mark.parametrize("label", payloads.ALL)
def test_all_fields_wrong_at_once_still_make_an_event(label: str) -> None:
    payload = payloads.ALL[label]
    name = payload["hook_event_name"]
    for wrong in (7, [], {}, True, "", "\0"):
        event = parse({**dict.fromkeys(payload, wrong), "hook_event_name": name})
        all_fields(event)
        assert event.name == name, wrong


@pytest.mark.parametrize("field", ["file_path", "subagent_type", "model", "description", "skill"])
def test_a_tool_field_of_the_wrong_type_is_named(field: str) -> None:
    event = parse(changed(payloads.POST_EDIT, tool_input={field: ["wrong"]}))
    assert all_fields(event)[field] == ""
    assert any(field in problem for problem in event.problems)


def test_problems_name_fields_and_never_quote_texts() -> None:
    event = parse(changed(payloads.STOP, session_id="my secret words", cwd=["more secrets"]))
    assert "secret" not in "".join(event.problems)
    assert len(event.problems) == 2


CAPS = [
    ("UserPromptSubmit", "prompt", "prompt", 2000),
    ("UserPromptExpansion", "command_args", "arguments", 200),
    ("UserPromptExpansion", "command_name", "command", 200),
    ("PostToolUseFailure", "error", "error", 2000),
    ("StopFailure", "error", "error", 200),
    ("SessionStart", "session_title", "title", 100),
    ("UserPromptSubmit", "session_title", "title", 100),
    ("StopFailure", "last_assistant_message", "last_message", 200),
    ("SessionStart", "model", "model", 200),
    ("SessionStart", "cwd", "cwd", 4096),
    ("SubagentStart", "agent_type", "agent_type", 200),
    ("PostToolUse-Edit", "tool_input description", "description", 100),
    ("PostToolUse-Edit", "tool_input args", "skill_arguments", 200),
    ("PostToolUse-Edit", "tool_input skill", "skill", 200),
    ("PostToolUse-Edit", "tool_input subagent_type", "subagent_type", 200),
    ("PostToolUse-Edit", "tool_input model", "model", 200),
    ("PostToolUse-Edit", "tool_input file_path", "file_path", 4096),
]


@pytest.mark.parametrize(("label", "field", "attribute", "cap"), CAPS)
def test_texts_are_cut_at_their_caps(label: str, field: str, attribute: str, cap: int) -> None:
    text = "".join(chr(224 + i % 20) for i in range(cap + 50))
    outer, _, inner = field.partition(" ")
    for value in (text, text[:cap]):
        event = parse(changed(payloads.ALL[label], **{outer: {inner: value} if inner else value}))
        assert all_fields(event)[attribute] == text[:cap]


def test_the_words_around_long_pastes_are_kept() -> None:
    prompt = (
        f"Look: {payloads.pasted('a log ' * 500)}and {payloads.pasted('x' * 3000)} Fix the numbat"
    )
    event = parse(changed(payloads.USER_PROMPT_SUBMIT, prompt=prompt))
    kept = all_fields(event)
    start = ("a log " * 500)[:900]
    assert (
        kept["prompt"].replace("\n", "|").startswith(f'Look: ||<pasted_content id="3e35">|{start}')
    )
    assert kept["prompt"].endswith(" Fix the numbat")
    assert "xx" not in kept["prompt"]  # a token is not cut
    assert kept["whole_prompt"] == prompt


@pytest.mark.parametrize("pasted", ["\n" + "数" * 3000, '\n{"a":"b c",' + '"k":"v",' * 500])
def test_a_paste_without_blanks_is_kept_as_far_as_there_is_room(pasted: str) -> None:
    prompt = f"{payloads.pasted(pasted)} Fix the numbat"
    kept = all_fields(parse(changed(payloads.USER_PROMPT_SUBMIT, prompt=prompt)))["prompt"]
    assert 1900 < len(kept) <= 2000
    assert kept.endswith(" Fix the numbat")


@pytest.mark.parametrize(
    "entry",
    [
        '"k":"https://ann:Xq7vLm2p@db.example.com/numbats",',
        '"k":"https://ann:Xq7v,Lm;2p@db.example.com/numbats",',
        """"password":"Xq7v,Lm;2p(a'b",""",
    ],
)
def test_no_half_of_a_password_is_kept(entry: str) -> None:
    """Redaction recognizes a password by the host behind it, or by the whole value."""
    entries = '{"a":"b c",' + entry * 190
    kept = {
        redact_text(with_short_pastes(payloads.pasted(entries), most)) for most in range(800, 900)
    }
    assert not [each for each in kept if "Xq7v" in each]


@pytest.mark.parametrize("count", [1, 2, 9])
def test_pastes_are_kept_as_far_as_there_is_room(count: int) -> None:
    pastes = "".join(payloads.pasted(f"{number} a log " * 300) for number in range(count))
    event = parse(changed(payloads.USER_PROMPT_SUBMIT, prompt=f"{pastes} Fix the numbat"))
    kept = all_fields(event)["prompt"]
    assert 1900 < len(kept) <= 2000
    assert kept.endswith(" Fix the numbat") or count == 9


@pytest.mark.parametrize(
    "prompt",
    [
        f"{payloads.pasted('short ' * 300)} Fix it",
        "Why does <pasted_content id= break? " * 60,
        f"{payloads.pasted('short')} {'my words ' * 300}",
    ],
    ids=["a short prompt", "no paste", "a short paste"],
)
def test_other_prompts_keep_their_beginning(prompt: str) -> None:
    event = parse(changed(payloads.USER_PROMPT_SUBMIT, prompt=prompt))
    assert all_fields(event)["prompt"] == prompt[:2000]


@pytest.mark.parametrize(
    "id", [payloads.SESSION, "toolu_01Hq7callers", "a", "A.b_c-9", "x" * 128, "..a"]
)
def test_an_ordinary_id_is_kept(id: str) -> None:
    event = parse(changed(payloads.STOP, session_id=id))
    assert (event.session_id, event.problems) == (id, [])


@pytest.mark.parametrize(
    "id",
    [
        "x" * 129,
        "../../etc/passwd",
        "a b",
        "a\n",
        ".",
        "..",
        "é",
        "a/b",
        "\0",
        "\ud83d",
        "a" * 9999,
    ],
    ids=ascii,
)
def test_an_invalid_id_counts_as_missing_and_is_named(id: str) -> None:
    event = parse(json.dumps(changed(payloads.STOP, session_id=id)).encode())
    assert (event.session_id, event.problems) == ("", ["session_id is not a valid id"])


TOKENS = [
    *("sk-ant-api03-AAAABBBBCCCC", "ghp_0123456789abcdef", "gho_0123456789abcdef"),
    *("ghs_0123456789abcdef", "github_pat_11AAAA", "glpat-0123456789", "xoxb-1234-5678"),
    *("AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE", "AIzaSyA0123456789"),
]


@pytest.mark.parametrize("token", TOKENS)
def test_an_id_that_looks_like_a_token_is_kept_as_its_hash_only(token: str) -> None:
    event = parse(changed(payloads.POST_EDIT, session_id=token, tool_use_id=token))
    assert event.session_id == all_fields(event)["tool_use_id"]
    assert event.session_id.startswith("id-")
    assert token[4:] not in event.session_id
    other = parse(changed(payloads.POST_EDIT, session_id=token + "x"))
    assert other.session_id != event.session_id
    assert parse(changed(payloads.STOP, session_id=token)).session_id == event.session_id


@pytest.mark.parametrize("tool", ["a b", "x" * 201, "Edit\n", "\x1b", "\u202e"], ids=ascii)
def test_an_invalid_tool_name_is_replaced_by_invalid(tool: str) -> None:
    event = parse(changed(payloads.POST_EDIT, tool_name=tool))
    assert all_fields(event)["tool"] == "invalid"
    assert event.problems == ["tool_name is not valid"]


# ---- texts that are odd or broken
def test_half_an_emoji_and_nul_become_the_replacement_character() -> None:
    event = parse(rb'{"prompt":"a\ud83d b\ude00 c\u0000 d\ud83d\ude00"}')
    assert all_fields(event)["prompt"] == "a\ufffd b\ufffd c\ufffd d\U0001f600"
    assert all_fields(parse(rb'{"prompt":"a\u0000"}'))["prompt"] == "a\ufffd"


@pytest.mark.parametrize(("before", "after"), [(b"\xef\xbb\xbf", b""), (b" \r\n\t", b"\n\n")])
def test_a_byte_order_mark_and_white_space_are_skipped(before: bytes, after: bytes) -> None:
    event = parse(before + encoded(payloads.STOP) + after)
    assert (event.session_id, event.problems) == (payloads.SESSION, [])


def test_invalid_utf8_is_replaced_and_named() -> None:
    event = parse(b'{"prompt":"caf\xe9!","session_id":"s1"}')
    assert all_fields(event)["prompt"] == "caf\ufffd!"
    assert (event.session_id, event.problems) == ("s1", ["invalid UTF-8"])


@pytest.mark.parametrize("word", [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"9" * 5000])
def test_numbers_that_json_does_not_know_count_as_missing(word: bytes) -> None:
    data = b'{"hook_event_name":"PostToolUse","session_id":"s1","duration_ms":%b}' % word
    event = parse(data)
    assert event.session_id == "s1"
    assert all_fields(event)["duration_ms"] is None


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("depth", [900, 5_000, 200_000])
def test_deep_nesting_keeps_the_fields_before_it(opening: str, depth: int) -> None:
    data = b'{"session_id":"s1","tool_input":' + opening.encode() * depth
    event = parse(data)
    assert event.session_id == "s1"
    assert event.problems == ["not valid JSON"]


@pytest.mark.parametrize(
    "data", [b"", b"   ", b"null", b"7", b'"text"', b"[]", b'[{"a":1}]', b"nonsense", b"\0\0", b"}"]
)
def test_data_that_is_no_object_gives_none(data: bytes) -> None:
    assert parse_event("Stop", data) is None


@pytest.mark.parametrize(
    "rest",
    [b',}', b' "cwd":"/x"}', b',"cwd"}', b",cwd:1}", b',"cwd":"/x', b' , "cwd" : tru',
     b',"cwd":"\\u12"}', b',"cwd":"\\x"}', b",7:8}"],
)  # fmt: skip
def test_broken_json_keeps_the_fields_before_the_fault(rest: bytes) -> None:
    event = parse(b'{ "session_id" : "s1"' + rest)
    assert (event.session_id, event.cwd) == ("s1", "")
    assert event.problems == ["not valid JSON"]


@pytest.mark.parametrize("label", payloads.ALL)
def test_a_prefix_of_an_event_has_no_value_that_the_whole_lacks(label: str) -> None:
    payload = payloads.ALL[label]
    data = encoded(payload)
    name = payload["hook_event_name"]
    whole = all_fields(parse(data))
    nothing = ("", None, False, 0, {}, True)
    for end in range(0, len(data), 3):
        event = parse_event(name, data[:end])
        assert (event is None) == (end == 0)
        if event:
            assert "not valid JSON" in event.problems
            found = all_fields(event).items()
            wrong = [key for key, value in found if value not in (whole[key], *nothing)]
            assert not wrong, data[:end]


def test_a_prefix_keeps_every_value_that_is_whole() -> None:
    data = encoded(payloads.POST_EDIT)
    event = parse(data[: data.index(b'"tool_response"')])
    assert event.session_id == payloads.SESSION
    assert all_fields(event)["file_path"] == "/home/ana/shop/src/checkout.py"


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.binary(max_size=80))
def test_any_bytes_give_none_or_an_event(noise: bytes) -> None:
    for data in (noise, b"{" + noise, b'{"session_id":"s1",' + noise):
        event = parse_event("Stop", data)
        assert event is None or event.name in claude_code.KINDS
        assert parse_event("Stop", b"{") is not None


def test_equal_events_have_equal_digests_and_different_ones_do_not() -> None:
    first = parse(payloads.STOP)
    assert first.digest == parse(payloads.STOP).digest
    assert first.digest != parse(changed(payloads.STOP, extra=1)).digest
    assert len(first.digest) == 16


# ---- batches and questions
@pytest.mark.parametrize(
    ("answer", "was_not_run", "error"),
    [
        (payloads.NOT_READ, True, "File has not been read yet. Read it first."),
        ("Agent type 'x' not found.", False, "Agent type 'x' not found."),
        ("a <tool_use_error> in a file", False, "a <tool_use_error> in a file"),
        ([{"type": "text", "text": "hi"}], False, ""),
        (None, False, ""),
    ],
)
def test_a_call_that_claude_code_did_not_run_is_known_by_its_answer(
    answer: object, was_not_run: bool, error: str
) -> None:
    call = {"tool_name": "Edit", "tool_input": {}, "tool_use_id": "t", "tool_response": answer}
    event = parse(changed(payloads.POST_BATCH, tool_calls=[call, "odd", None]))
    assert isinstance(event, other_events.PostToolBatch)
    (found,) = event.calls
    assert (found.was_not_run, found.error) == (was_not_run, error)
