"""Everything that hivepipe records of a real Claude Code session equals the script."""

from collections import Counter
from typing import Any

import pytest

from tests.real.environment import client_environment, needs_claude, settle, version
from tests.real.messages_api import USAGE
from tests.real.person import Person
from tests.real.recorded_sessions import TOKENS
from tests.real.scenarios import AGENT, SCENARIOS, Scenario
from tests.real.script import Call, Cut, Script

pytestmark = needs_claude


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name.replace(" ", "-"))
def test_every_record_equals_the_script(scenario: Scenario) -> None:
    if version() < scenario.since:
        pytest.skip(f"Claude Code does this since {scenario.since}")
    with client_environment(*scenario.prompts, *scenario.agents) as person:
        for path, text in scenario.files.items():
            person.write(path, text)
        reports = play(person, scenario)
        settle(person)
        compare(person, scenario, reports)


def play(person: Person, scenario: Scenario) -> list[dict[str, Any]]:
    """Run the client once for each prompt and return its reports."""
    reports: list[dict[str, Any]] = []
    for script in scenario.prompts:
        resumed = ["--resume", reports[-1]["session_id"]] if reports else []
        expected = 1 if scenario.fails else 0
        reports.append(
            person.ask(
                script.prompt("Please work"),
                *resumed,
                *scenario.options,
                tools=scenario.tools,
                expect=expected,
            )
        )
    return reports


def compare(person: Person, scenario: Scenario, reports: list[dict[str, Any]]) -> None:
    """Compare the session, its agents, costs, archives and search hits with the scenario."""
    (session,) = {report["session_id"] for report in reports}
    calls = ordered(scenario)
    shown = person.json("session", "show", session)
    assert [each["id"] for each in person.json("sessions", "--all")["sessions"]] == [session]
    row = shown["session"]
    assert row["status"] == "ended"
    assert (row["calls"], row["failed"]) == (len(calls), sum(call.fails for call in calls))
    said = [event["text"] for event in shown["events"] if event["kind"] == "prompt"]
    assert said == [script.prompt("Please work") for script in scenario.prompts]
    compare_agents(person, calls)
    compare_costs(person, scenario, reports)
    compare_archives(person, session, calls)
    compare_search(person, session, scenario)


def ordered(scenario: Scenario) -> list[Call]:
    """Return every call of the session and its agents, once for each run of its script."""
    by_prompt = {script.prompt("Look around"): script for script in scenario.agents}
    found: list[Call] = []
    waiting: list[Script] = list(scenario.prompts)
    while waiting:
        for call in waiting.pop().calls:
            found.append(call)
            if call.tool == AGENT and not call.fails:
                waiting.append(by_prompt[call.input["prompt"]])
    return found


def compare_agents(person: Person, calls: list[Call]) -> None:
    wanted = Counter(
        (call.input["subagent_type"], "failed" if call.fails else "completed")
        for call in calls
        if call.tool == AGENT
    )
    agents = person.json("agents")["agents"]
    assert Counter((each["type"], each["status"]) for each in agents) == wanted


def compare_costs(person: Person, scenario: Scenario, reports: list[dict[str, Any]]) -> None:
    """Messages equal those served. Tokens and dollars equal the client's figures.

    The client counts served answers. Newer versions also count the part of a cut answer that
    arrived.
    """
    served = sum(not request.is_refused for request in person.api.requests)
    cut = sum(isinstance(turn, Cut) for script in scenario.prompts for turn in script.turns)
    total = person.json("costs")["total"]
    assert total["messages"] == served
    counted = counting(reports, served)
    for name, field, theirs in TOKENS:
        said = sum(of[theirs] for report in counted for of in report["modelUsage"].values())
        assert total["tokens"][name] == said, name
        each = int(str(USAGE[field]))
        assert served * each <= said <= (served + cut) * each, name
    dollars = sum(float(report["total_cost_usd"]) for report in counted)
    assert total["cost_usd"] == pytest.approx(dollars, abs=1e-4)


def counting(reports: list[dict[str, Any]], served: int) -> list[dict[str, Any]]:
    """Return the reports that together count all runs.

    In newer versions the last report includes the resumed runs.
    """
    last = sum(model["outputTokens"] for model in reports[-1]["modelUsage"].values())
    is_of_all = last == served * int(str(USAGE["output_tokens"]))
    return reports[-1 if is_of_all else 0 :]


def compare_archives(person: Person, session: str, calls: list[Call]) -> None:
    """Each transcript has an archive with the same lines; there is no other archive."""
    archives = person.json("archive", "list", "--agents")["archives"]
    transcripts = person.transcripts(session)
    assert len(archives) == len(transcripts)
    kept = sorted(
        len(person.hivepipe("archive", "show", *named(each), "--lines").splitlines())
        for each in archives
    )
    assert kept == sorted(len(path.read_bytes().splitlines()) for path in transcripts)
    counted: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for each in archives:
        for tool, number in each["meta"]["tools"].items():
            counted[tool] += number["calls"]
            failed[tool] += number["failed"]
    assert counted == Counter(call.tool for call in calls)
    assert +failed == Counter(call.tool for call in calls if call.fails)


def named(archive: dict[str, Any]) -> list[str]:
    id = archive["session_id"]
    return [f"{id}/{archive['agent_id']}" if archive["agent_id"] else id]


def compare_search(person: Person, session: str, scenario: Scenario) -> None:
    """The word of the scripts is found as often as it occurs in them."""
    said = [piece for script in scenario.prompts for piece in script.said]
    wanted = sum("quokka" in piece.text for piece in said)
    found = person.json("search", "quokka")
    hits = [hit for hit in found["hits"] if hit["who"] == "claude"]
    assert len(hits) == wanted
    assert {hit["session_id"] for hit in found["hits"]} == ({session} if wanted else set())
