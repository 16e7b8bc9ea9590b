"""Codex CLI's transcripts are read as Claude Code's: shortened lines of 0.104 to 0.171."""

from typing import Any

import orjson

from hivepipe.transcripts.lines import read_line
from hivepipe.transcripts.totals import Totals
from tests.archive_scene import totals_of

SESSION = "01a205ab-d103-7783-8da7-0b4ab90fa79e"
AT = "2026-11-22T23:51:16.211Z"


def line(kind: str, payload: dict[str, Any]) -> bytes:
    return orjson.dumps({"timestamp": AT, "ordinal": 0, "type": kind, "payload": payload})


def item(kind: str, **fields: object) -> bytes:
    return line("response_item", {"type": kind, **fields})


def message(role: str, text: str) -> bytes:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": text}])


def output(call: str, text: str) -> bytes:
    return item("function_call_output", call_id=call, output=text)


USAGE = {
    "input_tokens": 1000,
    "cached_input_tokens": 300,
    "cache_write_input_tokens": 0,
    "output_tokens": 50,
    "reasoning_output_tokens": 10,
    "total_tokens": 1050,
}


def of_thread(answers: int) -> dict[str, int]:
    return {name: tokens * answers for name, tokens in USAGE.items()}


def usage_record(response: str) -> bytes:
    sums = {"thread_token_usage": of_thread(int(response[-1]))}
    payload = {"session_id": SESSION, "response_id": response, "usage": USAGE, **sums}
    return line("token_usage_record", payload)


def token_count(answers: int) -> bytes:
    info = {"total_token_usage": of_thread(answers), "last_token_usage": USAGE}
    return line("event_msg", {"type": "token_count", "info": info, "rate_limits": None})


SESSION_LINES = [
    line(
        "session_meta",
        {"id": SESSION, "cwd": "/home/ana/shop", "cli_version": "0.169.0", "source": "exec"},
    ),
    line("turn_context", {"cwd": "/home/ana/shop", "model": "gpt-5.5"}),
    message("developer", "<skills_instructions>"),
    message("user", "<environment_context>\n  <cwd>/home/ana/shop</cwd>"),
    message("user", "please work"),
    line("event_msg", {"type": "token_count", "info": {"total_token_usage": {}}}),
    item("function_call", name="exec_command", arguments='{"cmd": "ls /no"}', call_id="call_1"),
    usage_record("resp_1"),
    output("call_1", "Chunk ID: 1\nProcess exited with code 2\nOutput:\nls: cannot access\n"),
    item("custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="call_2"),
    usage_record("resp_2"),
    item("custom_tool_call_output", call_id="call_2", output="Exit code: 0\nOutput:\nSuccess.\n"),
    message("assistant", "Done."),
    usage_record("resp_3"),
]


def test_the_totals_of_a_session() -> None:
    found = totals_of(SESSION_LINES)
    assert (found.session, found.cwd) == (SESSION, "/home/ana/shop")
    assert (found.claude_version, found.models) == ("0.169.0", {"gpt-5.5": None})
    assert found.tools == {"Bash": [1, 0, 1], "apply_patch": [1, 1, 0]}
    assert (found.answer, found.outcome) == ("Done.", "success")
    assert found.messages == 4  # the user's, two calls, the answer
    assert found.broken_lines == 0


def test_tokens_from_the_cache_count_once() -> None:
    usages = totals_of(SESSION_LINES).take_usages()
    assert [each.message_id for each in usages] == ["resp_1", "resp_2", "resp_3"]
    assert {each.session for each in usages} == {SESSION}
    assert {each.rate.model for each in usages} == {"gpt-5.5"}
    tokens = usages[0].tokens
    assert (tokens.input, tokens.cache_read, tokens.output) == (700, 300, 50)


def test_tokens_that_are_reported_without_an_id_count_once() -> None:
    """Codex CLI before 0.154 repeats them; a later version continues the file."""
    no_answer = line("event_msg", {"type": "token_count", "info": None})
    old = [no_answer, *(token_count(answers) for answers in (1, 1, 2, 2))]
    new = [usage_record("resp_3"), token_count(3), usage_record("resp_4"), token_count(4)]
    first = totals_of([*SESSION_LINES[:5], *old])
    again = Totals.load(first.dump())
    assert again is not None
    for raw in new:
        again.feed(raw)
    usages = [*first.take_usages(), *again.take_usages()]
    assert [each.tokens.output for each in usages] == [50] * 4
    assert len({each.key for each in usages}) == 4
    assert {each.session for each in usages} == {SESSION}
    assert {each.rate.model for each in usages} == {"gpt-5.5"}
    (counted,) = again.message_counts.sums().values()
    assert (counted.input, counted.cache_read, counted.output) == (2800, 1200, 200)


def test_a_report_with_an_id_stands_for_the_reports_without() -> None:
    """This holds even if the report lacks the thread's sum, or another answer's report follows."""
    records = [
        line("token_usage_record", {"response_id": name, "usage": USAGE}) for name in ("a", "b")
    ]
    counts = [token_count(1), token_count(2)]
    turn = line("turn_context", {"model": "gpt-5.5"})
    for new in ([*records, *counts], [records[0], counts[0], records[1], counts[1]]):
        usages = totals_of([turn, *new, turn, token_count(2)]).take_usages()
        assert [each.message_id for each in usages] == ["a", "b"]
        usages = totals_of([turn, *new, turn, token_count(3)]).take_usages()
        assert len(usages) == 3  # an earlier version continues the file


def test_lines_that_a_fork_copied_do_not_count() -> None:
    """Codex CLI copies them with new times; the ids of turns and sessions ascend with time."""
    fork, by_parent, own = (
        f"01a21cbe-{n}-73b2-8e05-0e1b5d4f6a70" for n in ("6963", "5dff", "69e6")
    )
    parent = [
        line("session_meta", {"id": SESSION}),
        line("event_msg", {"type": "task_started", "turn_id": by_parent}),
        message("user", "please work"),
        *(token_count(answers) for answers in (1, 1, 2)),
    ]
    mine = [
        line("event_msg", {"type": "task_started", "turn_id": own}),
        line("turn_context", {"turn_id": own, "model": "gpt-5.5"}),
        message("user", "own work"),
        *(token_count(answers) for answers in (2, 3, 3)),
    ]
    opened = line("session_meta", {"id": fork, "forked_from_id": SESSION, "cwd": "/home/ana/shop"})
    for copied in (parent, parent[2:], [opened, *parent]):
        found = totals_of([opened, *copied, *mine])
        assert [each.tokens.output for each in found.take_usages()] == [50]
        assert (found.session, found.cwd, found.messages) == (fork, "/home/ana/shop", 1)


def test_a_fork_without_ids_of_turns_counts() -> None:
    opened = line("session_meta", {"id": SESSION, "forked_from_id": "another"})
    turn = line("turn_context", {"model": "gpt-5.5"})
    assert len(totals_of([opened, turn, token_count(1)]).take_usages()) == 1


def test_texts_that_codex_writes_as_the_user_are_no_messages() -> None:
    skill = "<skill>\n<name>x</name>"
    assert totals_of([message("user", skill), message("user", "use $x")]).messages == 1
    for kind, messages in (("skills.selected_skill_instructions", 0), ("user.text", 1)):
        metadata = {"content_item_kinds": [kind]}
        content = [{"type": "input_text", "text": "<skill>"}]
        raw = item(
            "message", role="user", content=content,
            internal_chat_message_metadata_passthrough=metadata,
        )  # fmt: skip
        assert totals_of([raw]).messages == messages, kind


def test_an_aborted_turn_counts_as_interrupted_and_a_compaction_is_counted() -> None:
    aborted = line("event_msg", {"type": "turn_aborted", "reason": "interrupted"})
    assert totals_of([*SESSION_LINES[:5], aborted]).outcome == "interrupted"
    assert totals_of([*SESSION_LINES, line("compacted", {"message": "So far."})]).compactions == 1


ODD = [
    {},
    {"type": "message"},
    {"type": "message", "role": "user", "content": "text"},
    {"type": "message", "role": "assistant", "content": [None, 7, {"text": 7}]},
    {"type": "function_call"},
    {"type": "function_call", "name": 7, "arguments": "no json"},
    {"type": "function_call", "name": "shell", "arguments": "[1]"},
    {"type": "function_call_output", "output": {"content": [1]}},
    {"type": "custom_tool_call_output", "call_id": 7},
    {"type": ["a list"]},
]


def test_an_odd_payload_breaks_nothing() -> None:
    for payload in ODD:
        for kind in ("response_item", "session_meta", "turn_context", "token_usage_record"):
            assert totals_of([line(kind, payload)]).lines == 1, payload
    for output in (b'["\\ud83d"]', b"[" * 300 + b"]" * 300):
        raw = item("function_call_output", call_id="call_1", output=0).replace(b":0}", b":%s}")
        found = read_line(raw % output)
        assert found is not None
        assert found["message"]["content"][0]["content"] == "", output[:20]


def test_invalid_token_counts_are_zero() -> None:
    for usage in (None, [], {"input_tokens": "many"}, {"input_tokens": -1}):
        raw = line("token_usage_record", {"response_id": "r", "usage": usage})
        assert all(not any(each.tokens) for each in totals_of([raw]).take_usages()), usage


def test_a_line_of_claude_code_stays_as_it_is() -> None:
    record = {"type": "user", "payload": {"type": "message"}, "message": {"content": "hello"}}
    assert read_line(orjson.dumps(record)) == record
