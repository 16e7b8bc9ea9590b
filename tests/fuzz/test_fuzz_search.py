"""Whatever a line contains, the lines after it are indexed, and a skipped line is reported."""

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivepipe.archive.search import index
from hivepipe.archive.search.index import Archived, SearchIndex
from hivepipe.archive.search.index_file import INDEX_FILE, skipped_lines
from hivepipe.archive.search.passages import SUMMARY, passage_of
from hivepipe.archive.search.query import Filters, terms_of
from tests.fuzz.inputs import altered, as_json, broken, fuzzed, nested, values

BEHIND = b'{"type":"user","message":{"content":"needle"}}\n'
PLACES: tuple[Any, ...] = (
    lambda odd: odd,
    lambda odd: {"type": odd, "message": {"content": "x"}},
    lambda odd: {"type": "user", "timestamp": odd, "message": {"content": "x"}},
    lambda odd: {"type": "user", "message": odd},
    lambda odd: {"type": "user", "message": {"role": odd, "content": odd}},
    lambda odd: {"type": "assistant", "message": {"content": [odd]}},
    lambda odd: {"type": "assistant", "message": {"content": [{"type": odd, "text": odd}]}},
    lambda odd: {"type": "assistant", "message": {"content": [{"type": "text", "text": odd}]}},
    lambda odd: {"type": "user", "message": {"content": [{"type": "thinking", "thinking": odd}]}},
    lambda odd: {
        "type": "assistant",
        "message": {"content": [{"type": "tool_use", "name": odd, "id": odd, "input": odd}]},
    },
    lambda odd: {
        "type": "user",
        "message": {"content": [{"type": "tool_result", "tool_use_id": odd, "content": odd}]},
    },
    lambda odd: {
        "type": "user",
        "message": {"content": [{"type": "tool_result", "content": [{"type": odd, "text": odd}]}]},
    },
    lambda odd: {"type": "summary", "summary": odd, "leafUuid": odd},
    lambda odd: {"type": "custom-title", "customTitle": odd},
    lambda odd: {"type": SUMMARY, "timestamp": odd, "said": odd},
)
MESSAGE = b'{"type":"user","message":{"content":%s}}'
ODD_LINES = [
    MESSAGE % b'"cut \\ud83d"',
    MESSAGE % b'"cut \xed\xa0\xbd"',
    MESSAGE % b'[{"type":"text","text":"cut \\ude00"}]',
    MESSAGE % b'"a\\u0000b"',
    MESSAGE % b'"a\0b"',
    MESSAGE % b'"\xff\xfe\x80"',
    MESSAGE % b"NaN",
    MESSAGE % b"1e400",
    MESSAGE % b'"a","content":7',
    b'{"type":"user","type":7,"message":{"content":"x"},"message":"y"}',
    b"\xef\xbb\xbf" + MESSAGE % b'"behind a mark"',
    MESSAGE % '"a\u2028b\u2029c\u0085d"'.encode(),
    MESSAGE % json.dumps(nested(300)).encode(),
    MESSAGE % b"[" * 3000 + b"]" * 3000,
    MESSAGE % (b'"' + b"x" * 20_000_000 + b'"'),
    MESSAGE % b'"half a li',
    b"\0",
    b"\r",
    b"7",
]
UNREADABLE = (b"\0", b"7")


def indexed(raw: bytes, folder: Path) -> SearchIndex:
    """Index an odd line between two others."""
    lines = [BEHIND, raw.replace(b"\n", b" ") + b"\n", BEHIND]

    def lines_from(offset: int) -> Iterator[tuple[int, bytes]]:
        at = 0
        for line in lines:
            if at >= offset:
                yield at, line
            at += len(line)

    opened = SearchIndex(folder / INDEX_FILE)
    archived = Archived("odd", "odd", "", "/shop", sum(map(len, lines)), lines_from)
    opened.catch_up(archived)
    assert opened.missing_bytes(archived) == 0
    return opened


def check(raw: bytes) -> None:
    with TemporaryDirectory() as name:
        opened = indexed(raw, Path(name))
        try:
            assert opened.count(terms_of("needle"), Filters()) >= 2
            hits = opened.find(terms_of("needle"), Filters(), 9)
            assert {0, len(BEHIND) + len(raw.replace(b"\n", b" ")) + 1} <= {
                hit.offset for hit in hits
            }
        finally:
            opened.close()
        for each in skipped_lines(Path(name, INDEX_FILE), 9)[0]:
            assert (each.key, each.offset) == ("odd", len(BEHIND))
            assert each.reason.isprintable()


@pytest.mark.parametrize("raw", ODD_LINES, ids=lambda raw: repr(raw[-30:]))
def test_an_odd_line_stops_no_search(raw: bytes) -> None:
    check(raw)


@pytest.mark.parametrize("place", range(len(PLACES)))
def test_half_an_emoji_anywhere_stops_no_search(place: int) -> None:
    for odd in ("cut \ud83d", ["\ude00"], {"\ud83d": "\ud83d"}, "a\0b"):
        check(json.dumps(PLACES[place](odd)).encode())


@given(st.sampled_from(PLACES), values)
@fuzzed
def test_any_value_anywhere_stops_no_search(place: Any, value: Any) -> None:
    check(as_json(place(value)))


@given(altered([PLACES[9]({"file_path": "a"}), PLACES[10]("said")]))
@fuzzed
def test_altered_lines_stop_no_search(line: Any) -> None:
    check(as_json(line))


@given(broken(st.just(as_json(PLACES[3]({"content": "said"})))))
@fuzzed
def test_broken_lines_stop_no_search(raw: bytes) -> None:
    check(raw)


@pytest.mark.parametrize("raw", UNREADABLE)
def test_an_unreadable_line_is_reported(raw: bytes, tmp_path: Path) -> None:
    indexed(raw, tmp_path).close()
    some, total = skipped_lines(tmp_path / INDEX_FILE, 9)
    assert total == 1
    assert some[0].offset == len(BEHIND)
    assert "not a readable JSON object" in some[0].reason


def test_an_error_in_one_line_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(raw: bytes) -> Any:
        if raw == b"odd\n":
            raise RuntimeError("who would \ud83d have\nthought")
        return passage_of(raw)

    monkeypatch.setattr(index, "passage_of", failing)
    opened = indexed(b"odd", tmp_path)
    assert opened.count(terms_of("needle"), Filters()) == 2
    opened.close()
    assert skipped_lines(tmp_path / INDEX_FILE, 9)[1] == 1


def test_no_index_has_no_skipped_lines(tmp_path: Path) -> None:
    assert skipped_lines(tmp_path / INDEX_FILE, 9) == ([], 0)
    (tmp_path / INDEX_FILE).write_bytes(b"torn" * 1000)
    assert skipped_lines(tmp_path / INDEX_FILE, 9) == ([], 0)
