"""Events besides calls: refused calls, permission questions, Esc and denials by the user."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import until
from tests.real.environment import client_environment, needs_claude, settle
from tests.real.person import Person
from tests.real.recorded_sessions import wait_for_condition
from tests.real.scenarios import ABSENT, EDIT, NOTE, READ, WRITE, bash
from tests.real.script import Call, Say, Script
from tests.real.terminal import HAS_TMUX, on_terminal

pytestmark = needs_claude
TIMES = 10
NEVER = Call(EDIT, ABSENT, fails=True, is_invalid=True)
STUCK = Script(
    "stuck",
    [
        [Call(WRITE, {"file_path": NOTE, "content": "one\n"})],
        [Call(READ, {"file_path": NOTE})],
        *[[NEVER]] * TIMES,
        [Say("I give up, quokka.")],
    ],
)
ASKS = Script("asks", [[bash("touch asked.txt")], [Say("So it was, quokka.")]])
# Newer clients refuse to run `sleep` for that long.
WAITS = "python3 -c 'import time; time.sleep(25)'"
SLEEPS = Script("sleeps", [[bash(f"{WAITS}; touch slept.txt")], [Say("I slept, quokka.")]])
HELLO = Script("hello", [[Say("Good morning, said the quokka.")]])
on_a_terminal = pytest.mark.skipif(not HAS_TMUX, reason="no tmux")


@pytest.fixture
def ann() -> Iterator[Person]:
    with client_environment(STUCK, ASKS, SLEEPS, HELLO) as person:
        # A fast start, because the guard counts in Redis and a script takes only seconds.
        person.hivepipe("up", "-d")
        yield person


def shown(person: Person, session: str) -> dict[str, Any]:
    found: dict[str, Any] = person.json("session", "show", session)
    return found


def lines_starting(person: Person, session: str, start: str) -> list[str]:
    """Return the event texts of a session that start with a text."""
    events = shown(person, session)["events"]
    return [event["text"] for event in events if event["text"].startswith(start)]


def test_refused_calls_count_and_their_loop_is_reported(ann: Person) -> None:
    session = str(ann.ask(STUCK.prompt("Please work"))["session_id"])
    settle(ann)
    row = shown(ann, session)["session"]
    assert (row["calls"], row["failed"]) == (TIMES + 2, TIMES)
    refused = lines_starting(ann, session, "Call refused: Edit: ")
    assert len(refused) == TIMES
    assert all("not found" in text for text in refused)
    (line,) = [line for line in ann.hivepipe("tail", "--once").splitlines()[-1:]]
    assert session[:8] in line
    requests = [json.dumps(request.body["messages"]) for request in ann.api.requests]
    assert "hivepipe guard, rule loop: Edit was called 8 times" in requests[-1]
    assert "hivepipe guard" not in requests[8]


def test_the_guard_denies_a_loop_of_refused_calls(ann: Person) -> None:
    ann.hivepipe("guard", "mode", "all")
    ann.env["HIVEPIPE_GUARD_LOOP"] = "3 5"
    session = str(ann.ask(STUCK.prompt("Please work"), expect=None)["session_id"])
    settle(ann)
    row = shown(ann, session)["session"]
    assert row["calls"] == 2 + 5
    assert row["denied"] == 1


@on_a_terminal
@pytest.mark.parametrize("answer", ["Yes", "No", "Escape"])
def test_a_session_waits_for_a_permission(ann: Person, answer: str) -> None:
    with on_terminal(ann) as terminal:
        terminal.say(ASKS.prompt("Please work"))
        terminal.shows("Do you want to proceed")
        session = wait_for_condition(ann, "waiting")
        assert session["waits_for"]
        assert lines_starting(ann, session["id"], "Permission asked: Bash (By the fake)")
        terminal.press("Escape") if answer == "Escape" else terminal.choose(answer)
        wait_for_condition(ann, "paused")
        assert (ann.project / "asked.txt").exists() == (answer == "Yes")
        terminal.say(HELLO.prompt("And now"))
        terminal.shows("said the quokka")
        assert wait_for_condition(ann, "paused")["waits_for"] is None


@on_a_terminal
def test_an_interruption_before_a_prompt_is_noted_once(ann: Person) -> None:
    """Claude Code is never idle for long; only the transcript shows the interruption."""
    with on_terminal(ann, "--allowedTools", "Bash") as terminal:
        terminal.say(SLEEPS.prompt("Please work"))
        terminal.shows("time.sleep")
        session = wait_for_condition(ann, "active")
        terminal.press("Escape")
        terminal.shows("Interrupted")
        terminal.say("And now?")
        until(lambda: lines_starting(ann, session["id"], "Interrupted: "), "it is not noted", 60)
    settle(ann)
    assert len(lines_starting(ann, session["id"], "Interrupted: ")) == 1


@on_a_terminal
def test_an_interrupted_call_pauses_the_session(ann: Person) -> None:
    with on_terminal(ann, "--allowedTools", "Bash") as terminal:
        terminal.say(SLEEPS.prompt("Please work"))
        terminal.shows("time.sleep")
        wait_for_condition(ann, "active")
        terminal.press("Escape")
        session = wait_for_condition(ann, "paused")
        until(lambda: lines_starting(ann, session["id"], "Interrupted: "), "it is not noted", 150)
        (row,) = ann.json("sessions")["sessions"]
        assert row["status"] == "paused"
