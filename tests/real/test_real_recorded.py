"""Records besides calls: compaction summaries, models, titles, forks, errors and costs."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hivepipe.orchestrator.stream import read_stream
from tests.conftest import until
from tests.real.environment import client_environment, needs_claude, settle, version
from tests.real.messages_api import COMPACTION, SUMMARY, USAGE
from tests.real.person import Person
from tests.real.scenarios import SUB, agent, bash
from tests.real.script import Refuse, Say, Script

pytestmark = needs_claude
WORK = Script("work", [[bash("echo one")], [Say("Done, quokka.")]])
MORE = Script("more", [[Say("More, quokka.")]])
REFUSED = Script("refused", [Refuse(400, "invalid_request_error")])
WHOSE = Script("whose", [[bash("echo $HIVEPIPE_SESSION_ID > whose.txt")], [Say("Mine.")]])
WITH_AGENT = Script("with-agent", [[agent(SUB)], [Say("It looked around.")]])
FRAME = ("This session is being continued", "Continue the conversation", "full transcript")


@pytest.fixture
def ann() -> Iterator[Person]:
    with client_environment(WORK, MORE, REFUSED, WHOSE, WITH_AGENT, SUB) as person:
        yield person


def say(person: Person, words: str, session: str = "", *options: str) -> str:
    """Send a prompt in a new or resumed session and return the session."""
    resumed = ["--resume", session] if session else []
    return str(person.ask(words, *resumed, *options)["session_id"])


def ask(person: Person, script: Script, session: str = "", *options: str) -> str:
    return say(person, script.prompt("Please work"), session, *options)


def last_request(person: Person) -> str:
    return json.dumps(person.api.requests[-1].body["messages"])


def test_a_compaction_leaves_its_summary_without_its_instructions(ann: Person) -> None:
    """The next briefing must not tell Claude to continue the compacted session's work."""
    session = ask(ann, WORK)
    say(ann, "/compact keep names", session)
    assert ann.api.requests[-1].script == COMPACTION
    settle(ann)
    (entry,) = ann.json("archive", "list")["archives"]
    assert entry["meta"]["compact_summary"] == SUMMARY
    row = shown(ann, session)["session"]
    assert (row["status"], row["source"]) == ("ended", "startup")
    (summary,) = ann.json("summaries", "list")["summaries"]
    ask(ann, MORE)
    for said in (summary["summary"], last_request(ann)):
        assert "a numbat was wanted" in said
        assert not [words for words in FRAME if words in said]


def shown(person: Person, session: str) -> dict[str, Any]:
    found: dict[str, Any] = person.json("session", "show", session)
    return found


def test_model_and_effort_of_sessions_and_agents_are_known(ann: Person) -> None:
    """Hooks of `-p` carry no model, so it is taken from the transcript's messages."""
    session = ask(ann, WITH_AGENT)
    settle(ann)
    models = {each.body["model"] for each in ann.api.requests if each.script == WITH_AGENT.name}
    row = shown(ann, session)["session"]
    assert {row["model"]} == models
    levels = [each.body.get("output_config", {}).get("effort") for each in ann.api.requests]
    if version() >= (2, 1, 197):  # Hooks of older versions carry no effort.
        assert row["effort"] == next(filter(None, levels), None)
    (agent_row,) = ann.json("agents")["agents"]
    assert agent_row["model"]
    agent_row["model"] = agent_row["model"].partition("[")[0]  # [1m] is the size of its context
    of_agent = {each.body["model"] for each in ann.api.requests if each.script == SUB.name}
    assert {agent_row["model"]} == of_agent
    assert agent_row["tokens"] > 0
    assert agent_row["duration_ms"] > 0


@pytest.mark.skipif(needs_claude.args[0] or version() < (2, 1, 197), reason="no --name yet")
def test_a_session_has_the_title_that_the_user_gave(ann: Person) -> None:
    session = ask(ann, WORK, "", "--name", "Named one")
    settle(ann)
    assert shown(ann, session)["session"]["objective"] == "Named one"
    if version() >= (2, 1, 330):  # Older versions rename only on a terminal.
        say(ann, "/rename Fine name", session)
        settle(ann)
        assert shown(ann, session)["session"]["objective"] == "Fine name"


def test_a_fork_leaves_its_parent_unchanged(ann: Person) -> None:
    """Up to 2.1.197 the SessionStart of a fork carries the id of its parent."""
    parent = ask(ann, WORK)
    settle(ann)
    before = shown(ann, parent)["session"]
    fork = ask(ann, WHOSE, parent, "--fork-session")
    settle(ann)
    after = shown(ann, parent)["session"]
    assert fork != parent
    names = ("status", "ended_at", "end_reason", "source", "prompts")
    assert {name: after[name] for name in names} == {name: before[name] for name in names}
    assert shown(ann, fork)["session"]["status"] == "ended"
    if version() >= (2, 1, 197):  # Older versions set the variable only by a hook.
        assert (ann.project / "whose.txt").read_text().strip() == fork


def test_an_error_has_the_text_of_the_api(ann: Person) -> None:
    session = str(ann.ask(REFUSED.prompt("Please work"), expect=1)["session_id"])
    settle(ann)

    def errors() -> list[str]:
        return [each["text"] for each in shown(ann, session)["events"] if each["kind"] == "error"]

    until(errors, "no error is recorded")  # The client ends before the hook of the error starts.
    (error,) = errors()
    assert "by the fake" in error
    assert "unknown" not in error


@pytest.mark.skipif(needs_claude.args[0] or version() < (2, 1, 330), reason="nothing counts them")
def test_costs_equal_the_clients_own(ann: Person) -> None:
    """Costs include agents, resumed runs, forks, and compactions, which are in no transcript."""
    session = ask(ann, WORK)
    say(ann, "/compact", session)
    ask(ann, WITH_AGENT, session)
    fork = ask(ann, WORK, session, "--fork-session")
    report = ann.ask(MORE.prompt("Please work"), "--resume", fork)
    settle(ann)
    total = ann.json("costs")["total"]
    served = sum(not each.is_refused for each in ann.api.requests)
    assert total["messages"] == served - 1
    assert total["tokens"]["output"] == served * USAGE["output_tokens"]
    assert total["cost_usd"] == pytest.approx(report["total_cost_usd"], abs=1e-4)
    say(ann, "/compact", fork)
    settle(ann)
    by_session = ann.json("costs", "--by", "session")
    assert by_session["total"]["tokens"]["output"] == (served + 1) * USAGE["output_tokens"]
    assert {each["session"] for each in by_session["costs"]} == {session, fork}


def test_prompts_of_the_client_itself_are_not_counted(ann: Person) -> None:
    """The client reports the end of a background agent as a prompt."""
    session = ask(ann, WITH_AGENT)
    settle(ann)
    events = shown(ann, session)["events"]
    said = [each["text"] for each in events if each["kind"] == "prompt"]
    assert said == [WITH_AGENT.prompt("Please work")]
    assert shown(ann, session)["session"]["prompts"] == 1
    ask(ann, MORE)
    assert "The last session here" in last_request(ann)
    assert "task-notification" not in last_request(ann)


def test_runs_of_a_resumed_session_are_counted_once(ann: Person) -> None:
    """A hive worker's costs are right, whether a result counts one run or the whole session."""
    transcript = ann.root / "transcript.jsonl"
    session = ""
    for script in (WORK, WITH_AGENT, MORE):
        resumed = ["--resume", session] if session else []
        said = ann.stream(script.prompt("Please work"), *resumed)
        session = json.loads(said.splitlines()[-1])["session_id"]
        with transcript.open("a") as file:
            file.write(said)
    settle(ann)
    cost = ann.json("costs", "--by", "session")["total"]["cost_usd"]
    assert float(read_stream(transcript).cost_usd) == pytest.approx(cost, abs=1e-4)


def test_the_briefing_of_a_resumed_session_omits_that_session(ann: Person) -> None:
    session = ask(ann, WORK)
    settle(ann)
    ask(ann, MORE, session)
    assert "The last session here" not in last_request(ann)
