"""Changes within a session: queued prompts, model, compaction, /resume and interrupts."""

import json
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from hivepipe.events.job_plan import TWIN_WINDOW_NS
from tests.conftest import until
from tests.real.environment import client_environment, needs_claude, settle, version
from tests.real.messages_api import COMPACTION, SUMMARY
from tests.real.person import Person
from tests.real.recorded_sessions import (
    TITLE,
    compare_found,
    compare_served,
    compare_transcripts,
    counts,
    events,
    notes,
    prompts,
    session,
    sessions,
    wait_for_condition,
)
from tests.real.scenarios import bash
from tests.real.script import Say, Script
from tests.real.terminal import HAS_TMUX, Terminal, on_terminal

pytestmark = [needs_claude, pytest.mark.skipif(not HAS_TMUX, reason="no tmux")]
BASH = ("--allowedTools", "Bash")
HELLO = Script("hello", [[Say("Good morning, said the quokka.")]])
SECOND = Script("second", [[Say("A second time, said the quokka.")]])
THIRD = Script("third", [[Say("A third time, said the quokka.")]])
# Newer clients refuse to run `sleep` for that long.
WAITS = "python3 -c 'import time; time.sleep({})'"
BUSY = Script("busy", [[bash(WAITS.format(20))], [Say("Not so busy.")]])
GONE_SECS = 300  # The reaper looks for ended processes every minute.
# Equal events within this time count as one. A real model takes longer for a compaction.
TWINS_SECS = 2 * TWIN_WINDOW_NS / 1e9
LONG = Script("long", [[bash(WAITS.format(60))], [Say("It was long, said the quokka.")]])


@pytest.mark.skipif(
    needs_claude.args[0] or version() < (2, 1, 330),
    reason="sent in a reminder, in which the fake looks for no script",
)
def test_queued_prompts_are_each_recorded_once() -> None:
    with client_environment(BUSY, SECOND, THIRD) as person:
        with on_terminal(person, *BASH) as terminal:
            terminal.say(BUSY.prompt("Please work"))
            terminal.shows("time.sleep")
            terminal.say(SECOND.prompt("And then"))
            terminal.say(THIRD.prompt("And last"))
            terminal.shows("A third time")
            leave(terminal)
        settle(person)
        (row,) = sessions(person)
        wanted = [BUSY.prompt("Please work"), SECOND.prompt("And then"), THIRD.prompt("And last")]
        assert prompts(person, row) == wanted
        assert counts(row) == (1, 0)
        compare_all(person)


def test_a_prompt_typed_while_claude_works_is_part_of_the_conversation() -> None:
    with client_environment(BUSY, SECOND) as person:
        with on_terminal(person, *BASH) as terminal:
            terminal.say(BUSY.prompt("Please work"))
            terminal.shows("time.sleep")
            terminal.say(SECOND.prompt("Mind the numbat"))
            # Older clients put the prompt into a reminder.
            terminal.shows("Not so busy", "A second time")
            leave(terminal)
        settle(person)
        (row,) = sessions(person)
        assert "| Mind the numbat" in person.hivepipe("transcript", row["id"])
        found = person.json("search", "mind the numbat", "--role", "user")["hits"]
        assert {hit["session_id"] for hit in found} == {row["id"]}


def test_a_session_has_the_model_that_it_continues_with() -> None:
    with client_environment(HELLO, SECOND) as person:
        with on_terminal(person) as terminal:
            say(terminal, HELLO)
            terminal.say("/model haiku")
            if terminal.shows("Yes, switch", "Set model") == "Yes, switch":
                terminal.choose("Yes, switch to")
                terminal.shows("Set model")
            say(terminal, SECOND)
            leave(terminal)
        settle(person)
        (row,) = sessions(person)
        first, second = (
            each.body["model"] for each in person.api.requests if each.script in ("hello", "second")
        )
        assert first != second
        assert row["model"] == second
        if version() >= (2, 1, 251):
            assert notes(person, row) == [f"Model switched: {first} to {second}, by command"]
        compare_all(person)


def test_a_full_context_is_compacted_in_the_middle_of_a_session() -> None:
    """The client also announces a compaction that it then finds unnecessary.

    2.1.132 compacts the prompt as well, so the request names no script any more.
    """
    with client_environment(HELLO, SECOND, THIRD) as person:
        person.env |= {
            "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000",
            "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "1",
        }
        with on_terminal(person) as terminal:
            for script in (HELLO, SECOND, THIRD):
                before = answers(person)
                terminal.say(script.prompt("Please work"))
                until(lambda n=before: answers(person) > n, "no answer")  # type: ignore[misc]
                terminal.wait_for_end_of_turn()
                time.sleep(TWINS_SECS)
            leave(terminal)
        settle(person)
        (row,) = sessions(person)
        compacted = sum(request.script == COMPACTION for request in person.api.requests)
        assert compacted
        assert set(notes(person, row)) == {"Compaction: auto"}
        assert len(notes(person, row)) >= compacted
        assert prompts(person, row) == [
            each.prompt("Please work") for each in (HELLO, SECOND, THIRD)
        ]
        (entry,) = person.json("archive", "list")["archives"]
        assert entry["meta"]["compact_summary"] == SUMMARY
        compare_all(person)


def test_a_cleared_session_can_be_resumed() -> None:
    with client_environment(HELLO, SECOND, THIRD) as person:
        with on_terminal(person) as terminal:
            wait_for_condition(person, "paused")  # before the first prompt
            say(terminal, HELLO)
            terminal.say("/clear")
            until(lambda: "said the quokka" not in terminal.screen, "it is not cleared")
            wait_for_condition(person, "paused")
            say(terminal, SECOND)
            terminal.say("/resume")
            terminal.shows("Resume session", "Resume Session")
            terminal.shows(HELLO.prompt("Please work"), "A title by the fake")
            terminal.press("Enter")
            terminal.shows("Good morning")
            say(terminal, THIRD)
            leave(terminal)
        settle(person)
        rows = {prompts(person, row)[0]: row for row in sessions(person)}
        assert len(rows) == 2
        first, second = (rows[script.prompt("Please work")] for script in (HELLO, SECOND))
        assert {row["status"] for row in rows.values()} == {"ended"}
        assert prompts(person, first) == [each.prompt("Please work") for each in (HELLO, THIRD)]
        assert prompts(person, second) == [SECOND.prompt("Please work")]
        assert ended(person, first) == "prompt_input_exit"
        assert ended(person, second) == "resume"
        compare_served(person)
        compare_transcripts(person)
        compare_found(person, "quokka", {first["id"]: 2, second["id"]: 1})


def test_a_session_is_continued_after_its_end() -> None:
    with client_environment(HELLO, SECOND) as person:
        with on_terminal(person) as terminal:
            say(terminal, HELLO)
            leave(terminal)
        with on_terminal(person, "--continue") as terminal:
            say(terminal, SECOND)
            leave(terminal)
        settle(person)
        (row,) = sessions(person)
        assert prompts(person, row) == [each.prompt("Please work") for each in (HELLO, SECOND)]
        assert (row["status"], ended(person, row)) == ("ended", "prompt_input_exit")
        compare_all(person)


def test_a_session_of_two_clients_ends_with_the_last() -> None:
    with client_environment(HELLO, SECOND, THIRD) as person:
        with on_terminal(person) as first:
            say(first, HELLO)
            until(lambda: len(sessions(person)) == 1, "no session")
            (row,) = sessions(person)
            with on_terminal(person, "--resume", row["id"]) as other:
                say(other, SECOND)
                leave(other)
            settle(person)
            (row,) = sessions(person)
            assert row["status"] == "paused"
            say(first, THIRD)
            leave(first)
        settle(person)
        (row,) = sessions(person)
        assert row["status"] == "ended"
        assert prompts(person, row) == [
            each.prompt("Please work") for each in (HELLO, SECOND, THIRD)
        ]
        compare_all(person)


def press_once(terminal: Terminal) -> None:
    terminal.press("C-c")
    terminal.shows("What should Claude do instead?")
    wait_for_condition(terminal.person, "paused")
    leave(terminal)


def press_until_it_exits(terminal: Terminal) -> None:
    """Press Ctrl-C repeatedly: the first stops the call, two within a second end the client."""

    def is_over() -> bool:
        terminal.press("C-c")
        time.sleep(0.3)
        return terminal.is_over

    until(is_over, "it does not exit")


def send_sigint(terminal: Terminal) -> None:
    os.kill(terminal.pid, signal.SIGINT)
    terminal.wait()


@pytest.mark.parametrize("stop", [press_once, press_until_it_exits, send_sigint])
def test_a_stopped_call_is_recorded_once(stop: Callable[[Terminal], None]) -> None:
    with client_environment(LONG) as person:
        with on_terminal(person, *BASH) as terminal:
            terminal.say(LONG.prompt("Please work"))
            wait_for_condition(person, "active")
            until(lambda: session(person)["calls"] == 1, "no call")
            stop(terminal)
        # On a busy machine the client exits before its SessionEnd hook, and the reaper ends the
        # session.
        until(lambda: session(person)["status"] == "ended", "the session never ends", GONE_SECS)
        settle(person)
        (row,) = sessions(person)
        assert row["calls"] == 1
        assert prompts(person, row) == [LONG.prompt("Please work")]
        compare_transcripts(person)
        if stop is send_sigint:
            compare_written(person, row)
        else:
            compare_served(person)
            compare_found(person, "quokka", {})


def compare_written(person: Person, row: dict[str, Any]) -> None:
    """Compare with the transcript, because the server may have sent one answer more.

    After the signal, 2.1.197 sends another request, and exits before its answer arrives.
    """
    text = "".join(path.read_text() for path in person.transcripts(row["id"]))
    answers = [json.loads(line) for line in text.splitlines() if '"type":"assistant"' in line]
    written = {
        each["message"]["id"]: json.dumps(each["message"]["content"])
        for each in answers
        if each["message"]["model"] != "<synthetic>"
    }
    assert written
    costs = person.json("costs", "--by", "model")["costs"]
    assert sum(each["messages"] for each in costs) == len(written)
    said = sum("quokka" in content for content in written.values())
    compare_found(person, "quokka", {row["id"]: said})


def say(terminal: Terminal, script: Script) -> None:
    terminal.say(script.prompt("Please work"))
    terminal.shows(script.said[-1].text)
    terminal.wait_for_end_of_turn()


def answers(person: Person) -> int:
    """Return how many requests of the conversation were answered."""
    return sum(request.script not in (TITLE, COMPACTION) for request in person.api.requests)


def leave(terminal: Terminal) -> None:
    terminal.say("/exit")
    terminal.wait()


def ended(person: Person, row: dict[str, object]) -> str:
    kind, reason = events(person, row)[-1]
    return reason if kind == "ended" else ""


def compare_all(person: Person) -> None:
    """Compare the only session with the served answers and the client's transcripts."""
    (row,) = sessions(person)
    assert (row["status"], row["failed"]) == ("ended", 0)
    answered = {request.script for request in person.api.requests}
    scripts = [script for script in person.api.scripts.values() if script.name in answered]
    compare_served(person)
    compare_transcripts(person)
    said = sum("quokka" in piece.text for script in scripts for piece in script.said)
    compare_found(person, "quokka", {row["id"]: said})
