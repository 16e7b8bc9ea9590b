"""Sessions on a terminal: prompts, interrupts, refusals, compaction, /clear and signals."""

import signal

import pytest

from tests.conftest import until
from tests.real.environment import client_environment, needs_claude, settle, version
from tests.real.recorded_sessions import compare_transcripts, events, session
from tests.real.scenarios import GREET, bash
from tests.real.script import Say, Script, Slow
from tests.real.terminal import HAS_TMUX, on_terminal

pytestmark = [needs_claude, pytest.mark.skipif(not HAS_TMUX, reason="no tmux")]
HELLO = Script("hello", [[Say("Good morning, said the quokka.")]])
AGAIN = Script("again", [[Say("Welcome back, said the quokka.")]])
GREETED = Script("greeted", [[Say("Be greeted.")]])
TOUCHING = Script("touching", [[bash("touch it")], [Say("It is touched.")]])
THINKING = Script("thinking", [Slow([Say("Let me think.")], 30)])
GONE_SECS = 150  # The reaper looks for ended processes every minute.
SLEEPING = Script(
    "sleeping", [[bash('python3 -c "import time; time.sleep(60)"')], [Say("It slept.")]]
)


def test_interrupt_refusal_compaction_and_clear_are_recorded() -> None:
    with client_environment(HELLO, TOUCHING, THINKING, GREETED, AGAIN) as person:
        for path, text in GREET.items():
            person.write(path, text)
        with on_terminal(person) as terminal:
            terminal.say(HELLO.prompt("Please work"))
            terminal.shows("said the quokka")
            terminal.say(TOUCHING.prompt("Please touch"))
            terminal.shows("Do you want to proceed?")
            terminal.press("Escape")
            terminal.shows("What should Claude do instead?")
            terminal.press("C-u")  # Older clients offer the interrupted prompt again.
            terminal.say("/rename numbat")
            terminal.shows("renamed to: numbat")
            terminal.say(f"/greet the sun <<{GREETED.name}>>")
            terminal.shows("Be greeted.")
            terminal.wait_for_end_of_turn()
            terminal.say(THINKING.prompt("Please think"))
            terminal.shows("esc to interrupt")
            until(lambda: person.api.requests[-1].script == "thinking", "it does not think")
            terminal.press("Escape")
            until(lambda: terminal.screen.count("What should Claude do instead?") == 2, "no Esc")
            terminal.say("/compact")
            terminal.shows("Compacted")
            terminal.say("/clear")
            until(lambda: "Compacted" not in terminal.screen, "it is not cleared")
            terminal.say(AGAIN.prompt("Please go on"))
            terminal.shows("Welcome back")
            terminal.wait_for_end_of_turn()
            terminal.press("C-c")
            terminal.shows("again to exit")
            terminal.press("C-c")
            terminal.wait()
        settle(person)
        second, first = person.json("sessions", "--all")["sessions"]
        # Older clients send the command first, newer ones the prompt.
        assert sorted(events(person, first)) == sorted(
            [
                ("started", "startup"),
                ("prompt", HELLO.prompt("Please work")),
                ("prompt", TOUCHING.prompt("Please touch")),
                ("note", "Permission asked: Bash (By the fake)"),
                ("prompt", f"/greet the sun <<{GREETED.name}>>"),
                ("command", f"greet the sun <<{GREETED.name}>>"),
                ("prompt", THINKING.prompt("Please think")),
                ("note", "Compaction: manual"),
                ("ended", "clear"),
            ]
        )
        assert events(person, second) == [
            ("started", "clear"),
            ("prompt", AGAIN.prompt("Please go on")),
            ("ended", "prompt_input_exit"),
        ]
        assert [(each["calls"], each["failed"]) for each in (first, second)] == [(1, 0), (0, 0)]
        compare_transcripts(person)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_to_the_client_in_a_call_ends_the_session(number: int) -> None:
    with client_environment(SLEEPING) as person:
        with on_terminal(person, "--allowedTools", "Bash") as terminal:
            terminal.say(SLEEPING.prompt("Please sleep"))
            until(lambda: session(person).get("calls") == 1, "no call")
            terminal.end(number)
        until(lambda: session(person)["status"] == "ended", "it never ends", GONE_SECS)
        settle(person)
        # With SIGTERM 2.1.197 may see its command die and report the call as failed.
        may_fail = number == signal.SIGTERM and version() < (2, 1, 330)
        assert session(person)["calls"] == 1
        assert session(person)["failed"] <= may_fail
        compare_transcripts(person)
