"""Which text of a transcript's line a search can find."""

import json
from typing import Any

import pytest

from hivepipe.archive.search.passages import passage_of


def line_of(kind: str, content: Any, **more: Any) -> bytes:
    line = {
        "type": kind,
        "timestamp": "2026-11-21T01:00:00.123Z",
        "message": {"role": kind, "content": content},
        **more,
    }
    return json.dumps(line).encode()


EDIT = {"type": "tool_use", "name": "Edit", "id": "toolu_01AbC",
        "input": {"file_path": "src/a.py", "edits": [{"new_string": "x = 1"}]}}  # fmt: skip
SEEN = [{"type": "text", "text": "seen"}, {"type": "image", "source": {"data": "iVBORw0KGgo"}}]


def result_of(content: Any, **more: Any) -> bytes:
    return line_of("user", [{"type": "tool_result", "content": content, **more}])


@pytest.mark.parametrize(
    ("line", "who", "words"),
    [
        (line_of("user", "plain words"), "user", "plain words"),
        (line_of("user", [{"type": "text", "text": "in a block"}]), "user", "in a block"),
        (line_of("assistant", [{"type": "thinking", "thinking": "hm"}]), "claude", "hm"),
        (
            line_of("assistant", [{"type": "text", "text": "I edit."}, EDIT]),
            "claude",
            "I edit.\nEdit\nsrc/a.py\nx = 1\ntoolu_01AbC",
        ),
        (result_of("out"), "tool", "out"),
        (result_of("out", tool_use_id="toolu_01AbC"), "tool", "out\ntoolu_01AbC"),
        (result_of(SEEN), "tool", "seen"),
        (b'{"type":"summary","summary":"A day"}', "title", "A day"),
        (b'{"type":"ai-title","aiTitle":"A day"}', "title", "A day"),
    ],
)
def test_the_text_of_a_line_is_found(line: bytes, who: str, words: str) -> None:
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
        line_of("user", "  \n"),
    ],
)
def test_a_line_without_text_has_no_passage(line: bytes) -> None:
    assert passage_of(line) is None


@pytest.mark.parametrize("line", [b"torn {", b"[1]", b"[" * 3000, b'{"a":' * 3000])
def test_a_malformed_line_is_an_error(line: bytes) -> None:
    with pytest.raises(ValueError, match="not a readable JSON object"):
        passage_of(line)


def test_half_an_emoji_and_a_deep_value_can_be_stored() -> None:
    for content in ("cut \ud83d", [{"type": "text", "text": "cut \ud83d"}]):
        passage = passage_of(line_of("user", content))
        assert passage is not None
        assert passage.words == "cut \ufffd"
    deep: Any = "bottom"
    for _ in range(300):
        deep = [deep]
    use = {"type": "tool_use", "name": "T\ud83d", "input": {"a": deep}}
    passage = passage_of(line_of("assistant", [use]))
    assert passage is not None
    assert passage.words.encode()
    assert passage.words.endswith("bottom")
