"""A line of a transcript as readable pieces: messages, calls, shortened answers and diffs."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivepipe.reading.pieces import (
    AGENT,
    CALL,
    CLAUDE,
    FAILURE,
    LONGEST_LABEL,
    MOST_CHARS,
    MOST_DIFF_LINES,
    NOTE,
    RESULT,
    THINKING,
    USER,
    Piece,
    pieces_of,
)
from tests.fuzz.inputs import fuzzed, values

BY_TEAMMATE = "Another Claude session sent a message:\n<teammate-message>Done</teammate-message>"


def parsed(kind: str, *content: Any, **more: Any) -> list[Piece]:
    only = content[0] if len(content) == 1 and isinstance(content[0], str) else [*content]
    line = {"type": kind, "timestamp": "2026-01-10T00:00:00Z", "message": {"content": only}}
    return [*pieces_of({**line, **more})]


def short(pieces: list[Piece]) -> list[tuple[str, str]]:
    return [(piece.kind, piece.text) for piece in pieces]


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "toolu_1", "name": name, "input": arguments}


def answer(content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "toolu_1", "content": content, **more}


@pytest.mark.parametrize(
    ("pieces", "expected_value"),
    [
        (parsed("user", "fix it"), [(USER, "fix it")]),
        (parsed("user", "skip", isMeta=True), [(NOTE, "skip")]),
        (parsed("user", "so far", isCompactSummary=True), [(NOTE, "so far")]),
        (parsed("user", "<task-notification>x"), [(NOTE, "<task-notification>x")]),
        (parsed("user", BY_TEAMMATE), [(NOTE, BY_TEAMMATE)]),
        (parsed("user", "Go on", origin={"kind": "plugin"}), [(NOTE, "Go on")]),
        (
            parsed("user", "[Request interrupted by user]"),
            [(NOTE, "[Request interrupted by user]")],
        ),
        (parsed("user", QUOTED := BY_TEAMMATE.replace("<", "")), [(USER, QUOTED)]),
        (parsed("user", {"type": "image"}), [(USER, "[image]")]),
        (parsed("user", {"type": "document"}), [(USER, "[document]")]),
        (
            parsed("user", answer([{"type": "tool_reference", "tool_name": "WebFetch"}])),
            [(RESULT, "[WebFetch]")],
        ),
        (
            parsed(
                "assistant",
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "I look."},
                call("Read", file_path="a.py"),
            ),
            [(THINKING, "hm"), (CLAUDE, "I look."), (CALL, "Read a.py")],
        ),
        (parsed("assistant", "500", isApiErrorMessage=True), [(FAILURE, "500")]),
        (
            parsed("assistant", call("Task", subagent_type="Explore", description="look")),
            [(CALL, "Task Explore look")],
        ),
        (parsed("assistant", call("Bash", command="a\n  b")), [(CALL, "Bash a b")]),
        (
            parsed("assistant", call("ReadMcpResourceTool", server="lib", uri="lib://note")),
            [(CALL, "ReadMcpResourceTool lib://note")],
        ),
        (parsed("assistant", call("New")), [(CALL, "New")]),
        (parsed("user", answer("done")), [(RESULT, "done")]),
        (parsed("user", answer("no", is_error=True)), [(FAILURE, "no")]),
        (parsed("user", answer("no"), toolDenialKind="user"), [(FAILURE, "no")]),
        (
            parsed("user", answer([{"type": "text", "text": "a"}, {"type": "image"}])),
            [(RESULT, "a\n[image]")],
        ),
        (
            parsed("user", answer("done"), toolUseResult={"agentId": "a41c"}),
            [(RESULT, "done"), (AGENT, "a41c")],
        ),
        (parsed("summary", "x"), []),
        (parsed("api-request-shape", "x"), []),
    ],
)
def test_a_line_is_split_into_pieces(
    pieces: list[Piece], expected_value: list[tuple[str, str]]
) -> None:
    assert short(pieces) == expected_value
    assert {piece.at for piece in pieces} <= {"2026-01-10T00:00:00.000Z"}


@pytest.mark.parametrize(
    ("arguments", "diff"),
    [
        ({"old_string": "a\nb", "new_string": "a\nc"}, ("  a", "- b", "+ c")),
        ({"old_string": "", "new_string": "new"}, ("+ new",)),
        ({"content": "one\ntwo"}, ("+ one", "+ two")),
        (
            {"edits": [{"old_string": "a", "new_string": "b"}, 7, {"new_string": "c"}]},
            ("- a", "+ b", "+ c"),
        ),
        ({"notebook_path": "n.ipynb", "new_source": "x = 1"}, ("+ x = 1",)),
        ({"command": "ls"}, ()),
    ],
)
def test_an_edit_has_a_diff(arguments: dict[str, Any], diff: tuple[str, ...]) -> None:
    (piece,) = parsed("assistant", call("Edit", **arguments))
    assert piece.diff == diff


def test_texts_titles_and_diffs_are_bounded() -> None:
    long = "x" * (MOST_CHARS + 5)
    assert parsed("user", long)[0].text.endswith("\n[5 more characters]")
    (piece,) = parsed("assistant", call("Write", file_path="/a/b" * 99, content="y\n" * 9999))
    assert len(piece.diff) == MOST_DIFF_LINES + 1
    assert piece.text.startswith("Write …")
    assert piece.text.endswith("/a/b")
    assert len(piece.text) < LONGEST_LABEL + 20
    old, new = ("\n".join(f"{word} {n}" for n in range(20_000)) for word in ("old", "new"))
    (piece,) = parsed("assistant", call("Edit", old_string=old, new_string=new))
    assert len(piece.diff) == MOST_DIFF_LINES + 1


@given(values, st.sampled_from(["type", "message", "content", "block", "timestamp"]))
@fuzzed
def test_any_value_in_a_line_is_accepted(value: Any, place: str) -> None:
    block = {"type": "tool_use", "id": value, "name": value, "input": value}
    lines: list[Any] = [
        {"type": kind, "message": {"content": [block, {**answer(value), "is_error": value}]}}
        for kind in ("assistant", "user")
    ]
    lines.append({"type": "user", "message": {"content": [{"type": "text", "text": value}]}})
    lines.append({"type": "assistant", "message": {"content": [call("Edit", edits=[value])]}})
    if place == "content":
        lines.append({"type": "user", "message": {"content": value}})
    else:
        lines.append({"type": "user", "message": {"content": [value]}, place: value})
    for line in lines:
        for piece in pieces_of(json.loads(json.dumps(line))):
            piece.text.encode()
            "".join(piece.diff).encode()


COMMAND = "<command-message>acme:notes</command-message>\n<command-name>/acme:notes</command-name>"


@pytest.mark.parametrize(
    ("text", "expected_value"),
    [
        (COMMAND, (USER, "/acme:notes")),
        (f"{COMMAND}\n<command-args>v3.2 <now></command-args>", (USER, "/acme:notes v3.2 <now>")),
        (
            "<command-name>test</command-name><command-contents>it all</command-contents>",
            (USER, "/test\nit all"),
        ),
        ("<command-args>v3.2</command-args>", (USER, "<command-args>v3.2</command-args>")),
        ("What is <command-name>/x</command-name>?", (USER, ...)),
        ("<command-name>" * 100_000, (USER, ...)),
        ("<local-command-stdout>3 files\n</local-command-stdout>", (NOTE, "3 files\n")),
        ("Caveat: The messages below were generated by the user while running", (NOTE, ...)),
        ("<bash-input>ls *.c</bash-input>", (USER, "! ls *.c")),
        ("<bash-input> is a tag", (USER, "<bash-input> is a tag")),
        ("<bash-stdout>a.c</bash-stdout><bash-stderr></bash-stderr>", (NOTE, "a.c")),
        ("<bash-stdout>&lt;ana@b.c&gt; &amp;lt;</bash-stdout>", (NOTE, "<ana@b.c> &lt;")),
    ],
)
def test_a_command_is_shown_as_the_user_typed_it(
    text: str, expected_value: tuple[str, Any]
) -> None:
    kind, shown = expected_value
    expected = text if shown is ... else shown
    if len(text) > MOST_CHARS:
        expected = text[:MOST_CHARS]
    (piece,) = parsed("user", text)
    assert (piece.kind, piece.text[:MOST_CHARS]) == (kind, expected)


@pytest.mark.parametrize(
    ("arguments", "expected_value"),
    [
        ({"command": "ls"}, ""),
        ({"command": "ls", "description": "List", "run": True}, "description: List\nrun: true"),
        ({"command": "x" * 300}, f"command: {'x' * 300}"),
        (
            {"todos": [{"content": "mend", "status": "pending", "id": "1"}, "broken", [1]]},
            'todos: \n[pending] mend\n"broken"\n[1]',
        ),
        ({"todos": [{"content": "mend"}]}, 'todos: [\n  {\n    "content": "mend"\n  }\n]'),
        ({"size": 1 << 80}, "size: …"),
        ({"file_path": "a.py", "old_string": "1", "new_string": "2"}, ""),  # the diff has them
    ],
)
def test_a_call_has_the_arguments_that_its_title_lacks(
    arguments: dict[str, Any], expected_value: str
) -> None:
    (piece,) = parsed("assistant", call("Tool", **arguments))
    assert piece.arguments == expected_value
