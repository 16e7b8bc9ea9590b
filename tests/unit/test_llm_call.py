"""What a call to a model is charged, and its reason, if its process dies."""

import json
import sys
from pathlib import Path

import pytest

from hivepipe.summaries import call
from hivepipe.summaries.providers import PROVIDERS, Offer
from hivepipe.summaries.question import Question
from tests.llm_server import SUMMARY


def ask(granted: int) -> call.Reply:
    offer = Offer(PROVIDERS[0], "key", "environment", "m", "http://127.0.0.1:1/", "secret-key")
    return call.ask(offer, Question("i", "t"), requests=granted, timeout_secs=5, dollars=1.0)


@pytest.mark.parametrize("granted", [1, 2])
def test_a_process_that_dies_is_charged_what_it_was_granted(
    monkeypatch: pytest.MonkeyPatch, granted: int
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    reply = ask(granted)
    assert (reply.failure, reply.used) == ("broken", call.Used(granted, None, None, granted))


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo error: unknown option --json-schema >&2; exit 1", " (exit code 1): error: unknown"),
        ("echo Please run /login", ": Please run /login"),
        ("echo wrong: secret-key >&2", ": wrong: ***REDACTED***"),
        ("kill -9 $$", " (killed by signal 9)"),
        ("yes >&2", "no answer in time; the process was killed"),
    ],
)
def test_a_process_without_a_result_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, reason: str
) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    assert reason in ask(1).reason


@pytest.mark.parametrize("tokens", [10**12, -(10**6)])
def test_tokens_that_no_model_can_use_are_unknown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tokens: int
) -> None:
    printed = {"requests": 2, "input_tokens": 1000, "output_tokens": tokens, "answer": SUMMARY}
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\necho '{json.dumps(printed)}'\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    reply = ask(2)
    assert reply.answer is not None
    assert reply.used == call.Used(2, None, None, 2)


@pytest.mark.parametrize("dollars", ["NaN", "Infinity", "-1", "1e9"])
def test_a_cost_that_no_request_can_have_is_unknown(dollars: str) -> None:
    cost = json.loads(dollars)
    assert call.Used(2, 5, 5, cost_usd=cost).or_unknown() == call.Used(2, None, None, 2)
    assert call.Used(2, 5, 5, cost_usd=0.5).or_unknown().cost_usd == 0.5
