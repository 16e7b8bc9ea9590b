"""Dialogs on a terminal: a plan, a question and an MCP form; the session waits in each of them."""

import json
import sys
from pathlib import Path

import pytest

from tests.real.environment import client_environment, needs_claude, settle
from tests.real.person import Person
from tests.real.recorded_sessions import (
    compare_found,
    compare_served,
    compare_transcripts,
    counts,
    notes,
    prompts,
    sessions,
    wait_for_condition,
)
from tests.real.scenarios import bash
from tests.real.script import CWD, Call, Say, Script
from tests.real.terminal import HAS_TMUX, Terminal, on_terminal

pytestmark = [needs_claude, pytest.mark.skipif(not HAS_TMUX, reason="no tmux")]
PLAN = Call("ExitPlanMode", {"plan": "1. Feed the quokka"})
PLANS = Script("plans", [[Call("EnterPlanMode", {})], [PLAN], [Say("The quokka is fed.")]])
COLOURS = [{"label": name, "description": f"It is {name}"} for name in ("Red", "Blue")]
QUESTION = {"question": "Which colour?", "header": "Colour", "options": COLOURS}
ASKS = Script(
    "asks",
    [
        [Call("AskUserQuestion", {"questions": [QUESTION | {"multiSelect": False}]})],
        [Say("A quokka of that colour.")],
    ],
)
BOOKS = Script("books", [[Call("mcp__calendar__book", {})], [Say("Booked, said the quokka.")]])
AGAIN = Script("again", [[Say("Once more, said the quokka.")]])
NOTED = Call("Write", {"file_path": f"{CWD}/note.txt", "content": "written\n"})
WRITES = Script("writes", [[bash("pwd"), NOTED], [Say("That was it, quokka.")]])


@pytest.mark.parametrize("is_approved", [True, False])
def test_a_session_waits_for_the_answer_to_a_plan(is_approved: bool) -> None:
    with client_environment(PLANS, AGAIN) as person:
        with on_terminal(person) as terminal:
            terminal.say(PLANS.prompt("Please plan"))
            session = wait_for_condition(person, "waiting")
            assert session["waits_for"]
            if is_approved:
                terminal.shows("1. Yes")
                terminal.press("1")
                terminal.shows("quokka is fed")
            else:
                terminal.press("Escape")
            wait_for_condition(person, "paused")
            leave(terminal)
        said = 3 if is_approved else 2  # the plan is found as well
        compare(person, 2, 0, said, "Permission asked: ExitPlanMode", PLANS)


@pytest.mark.parametrize("is_answered", [True, False])
def test_a_session_waits_for_the_answer_to_a_question(is_answered: bool) -> None:
    with client_environment(ASKS, AGAIN) as person:
        with on_terminal(person) as terminal:
            terminal.say(ASKS.prompt("Please ask"))
            session = wait_for_condition(person, "waiting")
            assert session["waits_for"]
            if is_answered:
                terminal.choose("Red")
                terminal.shows("of that colour")
            else:
                terminal.press("Escape")
            wait_for_condition(person, "paused")
            leave(terminal)
        if is_answered:
            assert "Red" in json.dumps(person.api.requests[-2].body["messages"][-1])
        said = 2 if is_answered else 1
        compare(person, 1, 0, said, "Permission asked: AskUserQuestion", ASKS)


@pytest.mark.parametrize("is_accepted", [True, False])
def test_a_session_waits_for_an_mcp_form(is_accepted: bool) -> None:
    with client_environment(BOOKS, AGAIN) as person:
        with on_terminal(person, *with_calendar(person)) as terminal:
            terminal.say(BOOKS.prompt("Please book"))
            terminal.shows("Which day?")
            session = wait_for_condition(person, "waiting")
            assert session["waits_for"]
            if is_accepted:
                terminal.type("Monday")
            keys = ("Enter",) if is_accepted else ("Down", "Right", "Enter")
            terminal.press_until_gone("Which day?", *keys)
            terminal.shows("said the quokka")
            wait_for_condition(person, "paused")
            leave(terminal)
        sent = json.dumps([each.body["messages"] for each in person.api.requests])
        assert ("Monday" in sent, "decline" in sent) == (is_accepted, not is_accepted)
        compare(person, 1, 0, 2, "", BOOKS)  # The client asks for no permission.


@pytest.mark.parametrize("mode", ["acceptEdits", "dontAsk"])
def test_the_mode_decides_without_a_question(mode: str) -> None:
    with client_environment(WRITES, AGAIN) as person:
        with on_terminal(person, "--permission-mode", mode) as terminal:
            terminal.say(WRITES.prompt("Please write"))
            terminal.shows("That was it")
            leave(terminal)
        is_denied = mode == "dontAsk"
        assert (person.project / "note.txt").exists() is not is_denied
        compare(person, 2, is_denied, 2, "", WRITES)


def with_calendar(person: Person) -> tuple[str, ...]:
    """Return the options that give the client the server and allow its tool."""
    program = {
        "command": sys.executable,
        "args": [str(Path(__file__).with_name("elicitation_server.py"))],
    }
    person.write("mcp.json", json.dumps({"mcpServers": {"calendar": program}}))
    return ("--mcp-config", "mcp.json", "--allowedTools", "mcp__calendar__book")


def leave(terminal: Terminal) -> None:
    """Send a last prompt and end the session."""
    terminal.say(AGAIN.prompt("And now"))
    terminal.shows("Once more")
    terminal.wait_for_end_of_turn()
    terminal.say("/exit")
    terminal.wait()


def compare(person: Person, calls: int, failed: int, said: int, note: str, script: Script) -> None:
    """Compare the only session with the script."""
    settle(person)
    (row,) = sessions(person)
    assert row["status"] == "ended"
    assert row["waits_for"] is None
    assert counts(row) == (calls, failed)
    assert len(prompts(person, row)) == 2
    assert script.name in prompts(person, row)[0]
    # A question that waits for some seconds also causes a notification.
    found = [text for text in notes(person, row) if not text.startswith("Notification: ")]
    assert found == [note] * bool(note)
    compare_served(person)
    compare_transcripts(person)
    compare_found(person, "quokka", {row["id"]: said})
