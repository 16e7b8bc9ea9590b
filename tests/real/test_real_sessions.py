"""Records of sessions that are resumed, forked, run in a worktree or ended by a signal."""

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import until
from tests.real.environment import client_environment, needs_claude, settle
from tests.real.messages_api import USAGE
from tests.real.person import Person
from tests.real.scenarios import SUB, TOOLS, agent, bash
from tests.real.script import AGENT_ID, Call, Refuse, Say, Script, Slow
from tests.real.test_real_kills import (
    all_have_ended,
    compare_archives,
    compare_calls,
    compare_costs,
    store_hook_payloads,
)

pytestmark = needs_claude
WORK = Script("work", [[bash("echo one")], [Say("One is done, quokka.")]])
FAILS = Script("fails", [[bash("exit 3", fails=True), bash("pwd")], [Say("It failed, quokka.")]])
MORE = Script("more", [[Say("Nothing is left, quokka.")]])
WAIT = "python3 -c 'import time; time.sleep(4)'"  # A background agent has ended by then.
MESSAGE = {"to": AGENT_ID, "summary": "go on", "message": MORE.prompt("Go on")}
WRITES = Script(
    "writes",
    [
        [agent(SUB)],
        [bash(WAIT)],
        [Call("SendMessage", MESSAGE)],
        [bash(WAIT)],
        [Say("It is over.")],
    ],
)
FORKS = Script(
    "forks",
    [[Call("Skill", {"skill": "forked", "args": SUB.prompt("the moon")})], [Say("It is back.")]],
)
GREET = "---\nname: greet\ndescription: Greet\n---\nGreet well.\n"
FORKED = "---\nname: forked\ndescription: Look\ncontext: fork\n---\nLook around.\n"


@dataclass
class PlayedSession:
    """Scripts that a session has played, and how many words its fork copied from the parent."""

    session: str
    scripts: list[Script] = field(default_factory=list)
    copied: int = 0  # occurrences of the word that the fork copied from its parent

    @property
    def calls(self) -> list[Call]:
        return [call for script in self.scripts for call in script.calls]

    @property
    def answers(self) -> int:
        """Number of requests of the session that were answered."""
        return sum(len(script.turns) for script in self.scripts)

    @property
    def words(self) -> int:
        said = [piece.text for script in self.scripts for piece in script.said]
        return sum("quokka" in text for text in said)


@dataclass
class Runs:
    """All runs of a user, compared with the scripts at the end."""

    person: Person
    played: dict[str, PlayedSession] = field(default_factory=dict)
    dollars: float = 0.0  # price of one request, as the client reports it

    def ask(self, script: Script, *options: str, forks: str = "") -> str:
        """Run the client and return its session; `forks` is the session that it forks."""
        report = self.person.ask(script.prompt("Please work"), *options)
        session = str(report["session_id"])
        parent = self.played.get(forks, PlayedSession(""))
        is_known = session in self.played
        assert not (forks and is_known)
        self.dollars = self.dollars or report["total_cost_usd"] / len(script.turns)
        played = self.played.setdefault(
            session, PlayedSession(session, [], parent.words + parent.copied)
        )
        played.scripts.append(script)
        return session

    def compare(self) -> None:
        """Compare every session, archive, cost and search hit with the scripts."""
        settle(self.person)
        listed = self.person.json("sessions", "--all")["sessions"]
        assert {each["id"] for each in listed} == {*self.played}
        archives = self.person.json("archive", "list")["archives"]
        assert {each["session_id"] for each in archives} == {*self.played}
        for archive in archives:
            self.compare_archive(self.played[archive["session_id"]], archive)
        for played in self.played.values():
            self.compare_session(played)
        self.compare_costs()
        self.compare_search()

    def compare_session(self, played: PlayedSession) -> None:
        shown = self.person.json("session", "show", played.session)
        row = shown["session"]
        assert row["status"] == "ended"
        failed = sum(call.fails for call in played.calls)
        assert (row["calls"], row["failed"]) == (len(played.calls), failed)
        said = [event["text"] for event in shown["events"] if event["kind"] == "prompt"]
        assert said == [script.prompt("Please work") for script in played.scripts]

    def compare_archive(self, played: PlayedSession, archive: dict[str, Any]) -> None:
        """The archive has the transcript's lines; its metadata leave out what a fork copied."""
        (transcript,) = self.person.transcripts(played.session)
        lines = self.person.hivepipe("archive", "show", played.session, "--lines").splitlines()
        assert len(lines) == len(transcript.read_bytes().splitlines())
        meta = archive["meta"]
        assert meta["message_count"] == played.answers + len(played.scripts)
        counted = {tool: number["calls"] for tool, number in meta["tools"].items()}
        assert counted == ({"Bash": len(played.calls)} if played.calls else {})
        assert meta["tokens"]["output"] == played.answers * int(str(USAGE["output_tokens"]))
        assert meta["cost_usd"] == pytest.approx(played.answers * self.dollars, abs=1e-4)
        row = self.person.json("session", "show", played.session)["session"]
        assert meta["started_at"][:16] == row["created_at"][:16]

    def compare_costs(self) -> None:
        costs = self.person.json("costs", "--by", "session")
        found = {each["session"]: each["messages"] for each in costs["costs"]}
        assert found == {id: played.answers for id, played in self.played.items()}
        served = sum(not request.is_refused for request in self.person.api.requests)
        assert costs["total"]["messages"] == served
        assert costs["total"]["tokens"]["output"] == served * int(str(USAGE["output_tokens"]))
        assert costs["total"]["cost_usd"] == pytest.approx(served * self.dollars, abs=1e-4)

    def compare_search(self) -> None:
        """The word is found in each transcript that contains it, including copies in forks."""
        hits = self.person.json("search", "quokka", "--limit", "100")["hits"]
        for played in self.played.values():
            own = [hit for hit in hits if hit["session_id"] == played.session]
            assert sum(hit["who"] == "claude" for hit in own) == played.words + played.copied


@pytest.fixture
def runs() -> Iterator[Runs]:
    with client_environment(WORK, FAILS, MORE, WRITES, FORKS, SUB, is_recorded=False) as person:
        yield Runs(person)


def test_resumed_and_forked_sessions_are_recorded_separately(runs: Runs) -> None:
    first = runs.ask(WORK)
    assert runs.ask(MORE, "--continue") == first
    assert runs.ask(FAILS, "--resume", first) == first
    fork = runs.ask(WORK, "--resume", first, "--fork-session", forks=first)
    assert runs.ask(MORE, "--continue") == fork
    other = runs.ask(FAILS, "--continue", "--fork-session", forks=fork)
    again = runs.ask(MORE, "--resume", first, "--fork-session", forks=first)
    assert runs.ask(MORE, "--resume", first) == first
    assert runs.ask(WORK, "--resume", other) == other
    assert len({first, fork, other, again}) == 4
    runs.compare()


@contextmanager
def inside(person: Person, folder: Path) -> Iterator[None]:
    """Change the user's working folder while the context lasts."""
    before, person.project = person.project, folder
    try:
        yield
    finally:
        person.project = before


def test_a_worktree_and_its_checkout_show_the_same_records(runs: Runs) -> None:
    person = runs.person
    author = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    commit = ("commit", "-q", "--allow-empty", "-m", "First")
    subprocess.run(["git", *author, *commit], cwd=person.project, check=True)
    session = runs.ask(WORK, "-w", "side")
    runs.ask(FAILS)
    tree = person.project / ".claude" / "worktrees" / "side"
    with inside(person, tree):
        assert runs.ask(MORE, "--continue") == session
        runs.ask(FAILS, "--resume", session, "--fork-session", forks=session)
        runs.compare()
    runs.compare()
    shown = {person.json("session", "show", id)["session"]["project"] for id in runs.played}
    assert shown == {str(person.project)}


def offered(person: Person) -> set[str]:
    """Return the tools that the client has offered so far."""
    bodies = [request.body for request in person.api.requests]
    return {tool["name"] for body in bodies for tool in body.get("tools", [])}


def test_an_agent_continues_after_a_message(runs: Runs) -> None:
    person = runs.person
    report = person.ask(WRITES.prompt("Please work"), tools=f"{TOOLS},SendMessage")
    if not {"SendMessage", "ToolSearch"} & offered(person):
        pytest.skip("this Claude Code has no SendMessage")
    settle(person)
    shown = person.json("session", "show", report["session_id"])
    calls = len(WRITES.calls) + len(SUB.calls) + len(MORE.calls)
    assert (shown["session"]["calls"], shown["session"]["failed"]) == (calls, 0)
    (row,) = person.json("agents")["agents"]
    assert (row["type"], row["status"]) == ("general-purpose", "completed")
    served = [request.script for request in person.api.requests if not request.is_refused]
    assert (served.count("sub"), served.count("more")) == (2, 1)
    total = person.json("costs")["total"]
    assert total["messages"] == len(served)
    assert total["cost_usd"] == pytest.approx(report["total_cost_usd"], abs=1e-4)
    of_agent = [each for each in person.json("costs", "--by", "agent")["costs"] if each["agent"]]
    assert [each["messages"] for each in of_agent] == [3]
    said = [event["text"] for event in shown["events"] if event["kind"] == "prompt"]
    assert said == [WRITES.prompt("Please work")]


def test_an_agent_that_the_api_refuses_has_failed() -> None:
    refused = Script("refused", [Refuse(400, "invalid_request_error")])
    asks = Script("asks", [[agent(refused)], [Say("It is back.")]])
    with client_environment(refused, asks) as person:
        person.ask(asks.prompt("Please work"))
        settle(person)
        (row,) = person.json("agents")["agents"]
        assert (row["status"], row["outcome"]) == ("failed", "failed")
        assert "API Error: 400" in row["error"]


def used(person: Person, *options: str) -> dict[str, int]:
    """Return how often each skill, or each typed command, was used."""
    (found,) = (value for key, value in person.json("skills", *options).items() if key != "schema")
    return {each["name"]: each["count"] for each in found}


def test_skills_and_commands_are_recorded_however_they_are_called(runs: Runs) -> None:
    person = runs.person
    person.write(".claude/skills/greet/SKILL.md", GREET)
    person.write(".claude/skills/forked/SKILL.md", FORKED)
    person.write(".claude/commands/look.md", "Look at $ARGUMENTS.\n")
    typed = str(person.ask(f"/greet {MORE.prompt('the sun')}")["session_id"])
    called = str(person.ask(FORKS.prompt("Please work"))["session_id"])
    looked = str(person.ask(f"/look {MORE.prompt('here')}")["session_id"])
    local = str(person.ask("/context")["session_id"])
    settle(person)
    assert used(person) == {"forked": 1}
    # A typed command is a skill only with a tool call.
    assert used(person, "--commands") == {"greet": 1, "look": 1}
    rows = {each["id"]: each for each in person.json("sessions", "--all")["sessions"]}
    assert {typed, called, looked} <= {*rows} <= {typed, called, looked, local}
    assert {each["status"] for each in rows.values()} == {"ended"}
    assert [rows[id]["calls"] for id in (typed, called, looked)] == [0, 1 + len(SUB.calls), 0]
    (row,) = person.json("agents")["agents"]
    assert (row["session_id"], row["status"]) == (called, "completed")
    served = sum(not request.is_refused for request in person.api.requests)
    assert person.json("costs")["total"]["messages"] == served


WHOLE = Script("whole", [[Say("This is all.")]])
HANGS = "python3 -c 'import time; time.sleep(30)'"
CALLS = Script("calls", [[bash(f"touch begun; {HANGS}")], [Say("Never said.")]])
STREAMS = Script("streams", [[bash("pwd")], Slow([Say("Half of this, quokka.")], 30)])
GONE_SECS = 150  # The reaper looks for ended processes every minute.


@contextmanager
def running(person: Person, script: Script) -> Iterator["subprocess.Popen[bytes]"]:
    """Start the client; kill it at the end of the context."""
    words = [str(person.claude), "-p", script.prompt("Please work"), "--allowedTools", TOOLS]
    quiet = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
    }
    client = subprocess.Popen(words, cwd=person.project, env=person.env, **quiet)
    try:
        yield client
    finally:
        client.kill()
        client.wait()


def end_in_the_middle(person: Person, script: Script, number: signal.Signals) -> None:
    """Send the client a signal during its last call or its last answer."""
    (person.project / "begun").unlink(missing_ok=True)
    wanted = len(person.api.requests) + len(script.turns)

    def is_there() -> bool:
        begun = (person.project / "begun").exists()
        return begun if script is CALLS else len(person.api.requests) == wanted

    with running(person, script) as client:
        until(is_there, f"the script {script.name} never came so far", 60)
        time.sleep(0.5)
        client.send_signal(number)
        client.wait(30)


def test_a_signal_in_a_call_or_a_stream_loses_no_event() -> None:
    with client_environment(CALLS, STREAMS, WHOLE, is_recorded=False) as person:
        stored = store_hook_payloads(person)
        for number in (signal.SIGINT, signal.SIGTERM):
            for script in (CALLS, STREAMS):
                end_in_the_middle(person, script, number)
        report = person.ask(WHOLE.prompt("Please answer"))  # gives the price of an answer
        settle(person)
        until(lambda: all_have_ended(person), "a session never ends", GONE_SECS)
        settle(person)
        rows = person.json("sessions", "--all")["sessions"]
        assert sorted(each["calls"] for each in rows) == [0, 1, 1, 1, 1]
        compare_calls(person, stored)
        compare_archives(person)
        compare_costs(person, report)
