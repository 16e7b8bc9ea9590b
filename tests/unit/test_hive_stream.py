"""What is read from a worker's stream: its steps, its result and its cost."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hivepipe.orchestrator.stream import Result, Step, Stream, lines_of, read_stream, steps

INIT = {"type": "system", "subtype": "init", "session_id": "s-1", "model": "claude-opus-5"}

NO_TOKENS = (0, 0, 0, 0)


def result(dollars: float, **more: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "total_cost_usd": dollars, **more}


def stream_of(*lines: Any) -> Stream:
    stream = Stream()
    for line in lines:
        list(stream.feed(line if isinstance(line, bytes) else json.dumps(line).encode()))
    return stream


def test_a_run_costs_the_total_of_its_last_result_and_runs_are_added() -> None:
    assert stream_of(INIT, result(0.01), result(0.05), result(0.07)).cost_usd == Decimal("0.07")
    assert stream_of(INIT, result(0.07), INIT, result(0.05)).cost_usd == Decimal("0.12")
    # A turn that Claude Code continued belongs to the same run.
    again = result(0.09, origin={"kind": "task-notification"})
    assert stream_of(INIT, result(0.07), INIT, again).cost_usd == Decimal("0.09")
    # A run without a result has none.
    assert stream_of(INIT, result(0.07), INIT).last is None


def test_costs_by_model_take_precedence() -> None:
    models = {"a": {"costUSD": 0.1}, "b": {"costUSD": 0.2}}
    assert stream_of(INIT, result(0.07, modelUsage=models)).cost_usd == Decimal("0.3")
    assert stream_of(INIT, result(0.07, modelUsage={})).cost_usd == Decimal("0.07")


def run(requests: int, held: int = 0, version: str = "2.1.330", main: int = 0) -> list[Any]:
    """Return the lines of a run whose totals include `held` requests of earlier runs."""
    names = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    counts = dict.fromkeys(names, 10 * (requests + held))
    used = ("input_tokens", "output_tokens", "cache_read_input_tokens")
    fields = {
        "session_id": "s-1",
        "usage": dict.fromkeys((*used, "cache_creation_input_tokens"), 10 * (main or requests)),
        "modelUsage": {"claude-opus-5": {**counts, "costUSD": (requests + held) / 100}},
    }
    return [{**INIT, "claude_code_version": version}, result((requests + held) / 100, **fields)]


@pytest.mark.parametrize(
    ("runs", "cost"),
    [
        ([run(9), run(8, 9), run(2, 17)], "0.19"),  # spawned, answered and resumed
        ([run(9), run(8, 9, main=1), run(2, 17)], "0.19"),  # most of it by subagents
        ([run(9), run(0, 9, main=0)], "0.09"),
        ([run(9), [INIT, result(0, is_error=True)], run(2, 9)], "0.11"),
        ([run(9), run(8)], "0.17"),  # each total is of its own run, in an unexamined version
        ([run(1), run(5)], "0.06"),
        ([run(1, version="2.1.197"), run(5, version="2.1.197", main=1)], "0.06"),
    ],
)
def test_totals_of_a_resumed_session_are_not_added_up(runs: list[list[Any]], cost: str) -> None:
    assert stream_of(*(line for each in runs for line in each)).cost_usd == Decimal(cost)


def test_invalid_results_cost_nothing() -> None:
    lines = [result(-1), result(float("nan")), {"type": "result", "total_cost_usd": "x"}, b"{half"]
    assert stream_of(INIT, *lines).cost_usd == 0


def test_is_error_takes_precedence_over_success() -> None:
    failed = {"type": "result", "subtype": "error_max_turns", "errors": ["too", "long"]}
    for line, kind, text in (
        (result(0, is_error=True), "error", ""),
        (failed, "error_max_turns", "too; long"),
    ):
        assert stream_of(INIT, line).last == Result(Decimal(0), kind, text, used=NO_TOKENS)


def test_calls_words_and_failures_are_shown_without_secrets(tmp_path: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
    calls = [
        {"type": "text", "text": f"The token is {token}."},
        {"type": "tool_use", "id": "t1", "name": "Edit", "input": {"file_path": "a.py"}},
    ]
    answer = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": "no such"}
    lines = [
        INIT,
        {"type": "assistant", "message": {"content": calls}},
        {"type": "user", "message": {"content": [answer]}},
        {"type": "tool_result", "tool_use_id": "t2", "is_error": True, "content": "as it was"},
        {"type": "tool_result", "tool_use_id": "t3", "content": "fine"},
    ]
    path = tmp_path / "transcript.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines) + '{"type": "assi')
    assert [*steps(lines_of(path))] == [
        Step("says", "The token is ***REDACTED***."),
        Step("calls", "Edit a.py"),
        Step("fails", "no such"),
        Step("fails", "as it was"),
    ]


def test_a_part_of_a_transcript_is_read_alone(tmp_path: Path) -> None:
    first = f"{json.dumps(INIT)}\n{json.dumps(result(0.07))}\n"
    path = tmp_path / "transcript.jsonl"
    path.write_text(first + first.replace("0.07", "0.05"))
    assert read_stream(path, 0, len(first)).cost_usd == Decimal("0.07")
    assert read_stream(path, len(first)).cost_usd == Decimal("0.05")
    assert read_stream(tmp_path / "none").cost_usd == 0
