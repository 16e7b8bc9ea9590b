"""Calls of hivepipe's own commands are recognized and come last in a search."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from hivepipe.archive.search import index
from hivepipe.archive.search.index import Archived, SearchIndex
from hivepipe.archive.search.own_calls import tool_uses
from hivepipe.archive.search.query import Filters, terms_of


def call(id: str, name: str = "Bash", **arguments: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def result(id: str, words: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": words}


def line(second: int, *blocks: dict[str, Any], **fields: str) -> dict[str, Any]:
    kind = "assistant" if blocks[0]["type"] == "tool_use" else "user"
    time = f"2026-11-23T05:00:{second:02}.000Z"
    return {"type": kind, "timestamp": time, "message": {"content": list(blocks)}, **fields}


OWN: list[tuple[str, dict[str, str]]] = [
    ("Bash", {"command": "hivepipe search harbour"}),
    ("Bash", {"command": "cd /shop && .venv/bin/hivepipe transcript last"}),
    ("Bash", {"command": "(hivepipe tail)"}),
    ("Bash", {"command": "ls;hivepipe"}),
    ("mcp__hivepipe__search", {"query": "harbour"}),
    ("mcp__plugin_hivepipe_hivepipe__timeline", {"query": "harbour"}),
]
OTHERS: list[tuple[str, dict[str, str]]] = [
    ("Bash", {"command": "grep hivepipe README.md"}),
    ("Bash", {"command": "cat hivepipe/archive/search/index.py"}),
    ("Bash", {"command": "hivepiped run"}),
    ("Bash", {}),
    ("Read", {"command": "hivepipe search"}),
    ("Skill", {"skill": "recall"}),
    ("mcp__other_hivepipe__search", {"query": "harbour"}),
]


def test_only_a_command_or_tool_of_hivepipe_is_its_own() -> None:
    for name, arguments in OWN:
        uses = tool_uses(line(1, call("t1", name, **arguments)))
        assert (uses.own, uses.is_mixed) == (("t1",), False), arguments
    for name, arguments in OTHERS:
        assert tool_uses(line(1, call("t1", name, **arguments))).own == (), arguments


@pytest.mark.parametrize("unit", [";", "(x", "\n", " ", "a/", ";a/"])
def test_no_command_takes_long(unit: str) -> None:
    command = (unit * 65_536)[:65_000]
    begun = time.thread_time()
    assert tool_uses(line(1, call("t1", command=f"{command};hivepipe tail"))).own == ("t1",)
    assert time.thread_time() - begun < 0.5


def test_a_line_with_other_calls_or_text_is_mixed() -> None:
    both = line(1, call("t1", command="hivepipe tail"), call("t2", command="ls"))
    assert tool_uses(both).is_mixed
    assert tool_uses({"type": "user", "message": {"content": "hivepipe search"}}).is_mixed


LINES = [
    line(1, {"type": "text", "text": "The harbour is deep."}),
    line(2, call("t1", command="ls harbour")),
    line(3, result("t1", "harbour.py")),
    line(4, call("t2", command="hivepipe search harbour")),
    line(5, result("t2", "1 found: The harbour is deep.")),
    line(6, call("t3", "Skill", skill="hivepipe:recall", args="harbour")),
    line(7, {"type": "text", "text": "How to find a harbour"}, sourceToolUseID="t3"),
    line(8, result("t9", "a harbour of an unknown call")),
]


@pytest.mark.parametrize("lines_at_once", [1, 5000])
def test_own_calls_and_their_results_come_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines_at_once: int
) -> None:
    monkeypatch.setattr(index, "LINES_PER_COMMIT", lines_at_once)
    texts = [json.dumps(each).encode() + b"\n" for each in LINES]
    offsets = [sum(map(len, texts[:number])) for number in range(len(texts))]
    found = SearchIndex(tmp_path / "search.db")

    def lines_from(begin: int) -> list[tuple[int, bytes]]:
        return [each for each in zip(offsets, texts, strict=True) if each[0] >= begin]

    found.catch_up(Archived("s1", "s1", "", "/shop", sum(map(len, texts)), lines_from))
    hits = found.find(terms_of("harbour"), Filters.of(), 20)
    seconds = [hit.time[17:19] for hit in hits]
    found.close()
    assert seconds == ["08", "03", "02", "01", "07", "06", "05", "04"]
