"""Texts that hivepipe gives Claude: each is in the next request to the API, exactly once."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import until
from tests.real.environment import client_environment, needs_claude, settle, version
from tests.real.messages_api import Request
from tests.real.person import Person
from tests.real.scenarios import bash
from tests.real.script import Say, Script
from tests.real.terminal import HAS_TMUX, on_terminal

pytestmark = needs_claude
SAME = bash("echo same >> ran.txt")
STUCK = Script("stuck", [*[[SAME]] * 10, [Say("I give up, quokka.")]])
HELLO = Script("hello", [[Say("Good morning, said the quokka.")]])
WORK = Script("work", [[bash("echo worked >> ran.txt")], [Say("It is done, quokka.")]])
CALLED = (
    "Bash was called {} times with the same arguments among the last 40 calls, "
    "and nothing else has changed in between."
)
WARNING = (
    f"hivepipe guard, rule loop: {CALLED} From {{}} on it counts as a loop. If you are stuck, do "
    "something else."
)
DENIAL = f"Denied by the hivepipe guard, rule loop: {CALLED} Do something else, or ask the user."
on_a_terminal = pytest.mark.skipif(not HAS_TMUX, reason="no tmux")


@pytest.fixture
def ann() -> Iterator[Person]:
    with client_environment(STUCK, HELLO, WORK) as person:
        # A fast start, because the guard counts in Redis and a script takes only seconds.
        person.hivepipe("up", "-d")
        yield person


def strings(value: Any) -> Iterator[str]:
    """Yield every string in a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings(each)


def count_in(request: Request, text: str) -> int:
    """Return how often a text occurs in a request, in any field."""
    return sum(each.count(text) for each in strings(request.body))


def occurrences(person: Person, text: str) -> list[int]:
    """Return how often a text occurs in each request, in order."""
    return [count_in(request, text) for request in person.api.requests]


def repeats_of_hook_text() -> int:
    """Return how often a request has a hook's text: 2.1.132 also sends it in a second form."""
    return 2 if version() < (2, 1, 197) else 1


def refused(request: Request) -> list[str]:
    contents = [each["content"] for each in request.body["messages"]]
    blocks = [block for each in contents if isinstance(each, list) for block in each]
    wrong = ["".join(strings(each["content"])) for each in blocks if each.get("is_error")]
    return [text.removeprefix("PreToolUse:Bash hook error: ") for text in wrong]


def commands_run(person: Person) -> int:
    path = person.project / "ran.txt"
    return len(path.read_text().splitlines()) if path.exists() else 0


def ask(person: Person, script: Script, *options: str, words: str = "Please work") -> str:
    return str(person.ask(script.prompt(words), *options)["session_id"])


def user_settings(person: Person, text: str) -> None:
    path = person.home / ".config" / "hivepipe" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_loop_is_reported_once_with_the_call_that_makes_it_one(ann: Person) -> None:
    ask(ann, STUCK)
    assert occurrences(ann, WARNING.format(8, 15)) == [0] * 8 + [1] * 3
    assert occurrences(ann, "hivepipe guard") == [0] * 8 + [1] * 3
    assert commands_run(ann) == 10
    assert refused(ann.api.requests[-1]) == []


@pytest.mark.parametrize("options", [(), ("--permission-mode", "bypassPermissions")])
def test_a_loop_is_denied_where_the_mode_says_so(ann: Person, options: tuple[str, ...]) -> None:
    ann.env["IS_SANDBOX"] = "1"  # else the client refuses to bypass permissions for root
    ann.hivepipe("guard", "mode", "all")
    ann.env["HIVEPIPE_GUARD_LOOP"] = "3 5"
    ask(ann, STUCK, *options)
    assert occurrences(ann, WARNING.format(3, 5)) == [0] * 3 + [1] * 8
    denials = [DENIAL.format(count) for count in range(5, 11)]
    assert refused(ann.api.requests[-1]) == denials
    for number, text in enumerate(denials):
        said = occurrences(ann, text)
        assert said[: 5 + number] == [0] * (5 + number)
        assert {*said[5 + number :]} == {repeats_of_hook_text()}
    assert commands_run(ann) == 4
    settle(ann)
    (row,) = ann.json("sessions", "--all")["sessions"]
    assert row["denied"] == len(denials)


def test_a_cancelled_task_is_announced_with_the_next_prompt_and_calls_are_denied(
    ann: Person,
) -> None:
    ann.hivepipe("task", "add", "Ship it", "--id", "ship")
    ann.env["HIVEPIPE_TASK_ID"] = "ship"
    session = ask(ann, WORK)
    assert (occurrences(ann, "was cancelled"), commands_run(ann)) == ([0, 0], 1)
    ann.hivepipe("task", "cancel", "ship", "--reason", "The numbat did it")
    because = "Task ship was cancelled. The reason that was given:\n> The numbat did it\n"
    ask(ann, WORK, "--resume", session)
    assert occurrences(ann, f"{because}Do not go on with it.") == [0, 0, 1, 1]
    stop = "Stop here, call no more tools, and say how far you got. The user can reopen it."
    assert refused(ann.api.requests[-1]) == [f"{because}{stop}"]
    ask(ann, HELLO, "--resume", session)
    # A prompt without news repeats the notice.
    assert count_in(ann.api.requests[-1], f"{because}Do not go on with it.") == 1
    assert commands_run(ann) == 1


def briefing(person: Person, *options: str) -> str:
    """Return the briefing of a session with these options, once all events are stored."""
    settle(person)
    return str(person.json("context", *options)["text"])


def test_each_session_except_the_first_is_briefed_once(ann: Person) -> None:
    first = ask(ann, HELLO)
    assert occurrences(ann, "The last session here") == [0]
    until(lambda: "Its summary:" in briefing(ann), "it is not summarised")
    text = briefing(ann)
    assert text.startswith(f"The last session here, {first}, ended")
    assert text.endswith("> Outcome: success. Claude's last words: Good morning, said the quokka.")
    second = ask(ann, WORK)
    assert occurrences(ann, text) == [0, 1, 1]
    assert occurrences(ann, "The last session here") == [0, 1, 1]
    resumed = briefing(ann, "--source", "resume", "--session", second)
    assert resumed == text  # the summary of the first session, not of the resumed one
    ask(ann, HELLO, "--resume", second)
    # The briefing of the resumption. Only old clients keep that of the start as well.
    assert count_in(ann.api.requests[-1], text) == repeats_of_hook_text()
    assert second not in resumed


def test_trusted_notes_of_the_project_are_quoted(ann: Person) -> None:
    ann.write(".claude-state/progress.md", "The parser is half done.\nAsk the numbat.\n")
    ask(ann, HELLO)
    ann.hivepipe("trust", "--yes")
    text = briefing(ann)
    ask(ann, HELLO)
    assert "> The parser is half done.\n> Ask the numbat." in text
    assert occurrences(ann, "The parser is half done.") == [0, 1]
    assert occurrences(ann, text) == [0, 1]


def test_a_task_that_a_session_left_open_is_in_the_next_briefing(ann: Person) -> None:
    ann.hivepipe("task", "add", "Ship the numbat", "--id", "ship")
    ann.env["HIVEPIPE_TASK_ID"] = "ship"
    ask(ann, HELLO)
    assert occurrences(ann, "The task of this session is ship:\n> Ship the numbat") == [1]
    del ann.env["HIVEPIPE_TASK_ID"]
    ann.hivepipe("task", "progress", "ship", "Half of it is packed")
    text = briefing(ann)
    assert "An open task that no session works on: ship:\n> Ship the numbat" in text
    ask(ann, HELLO)
    assert occurrences(ann, text) == [0, 1]
    assert occurrences(ann, "> Half of it is packed") == [0, 1]
    ann.hivepipe("task", "done", "ship")
    assert "Ship the numbat" not in briefing(ann)
    ask(ann, HELLO)
    assert occurrences(ann, "Ship the numbat")[2] == 0


def test_only_the_briefing_of_a_profile_names_it(ann: Person) -> None:
    soul = ann.root / "SOUL.md"
    soul.write_text("You are the numbat of this house. " + "You count ants, one by one. " * 5)
    ann.hivepipe("profile", "add", "numbat", "--role", "worker")
    ann.hivepipe("profile", "put", "numbat", "SOUL.md", str(soul))
    text = briefing(ann, "--profile", "numbat")
    ask(ann, HELLO)
    ann.env["HIVEPIPE_AGENT_ID"] = "numbat"
    ask(ann, HELLO)
    said = "This session is one of the profile numbat, a worker of its swarm."
    assert text.startswith(said)
    assert occurrences(ann, text) == [0, 1]
    assert occurrences(ann, said) == [0, 1]
    assert occurrences(ann, "You are the numbat of this house.") == [0, 1]


def test_texts_are_added_to_prompts_with_their_keywords(ann: Person) -> None:
    user_settings(
        ann,
        """
[[context]]
keywords = ["deploy"]
text = "Staging first: `make deploy-staging`."
""",
    )
    ann.hivepipe("init", "--no-probe", "--local")
    said = "Staging first: `make deploy-staging`."
    ask(ann, HELLO, words="We redeployed it, did we")
    ask(ann, HELLO, words="Please deploy, and deploy again")
    assert occurrences(ann, said) == [0, 1]


def test_memories_are_added_once_to_matching_prompts(ann: Person) -> None:
    user_settings(ann, "memory_recall = true\n")
    ann.hivepipe("init", "--no-probe", "--local")
    session = ask(ann, HELLO)
    settle(ann)
    (transcript,) = ann.transcripts(session)
    memory = transcript.parent / "memory" / "ants.md"
    memory.parent.mkdir(exist_ok=True)
    memory.write_text("The anthill behind the eucalyptus is counted on Tuesdays.\n")
    ask(ann, HELLO)
    settle(ann)
    words = "When is the anthill behind the eucalyptus counted"
    until(lambda: "Tuesdays" in ann.hivepipe("context", "--prompt", words, expect=None),
          "it is not indexed")  # fmt: skip
    text = ann.json("context", "--prompt", HELLO.prompt(words))["text"]
    assert text.endswith("> The anthill behind the eucalyptus is counted on Tuesdays.")
    before = len(ann.api.requests)
    assert occurrences(ann, "counted on Tuesdays") == [0] * before
    session = ask(ann, HELLO, words=words)
    assert occurrences(ann, text) == [0] * before + [1]
    assert occurrences(ann, "Notes from earlier sessions") == [0] * before + [1]
    settle(ann)
    assert "ants.md" in ann.hivepipe("memory", "list")


@on_a_terminal
def test_compacted_or_cleared_sessions_are_briefed_again(ann: Person) -> None:
    ann.hivepipe("task", "add", "Ship the numbat", "--id", "ship")
    ann.env["HIVEPIPE_TASK_ID"] = "ship"
    with on_terminal(ann) as terminal:
        # A single message is too short to compact.
        for number, words in enumerate(("Hello", "Please work"), 1):
            terminal.say(HELLO.prompt(words))
            until(lambda: len(conversation(ann)) == number, "no request")  # noqa: B023
            terminal.wait_for_end_of_turn()
        settle(ann)
        terminal.say("/compact")
        terminal.shows("Compacted")
        (session,) = ann.json("sessions")["sessions"]
        goal = briefing(ann, "--source", "compact", "--session", session["id"])
        terminal.say(HELLO.prompt("Go on"))
        until(lambda: len(conversation(ann)) == 3, "it does not go on")
        terminal.wait_for_end_of_turn()
        assert goal.startswith("Before the compaction this session worked on task ship:\n> Ship")
        assert "The last prompt of the user before the compaction was:\n> Please work" in goal
        assert [count_in(each, goal) for each in conversation(ann)] == [0, 0, 1]
        cleared = briefing(ann, "--source", "clear", "--task", "ship")
        terminal.say("/clear")
        until(lambda: "Go on" not in terminal.screen, "it is not cleared")
        terminal.say(HELLO.prompt("Anew"))
        until(lambda: len(conversation(ann)) == 4, "it does not begin anew")
        assert cleared == "The task of this session is ship:\n> Ship the numbat"
        assert [count_in(each, cleared) for each in conversation(ann)] == [1, 1, 0, 1]
        assert [count_in(each, "Before the compaction") for each in conversation(ann)] == [
            0,
            0,
            1,
            0,
        ]


def conversation(person: Person) -> list[Request]:
    """Return the requests that answer prompts, without titles and compactions."""
    return [each for each in person.api.requests if each.script == HELLO.name]
