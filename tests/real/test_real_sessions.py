"""Sessions that go on, fork, work in a worktree or are ended from outside: what is recorded."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.real.messages_api import USAGE
from tests.real.person import Person
from tests.real.scenarios import bash
from tests.real.scene import living, needs_claude, settle
from tests.real.script import Call, Say, Script

pytestmark = needs_claude
WORK = Script("work", [[bash("echo one")], [Say("One is done, quokka.")]])
FAILS = Script("fails", [[bash("exit 3", fails=True), bash("pwd")], [Say("It failed, quokka.")]])
MORE = Script("more", [[Say("Nothing is left, quokka.")]])


@dataclass
class Played:
    """What a session was asked, in order, and which session it forked when it had said how much."""

    session: str
    scripts: list[Script] = field(default_factory=list)
    copied: int = 0  # answers with the word that it took from its parent

    @property
    def calls(self) -> list[Call]:
        return [call for script in self.scripts for call in script.calls]

    @property
    def answers(self) -> int:
        """How many requests it made that were answered."""
        return sum(len(script.turns) for script in self.scripts)

    @property
    def words(self) -> int:
        said = [piece.text for script in self.scripts for piece in script.said]
        return sum("quokka" in text for text in said)


@dataclass
class Day:
    """The runs of a person, each compared with the script in the end."""

    person: Person
    played: dict[str, Played] = field(default_factory=dict)
    dollars: float = 0.0  # of one request, as the client says

    def ask(self, script: Script, *options: str, forks: str = "") -> str:
        """Run the client; `forks`: the session that it forks. Return its session."""
        report = self.person.ask(script.prompt("Please work"), *options)
        session = str(report["session_id"])
        parent = self.played.get(forks, Played(""))
        is_known = session in self.played
        assert not (forks and is_known)
        self.dollars = self.dollars or report["total_cost_usd"] / len(script.turns)
        played = self.played.setdefault(session, Played(session, [], parent.words + parent.copied))
        played.scripts.append(script)
        return session

    def compare(self) -> None:
        """Compare every session, archive, cost and hit with what was ordered, both ways."""
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

    def compare_session(self, played: Played) -> None:
        shown = self.person.json("session", "show", played.session)
        row = shown["session"]
        assert row["status"] == "ended"
        failed = sum(call.fails for call in played.calls)
        assert (row["calls"], row["failed"]) == (len(played.calls), failed)
        said = [event["text"] for event in shown["events"] if event["kind"] == "prompt"]
        assert said == [script.prompt("Please work") for script in played.scripts]

    def compare_archive(self, played: Played, archive: dict[str, Any]) -> None:
        """Its lines are the transcript's; its metadata have nothing that a fork copied."""
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
        """A word of the scripts is found in each transcript that has it, copies among them."""
        hits = self.person.json("search", "quokka", "--limit", "100")["hits"]
        for played in self.played.values():
            own = [hit for hit in hits if hit["session_id"] == played.session]
            assert sum(hit["who"] == "claude" for hit in own) == played.words + played.copied


@pytest.fixture
def day() -> Iterator[Day]:
    with living(WORK, FAILS, MORE) as person:
        yield Day(person)


def test_sessions_that_go_on_and_fork_are_each_their_own(day: Day) -> None:
    first = day.ask(WORK)
    assert day.ask(MORE, "--continue") == first
    assert day.ask(FAILS, "--resume", first) == first
    fork = day.ask(WORK, "--resume", first, "--fork-session", forks=first)
    assert day.ask(MORE, "--continue") == fork
    other = day.ask(FAILS, "--continue", "--fork-session", forks=fork)
    again = day.ask(MORE, "--resume", first, "--fork-session", forks=first)
    assert day.ask(MORE, "--resume", first) == first
    assert day.ask(WORK, "--resume", other) == other
    assert len({first, fork, other, again}) == 4
    day.compare()
