"""What of a transcript's line can be found."""

import json
from typing import Any

import pytest

from hivepipe.archive.search.passages import passage_of


def said(kind: str, content: Any, **more: Any) -> bytes:
    line = {
        "type": kind,
        "timestamp": "2026-11-21T01:00:00.123Z",
        "message": {"role": kind, "content": content},
        **more,
    }
    return json.dumps(line).encode()


@pytest.mark.parametrize(
    ("line", "who", "words"),
    [
        (said("user", "plain words"), "user", "plain words"),
        (said("user", [{"type": "text", "text": "in a block"}]), "user", "in a block"),
        (said("assistant", [{"type": "thinking", "thinking": "hm"}]), "claude", "hm"),
        (
            said(
                "assistant",
                [
                    {"type": "text", "text": "I edit."},
                    {
                        "type": "tool_use",
                        "name": "Edit",
                        "id": "toolu_01AbC",
                        "input": {"file_path": "src/a.py", "edits": [{"new_string": "x = 1"}]},
                    },
                ],
            ),
            "claude",
            "I edit.\nEdit\nsrc/a.py\nx = 1\ntoolu_01AbC",
        ),
        (said("user", [{"type": "tool_result", "content": "out"}]), "tool", "out"),
        (
            said("user", [{"type": "tool_result", "tool_use_id": "toolu_01AbC", "content": "out"}]),
            "tool",
            "out\ntoolu_01AbC",
        ),
        (
            said(
                "user",
                [
                    {
                        "type": "tool_result",
                        "content": [
                            {"type": "text", "text": "seen"},
                            {"type": "image", "source": {"data": "iVBORw0KGgo"}},
                        ],
                    }
                ],
            ),
            "tool",
            "seen",
        ),
        (b'{"type":"summary","summary":"A day"}', "title", "A day"),
        (b'{"type":"ai-title","aiTitle":"A day"}', "title", "A day"),
    ],
)
def test_what_is_found(line: bytes, who: str, words: str) -> None:
    passage = passage_of(line)
    assert passage is not None
    assert (passage.who, passage.words) == (who, words)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b" \r",
        b'{"type":"system","content":"x"}',
        b'{"type":"user"}',
        b'{"type":"api-request-shape","system":"You are"}',
        b'{"type":"api-request-blob","content":"You are"}',
        b'{"type":"user","message":{"content":7}}',
        b'{"type":"user","message":{"content":[7,null,{"type":"text","text":9}]}}',
        said("user", "  \n"),
    ],
)
def test_nothing_to_find(line: bytes) -> None:
    assert passage_of(line) is None


@pytest.mark.parametrize("line", [b"torn {", b"[1]", b"[" * 3000, b'{"a":' * 3000])
def test_no_line_of_a_transcript(line: bytes) -> None:
    with pytest.raises(ValueError, match="not a readable JSON object"):
        passage_of(line)


@pytest.mark.parametrize("content", ["cut \ud83d", [{"type": "text", "text": "cut \ud83d"}]])
def test_half_an_emoji_can_be_stored(content: Any) -> None:
    passage = passage_of(said("user", content))
    assert passage is not None
    assert passage.words == "cut \ufffd"


def test_half_an_emoji_and_a_deep_value() -> None:
    deep: Any = "bottom"
    for _ in range(300):
        deep = [deep]
    passage = passage_of(
        said("assistant", [{"type": "tool_use", "name": "T\ud83d", "input": {"a": deep}}])
    )
    assert passage is not None
    assert passage.words.encode()
    assert passage.words.endswith("bottom")
