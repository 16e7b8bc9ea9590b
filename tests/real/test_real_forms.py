"""Each form of installation records a real session exactly once."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.real.environment import client_environment, needs_claude, settle
from tests.real.person import Person
from tests.real.scenarios import AGENT, SUB, agent, bash
from tests.real.script import Call, Say, Script
from tests.real.test_real_plugin import PLUGIN, address

pytestmark = needs_claude
WORK = Script(
    "work",
    [
        [bash("echo one"), bash("exit 3", fails=True)],
        [agent(SUB)],
        [Call("Skill", {"skill": "greet", "args": "the sun"})],
        [Say("All is recorded, quokka.")],
    ],
)
GREETING = "---\nname: greet\ndescription: Greet\n---\nGreet well.\n"
LOCAL = ".claude/settings.local.json"
Form = Callable[[Person], tuple[str, ...]]  # returns options of the client


def by_init(*words: str) -> Form:
    def install(person: Person) -> tuple[str, ...]:
        person.hivepipe("init", "--no-probe", *words)
        return ()

    return install


def as_plugin(person: Person) -> tuple[str, ...]:
    person.client("plugin", "marketplace", "add", address(person, "folder"))
    person.client("plugin", "install", PLUGIN)
    person.hivepipe("init", "--no-probe")
    return ()


def plugin_beside_settings(person: Person) -> tuple[str, ...]:
    """Install the plugin after the settings, without another `init`."""
    person.hivepipe("init", "--no-probe", "--local")
    person.client("plugin", "marketplace", "add", address(person, "folder"))
    person.client("plugin", "install", PLUGIN)
    return ()


def user_beside_local(person: Person) -> tuple[str, ...]:
    person.hivepipe("init", "--no-probe", "--local")
    person.hivepipe("init", "--no-probe", "--user")
    return ()


def project_beside_local(person: Person) -> tuple[str, ...]:
    person.hivepipe("init", "--no-probe", "--project")
    person.hivepipe("init", "--no-probe", "--local")
    return ()


def given_to_the_client(person: Person) -> tuple[str, ...]:
    """Pass the hooks with --settings; no settings file that the client reads has them."""
    person.hivepipe("init", "--no-probe", "--local")
    given = person.root / "given.json"
    (person.project / LOCAL).rename(given)
    return ("--settings", str(given))


FORMS: dict[str, Form] = {
    "local": by_init("--local"),
    "project": by_init("--project"),
    "user": by_init("--user"),
    "plugin": as_plugin,
    "plugin-beside-settings": plugin_beside_settings,
    "user-beside-local": user_beside_local,
    "project-beside-local": project_beside_local,
    "given": given_to_the_client,
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_records_everything_once(form: str) -> None:
    with client_environment(WORK, SUB, init=(), is_recorded=False) as person:
        person.write(".claude/skills/greet/SKILL.md", GREETING)
        options = FORMS[form](person)
        report = person.ask(WORK.prompt("Please work"), *options)
        settle(person)
        compare(person, report)


def compare(person: Person, report: dict[str, Any]) -> None:
    """Compare rows, agents, skills, costs and archives of one session with the script."""
    session = str(report["session_id"])
    assert [each["id"] for each in person.json("sessions", "--all")["sessions"]] == [session]
    shown = person.json("session", "show", session)
    calls = [*WORK.calls, *SUB.calls]
    row = shown["session"]
    assert (row["status"], row["prompts"]) == ("ended", 1)
    assert (row["calls"], row["failed"]) == (len(calls), sum(call.fails for call in calls))
    kinds = [event["kind"] for event in shown["events"]]
    for kind in ("started", "prompt", "skill", "ended"):
        assert kinds.count(kind) == 1, (kind, shown["events"])
    agents = person.json("agents")["agents"]
    assert [each["status"] for each in agents] == ["completed"]
    assert sum(call.tool == AGENT for call in calls) == 1
    (skill,) = person.json("skills")["skills"]
    assert (skill["name"], skill["count"]) == ("greet", 1)
    served = sum(not request.is_refused for request in person.api.requests)
    total = person.json("costs")["total"]
    assert total["messages"] == served
    assert total["cost_usd"] == pytest.approx(report["total_cost_usd"], abs=1e-4)
    archives = person.json("archive", "list", "--agents")["archives"]
    assert len(archives) == len(person.transcripts(session)) == 2
    hits = person.json("search", "quokka")["hits"]
    assert sum(hit["who"] == "claude" for hit in hits) == 1
