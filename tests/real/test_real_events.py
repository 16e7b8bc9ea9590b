"""What the real client says beside its calls: refusals, questions to a person, Esc and No."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import until
from tests.real.environment import living, needs_claude, settle
from tests.real.person import Person
from tests.real.recorded_sessions import becomes
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
DENIED = Script("denied", [[bash("touch denied.txt")], [Say("It was not allowed, quokka.")]])
ASKS = Script("asks", [[bash("touch asked.txt")], [Say("So it was, quokka.")]])
WAITS = "python3 -c 'import time; time.sleep(25)'"  # newer ones run no sleep of that length
SLEEPS = Script("sleeps", [[bash(f"{WAITS}; touch slept.txt")], [Say("I slept, quokka.")]])
HELLO = Script("hello", [[Say("Good morning, said the quokka.")]])
on_a_terminal = pytest.mark.skipif(not HAS_TMUX, reason="no tmux")


@pytest.fixture
def ann() -> Iterator[Person]:
    with living(STUCK, DENIED, ASKS, SLEEPS, HELLO) as person:
        person.hivepipe("up", "-d")  # the guard counts in Redis, and a script takes seconds
        yield person


def shown(person: Person, session: str) -> dict[str, Any]:
    found: dict[str, Any] = person.json("session", "show", session)
    return found


def told(person: Person, session: str, start: str) -> list[str]:
    """Return the lines of a session that begin so."""
    events = shown(person, session)["events"]
    return [event["text"] for event in events if event["text"].startswith(start)]


def test_calls_that_are_not_run_count_and_a_loop_of_them_is_reported(ann: Person) -> None:
    session = str(ann.ask(STUCK.prompt("Please work"))["session_id"])
    settle(ann)
    row = shown(ann, session)["session"]
    assert (row["calls"], row["failed"]) == (TIMES + 2, TIMES)
    refused = told(ann, session, "Call refused: Edit: ")
    assert len(refused) == TIMES
    assert all("not found" in text for text in refused)
    (line,) = [line for line in ann.hivepipe("tail", "--once").splitlines()[-1:]]
    assert session[:8] in line
    requests = [json.dumps(request.body["messages"]) for request in ann.api.requests]
    assert "hivepipe guard, rule loop: Edit was called 8 times" in requests[-1]
    assert "hivepipe guard" not in requests[8]


def test_a_loop_of_calls_that_are_not_run_is_ended_where_the_guard_denies(ann: Person) -> None:
    ann.hivepipe("guard", "mode", "all")
    ann.env["HIVEPIPE_GUARD_LOOP"] = "3 5"
    session = str(ann.ask(STUCK.prompt("Please work"), expect=None)["session_id"])
    settle(ann)
    row = shown(ann, session)["session"]
    assert row["calls"] == 2 + 5
    assert row["denied"] == 1


def test_a_call_that_a_rule_denies_is_over(ann: Person) -> None:
    report = ann.ask(DENIED.prompt("Please work"), "--disallowedTools", "Bash(touch *)")
    settle(ann)
    row = shown(ann, str(report["session_id"]))["session"]
    assert (row["calls"], row["failed"]) == (1, 1)
    assert not (ann.project / "denied.txt").exists()


@on_a_terminal
@pytest.mark.parametrize("answer", ["Yes", "No", "Escape"])
def test_a_question_to_a_person_is_waited_for(ann: Person, answer: str) -> None:
    with on_terminal(ann) as terminal:
        terminal.say(ASKS.prompt("Please work"))
        terminal.shows("Do you want to proceed")
        session = becomes(ann, "waiting")
        assert session["waits_for"]
        assert told(ann, session["id"], "Permission asked: Bash (By the fake)")
        terminal.press("Escape") if answer == "Escape" else terminal.choose(answer)
        becomes(ann, "paused")
        assert (ann.project / "asked.txt").exists() == (answer == "Yes")
        terminal.say(HELLO.prompt("And now"))
        terminal.shows("said the quokka")
        assert becomes(ann, "paused")["waits_for"] is None


@on_a_terminal
def test_a_call_that_a_person_interrupts_is_no_work(ann: Person) -> None:
    with on_terminal(ann, "--allowedTools", "Bash") as terminal:
        terminal.say(SLEEPS.prompt("Please work"))
        terminal.shows("time.sleep")
        becomes(ann, "active")
        terminal.press("Escape")
        session = becomes(ann, "paused")
        until(lambda: told(ann, session["id"], "Interrupted: "), "it is not noted", 150)
        (row,) = ann.json("sessions")["sessions"]
        assert row["status"] == "paused"
