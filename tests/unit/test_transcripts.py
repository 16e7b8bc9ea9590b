"""Totals read from transcripts equal sums made by hand, however the lines arrive."""

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hivepipe.costs.price_table import built_in
from hivepipe.costs.tokens import Tokens
from hivepipe.transcripts.counted_messages import OPEN_MESSAGES
from hivepipe.transcripts.description import describe
from hivepipe.transcripts.totals import Totals
from tests.archive_scene import totals_of

FOLDER = Path(__file__).resolve().parents[1] / "transcripts"
MAIN = [
    "edge_cases",
    "representative_messages",
    "session_b",
    "todowrite_examples",
    "fork/parent",
    "fork/fork",
    "background/main",
    "compaction/main",
]
PRICES = built_in()


def lines_of(name: str) -> list[bytes]:
    return (FOLDER / f"{name}.jsonl").read_bytes().splitlines(keepends=True)


def totals_of_records(*lines: Any) -> Totals:
    return totals_of(json.dumps(line).encode() for line in lines)


def subagents_of(name: str) -> dict[str, Totals]:
    paths = sorted((FOLDER / name).parent.glob("subagents/*.jsonl")) if "/" in name else []
    names = [str(path.relative_to(FOLDER)).removesuffix(".jsonl") for path in paths]
    return {name: totals_of(lines_of(name)) for name in names}


def expected(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.expected.json").read_text())


@pytest.mark.parametrize("name", MAIN)
def test_the_costs_of_a_transcript_equal_a_sum_by_hand(name: str) -> None:
    main = totals_of(lines_of(name))
    subagents = subagents_of(name)
    found = describe(main, PRICES, subagents.values())
    assert found == expected(name)
    for subagent, totals in subagents.items():
        assert describe(totals, PRICES) == expected(subagent)
    if name == "representative_messages":
        # The predecessor looked for fields that real lines do not have, and found nothing.
        for key in ("message_count", "duration_seconds", "tools", "files_modified", "cost_usd"):
            assert found[key], key


def test_an_mcp_prompt_is_no_skill() -> None:
    """Claude Code 2.1.332 names both in one field; hooks report them as different expansions."""
    message = {"id": "msg_1", "role": "assistant", "content": [{"type": "text", "text": "Done."}]}
    answers = [
        {"type": "assistant", "uuid": name, "message": message, "attributionSkill": name}
        for name in ("mcp__lib__review", "greet")
    ]
    assert describe(totals_of_records(*answers), PRICES)["skills_used"] == ["greet"]


# ---- totals that are stored and continued
def fed_in_pieces(lines: list[bytes], cuts: list[int]) -> Totals:
    totals = Totals()
    for number, line in enumerate(lines):
        if number in cuts:
            loaded = Totals.load(totals.dump())
            assert loaded is not None
            totals = loaded
        totals.feed(line)
    return totals


SUBAGENTS = [name for main in MAIN for name in subagents_of(main)]


@pytest.mark.parametrize("name", MAIN + SUBAGENTS)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_totals_continued_at_any_line_are_the_same(name: str, data: st.DataObject) -> None:
    lines = lines_of(name)
    cuts = data.draw(st.lists(st.integers(0, len(lines)), max_size=8))
    whole, pieces = totals_of(lines), fed_in_pieces(lines, cuts)
    assert pieces == whole
    assert pieces.dump() == whole.dump()


def test_a_year_of_two_digits_can_be_read_again() -> None:
    totals = totals_of([b'{"type":"user","timestamp":"0099-01-02T03:04:05.678Z"}\n'])
    assert totals.first == "0099-01-02T03:04:05.678Z"
    assert describe(totals, PRICES)["duration_seconds"] == 0


def test_a_dump_of_another_version_or_a_broken_one_is_not_used() -> None:
    dumped = json.loads(Totals().dump())
    assert Totals.load(json.dumps(dumped)) == Totals()
    assert Totals.load(json.dumps([dumped[0] + 1, dumped[1]])) is None
    assert Totals.load(b"{") is None


# ---- long transcripts
def answer(number: int, id: str, output: int, *content: Any, **more: Any) -> dict[str, Any]:
    used = {"input_tokens": 2, "output_tokens": output, "cache_read_input_tokens": 1000}
    message = {"id": id, "model": "claude-opus-5", "content": content, "usage": used}
    stamp = f"2026-11-21T{number // 3600:02d}:{number // 60 % 60:02d}:{number % 60:02d}.000Z"
    return {
        "type": "assistant",
        "uuid": f"uuid-{id}-{number}",
        "requestId": f"req-{id}",
        "timestamp": stamp,
        "message": message,
    } | more


def edits(many: int) -> Iterator[bytes]:
    """Yield the lines of edits: per edit a message of three lines and a result.

    Every tenth edit fails.
    """
    for number in range(many):
        call = f"toolu_{number}"
        path = f"/p/file{number % 50}.py"
        use = {"type": "tool_use", "id": call, "name": "Edit", "input": {"file_path": path}}
        text = {"type": "text", "text": f"Edit {number}"}
        id = f"msg_{number}"
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call, "content": "ok"}
        if number % 10 == 9:
            result |= {"is_error": True}
        for line in (
            answer(3 * number, id, 1, {"type": "thinking", "thinking": ""}),
            answer(3 * number + 1, id, 1, text),
            answer(3 * number + 2, id, 100 + number, use),
            {"type": "user", "uuid": f"r{number}", "message": {"content": [result]}},
        ):
            yield json.dumps(line).encode()


def test_a_session_of_a_thousand_edits() -> None:
    large = totals_of(edits(1000))
    found = describe(large, PRICES)
    assert found["message_count"] == 1000
    assert found["tools"] == {"Edit": {"calls": 1000, "ok": 900, "failed": 100}}
    assert len(found["files_modified"]) == 45  # every edit of five of the 50 files fails
    assert found["duration_seconds"] == 2999
    output = 1000 * 100 + 999 * 1000 // 2
    assert found["tokens"] == Tokens(2000, output, 1_000_000)._asdict()
    # 5, 25 and 0.50 dollars a million
    assert found["cost_usd"] == pytest.approx((2000 * 5 + output * 25 + 1_000_000 * 0.5) / 1e6)
    # A dump is written after every turn: it must not grow like the transcript.
    small = totals_of(edits(100)).dump()
    assert len(large.dump()) - len(small) < 900 * 12
    assert len(small) < 12_000


def test_a_file_is_listed_once_by_the_path_that_was_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    raw = []
    for number, (tool, asked, written) in enumerate(
        [
            ("Write", "/shop/a.py", {"filePath": "/shop/a.py"}),
            ("Edit", "./a.py", {"filePath": "./a.py"}),
            ("Edit", "../shop/a.py", {}),
            ("Write", "/shop/secret.py", {"filePath": "/shop/public.py"}),  # replaced by a hook
            ("NotebookEdit", "n.ipynb", {"notebook_path": "/shop/n.ipynb"}),
            ("NotebookEdit", "n.ipynb", None),
            ("Write", "~/shop/b.py", {"filePath": "~/shop/b.py"}),
        ]
    ):
        name = "notebook_path" if tool == "NotebookEdit" else "file_path"
        call = {"type": "tool_use", "id": f"t{number}", "name": tool, "input": {name: asked}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}"}
        line = {"type": "user", "cwd": "/shop", "message": {"content": [result]}}
        raw += [answer(number, f"m{number}", 1, call), line | {"toolUseResult": written}]
    found = describe(totals_of(json.dumps(line).encode() for line in raw), PRICES)
    files = ["/shop/a.py", "/shop/public.py", "/shop/n.ipynb", "/home/ann/shop/b.py"]
    assert found["files_modified"] == files


def test_the_time_is_linear_in_calls_and_files() -> None:
    many, at_once = 30_000, 200
    calls = [
        {"type": "tool_use", "id": f"t{n}", "name": "Write", "input": {"file_path": f"/p/{n}"}}
        for n in range(many)
    ]
    raw = []
    for start in range(0, many, at_once):
        some = calls[start : start + at_once]
        results = [{"type": "tool_result", "tool_use_id": call["id"]} for call in some]
        raw.append(json.dumps(answer(0, "one message", 1, *some)).encode())
        raw.append(json.dumps({"type": "user", "message": {"content": results}}).encode())
    begun = time.thread_time()
    totals = totals_of(raw)
    assert time.thread_time() - begun < 1
    assert len(describe(totals, PRICES)["files_modified"]) == many
    assert Totals.load(totals.dump()) == totals


@pytest.mark.parametrize("again", [1, 2, 5])
def test_a_conversation_appended_to_its_own_file_counts_once(again: int) -> None:
    prompt = {"type": "user", "uuid": "p", "message": {"content": "Go on"}}
    lines = [*edits(40), json.dumps(prompt).encode()]
    once, often = totals_of(lines), totals_of(lines * (again + 1))
    for totals in (once, often):
        totals.lines = 0
    assert describe(often, PRICES) == describe(once, PRICES)


def test_of_several_records_of_a_message_the_one_with_most_output_counts() -> None:
    """Neither their order nor lines of parallel agents in between matter."""
    others = [answer(9, f"msg_other{n}", 1) for n in range(OPEN_MESSAGES - 1)]
    records = [answer(1, "msg_a", 7), answer(2, "msg_a", 300), answer(3, "msg_a", 12)]
    for seed in range(10):
        shuffled = [*records, *others]
        random.Random(seed).shuffle(shuffled)
        totals = totals_of_records(*shuffled)
        (tokens,) = totals.message_counts.sums().values()
        assert tokens.output == 300 + len(others)
        assert {usage.tokens.output for usage in totals.take_usages()} == {300, 1}


def test_messages_replayed_by_a_subagent_are_not_its_own() -> None:
    """The agent of a compaction replays the whole conversation before its own messages."""
    many = 3 * OPEN_MESSAGES
    records = [answer(number, f"msg_{number}", 100) for number in range(many)]
    own = answer(many, "msg_own", 7)
    main = totals_of_records(*records)
    subagent = totals_of_records(*(line | {"isSidechain": True} for line in (*records, own)))
    found = describe(main, PRICES, [subagent, subagent])
    assert found["tokens"]["output"] == 100 * many + 2 * 7
    assert describe(subagent, PRICES)["tokens"]["output"] == 100 * many + 7
    assert Totals.load(subagent.dump()) == subagent


def test_usages_are_taken_once_and_copies_of_a_fork_are_replays() -> None:
    totals = totals_of(lines_of("fork/parent"))
    assert [usage.message_id for usage in totals.take_usages()] == ["msg_P1", "msg_P2"]
    assert totals.take_usages() == []
    usages = totals_of(lines_of("fork/fork")).take_usages()
    (copied,) = [usage for usage in usages if usage.message_id == "msg_P2"]
    assert copied.session == "aaaaaaaa-0000-4000-8000-000000000001"
    assert copied.is_replay


def test_messages_copied_by_a_fork_without_a_terminal_are_its_parents() -> None:
    """With `claude -p --resume ID --fork-session` no line names its origin, but all are older."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}
    done = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
    copied = [
        user_prompt(1, "Please work"),
        answer(2, "msg_P1", 7, call),
        user_prompt(3, [done]),
        answer(4, "msg_P2", 7, {"type": "text", "text": "Done."}),
    ]
    own = [user_prompt(91, "Go on"), answer(95, "msg_F", 5, {"type": "text", "text": "More."})]
    opening = {"type": "queue-operation", "operation": "enqueue", "timestamp": at(90)}
    lines = [json.dumps(line).encode() for line in ({"type": "mode"}, opening, *copied, *own)]
    totals = fed_in_pieces(lines, [3, 7])
    found = describe(totals, PRICES)
    assert (found["started_at"], found["duration_seconds"]) == (at(90), 5)
    assert (found["message_count"], found["tools"], found["tokens"]["output"]) == (2, {}, 5)
    reported = [usage.message_id for usage in totals_of(lines).take_usages()]
    assert reported == ["msg_P1", "msg_P2", "msg_F"]  # the parent's own file may be gone


def test_a_call_that_the_user_stopped_has_neither_failed_nor_succeeded() -> None:
    """No hook reports its end, so the session does not count it as failed either."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "make"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "No", "is_error": True}
    stopped = {**user_prompt(3, [result]), "toolUseResult": "User rejected tool use"}
    for line, counts in ((stopped, (1, 0, 0)), (user_prompt(3, [result]), (1, 0, 1))):
        totals = totals_of_records(user_prompt(1, "Build it"), answer(2, "msg_1", 7, call), line)
        assert tuple(describe(totals, PRICES)["tools"]["Bash"].values()) == counts


def test_denied_calls_of_a_turn_that_a_hook_ended_have_not_failed() -> None:
    """Claude Code sends no PostToolBatch then, so the session counts no failure either."""
    calls = [
        {"type": "tool_use", "id": f"toolu_{n}", "name": "Bash", "input": {"command": "make"}}
        for n in range(4)
    ]
    denied = [
        {**user_prompt(3 + n, [{"type": "tool_result", "tool_use_id": f"toolu_{n}",
                                "content": "No", "is_error": True}]),
         "toolDenialKind": "permission-rule"}
        for n in range(4)
    ]  # fmt: skip
    asked = (user_prompt(1, "Build it"), answer(2, "msg_1", 7, *calls[:3]))
    again = (user_prompt(8, "Go on"), answer(9, "msg_2", 7, calls[3]), denied[3])
    for event, failed in (("PreToolUse", 0), ("PostToolUse", 0), ("PostToolBatch", 3), ("Stop", 3)):
        stopped = {"type": "hook_stopped_continuation", "hookEvent": event}
        stop = {"type": "attachment", "uuid": "u-stop", "attachment": stopped}
        records = (*asked, *denied[:2], stop, denied[2], *again, stop)  # the last one is a copy
        lines = [json.dumps(record).encode() for record in records]
        for end, counts in ((6, (3, 0, failed)), (10, (4, 0, failed + 1))):
            totals = fed_in_pieces(lines[:end], [4, 5, 9])
            assert tuple(describe(totals, PRICES)["tools"]["Bash"].values()) == counts, event


def test_a_clock_that_is_set_back_makes_no_copies() -> None:
    opening = {"type": "queue-operation", "operation": "enqueue", "timestamp": at(90)}
    records = {"type": "text", "text": "Done."}
    totals = totals_of_records(
        opening, user_prompt(91, "Please work"), answer(2, "msg_1", 7, records)
    )
    assert describe(totals, PRICES)["tokens"]["output"] == 7


def at(secs: int) -> str:
    return f"2026-11-21T00:{secs // 60:02d}:{secs % 60:02d}.000Z"


def user_prompt(secs: int, content: Any) -> dict[str, Any]:
    message = {"role": "user", "content": content}
    return {"type": "user", "uuid": f"user-{secs}", "timestamp": at(secs), "message": message}


# ---- malformed lines
MALFORMED = [
    *(b"", b"\n", b"nonsense", b"\xff\xfe", b"[" * 100_000, b'{"type": "assistant"}'),
    b'{"type": "assistant", "message": {"usage": []}}',
    b'{"type": "assistant", "message": {"id": 1, "content": [1, {"type": "tool_use"}]}}',
    b'{"type": "user", "message": {"content": [{"type": "tool_result"}]}}',
    b'{"type": ["user"], "uuid": {}, "timestamp": "yesterday", "forkedFrom": "x"}',
    b'{"type": "ai-title", "aiTitle": 7}',
    b'{"type": "user", "timestamp": "0001-01-01T00:00:00+14:00", "message": {"content": "x"}}',
]


@pytest.mark.parametrize("line", MALFORMED, ids=range(len(MALFORMED)))
def test_a_malformed_line_is_ignored(line: bytes) -> None:
    totals = totals_of([line, *lines_of("session_b")])
    assert totals.answer.startswith("Indeed!")
    assert Totals.load(totals.dump()) == totals


def test_invalid_token_counts_are_zero() -> None:
    used = {
        "input_tokens": -5,
        "output_tokens": True,
        "cache_read_input_tokens": 1 << 40,
        "cache_creation_input_tokens": 7,
        "cache_creation": {"ephemeral_1h_input_tokens": 3},
    }
    line = answer(1, "msg_a", 1)
    line["message"]["usage"] = used
    totals = totals_of_records(line)
    (tokens,) = totals.message_counts.sums().values()
    assert tokens == Tokens(0, 0, 0, 4, 3)


# ---- summaries, titles and lines of other transcripts
def summary(words: str, **more: str) -> dict[str, str]:
    return {"type": "summary", "summary": words, **more}


def message(uuid: str, kind: str = "user") -> dict[str, Any]:
    return {"type": kind, "uuid": uuid, "message": {"role": kind, "content": f"said {uuid}"}}


@pytest.mark.parametrize(
    ("lines", "title"),
    [
        ([summary("of another", leafUuid="elsewhere"), message("a")], ""),
        ([summary("of nobody"), message("a")], ""),
        ([message("a"), message("b"), summary("its own", leafUuid="a")], "its own"),
        ([summary("copied with it", leafUuid="b"), message("a"), message("b")], "copied with it"),
        (
            [summary("of another", leafUuid="x"), message("a"), summary("its own", leafUuid="a")],
            "its own",
        ),
    ],
)
def test_a_summary_is_the_title_of_the_transcript_whose_line_it_names(
    lines: list[Any], title: str
) -> None:
    totals = totals_of_records(*lines)
    assert describe(totals, PRICES)["title"] == title
    pieces = fed_in_pieces([json.dumps(line).encode() for line in lines], [1])
    assert pieces.titles == totals.titles


def test_summaries_of_other_transcripts_take_little_space() -> None:
    many = [summary("w" * 500, leafUuid=f"l{number}") for number in range(1500)]
    own = [message(f"u{number}") for number in range(1500)]
    assert len(totals_of_records(*many, *own).dump()) < 45_000


def test_requests_of_the_harness_are_not_counted() -> None:
    shape = {"type": "api-request-shape", "sessionId": "other", "cwd": "/x", "tools": ["t"] * 99}
    totals = totals_of_records(shape, message("a"), {"type": "api-request-blob", "uuid": "b"})
    assert (totals.lines, totals.session, totals.cwd) == (1, "", "")


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        ("<command-name>/cost</command-name>", "success"),
        ("<command-name>/output-style</command-name>", "success"),
        ("<command-name>/goal</command-name>", "unknown"),
        ("<command-message>review</command-message>\n<command-name>/review<", "unknown"),
    ],
)
def test_a_command_without_the_model_keeps_the_outcome(words: str, outcome: str) -> None:
    content = [{"type": "text", "text": "done"}]
    answer = {"id": "m", "stop_reason": "end_turn", "content": content}
    done = {**message("a", "assistant"), "message": {**answer, "role": "assistant"}}
    command = message("b")
    command["message"]["content"] = words
    output = message("c")
    output["message"]["content"] = "<local-command-stdout>Total cost: $1</local-command-stdout>"
    assert totals_of_records(done, command, output).outcome == outcome


def test_a_shell_command_of_the_user_keeps_the_outcome() -> None:
    content = [{"type": "text", "text": "done"}]
    answer = {"id": "m", "stop_reason": "end_turn", "content": content, "role": "assistant"}
    lines = [message("b"), message("c")]
    lines[0]["message"]["content"] = "<bash-input>ls</bash-input>"
    lines[1]["message"]["content"] = "<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>"
    done = {**message("a", "assistant"), "message": answer}
    assert totals_of_records(done, *lines).outcome == "success"


@pytest.mark.parametrize("name", ["Task", "Agent"])
def test_a_call_names_the_type_of_its_subagent(name: str) -> None:
    given_input = {"subagent_type": "Explore"}
    call = {"type": "tool_use", "id": "toolu_1", "name": name, "input": given_input}
    user_prompt = {"type": "assistant", "uuid": "a", "message": {"id": "m", "content": [call]}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}
    result_record = {"type": "user", "uuid": "b", "message": {"content": [result]}}
    result_record["toolUseResult"] = {"agentId": "a41c09be"}
    assert totals_of_records(user_prompt, result_record).agents == {"a41c09be": "Explore"}
    assert totals_of_records(user_prompt, {**result_record, "toolUseResult": "done"}).agents == {}


def test_titles_are_returned_once_with_the_number_of_their_line() -> None:
    lines = [
        {"type": "ai-title", "aiTitle": "Mend it", "sessionId": "s-1"},
        {"type": "custom-title", "customTitle": "Mine", "sessionId": "s-1"},
        {"type": "ai-title", "aiTitle": "Mend \ud83d all", "sessionId": "s-1"},
    ]
    totals = totals_of_records(*lines)
    facts = totals.take_facts()
    assert facts.session == "s-1"
    assert facts.titles == {"ai-title": ("Mend \ufffd all", 3), "custom-title": ("Mine", 2)}
    assert not totals.take_facts()
    assert Totals.load(totals.dump()) == totals
