"""The view Agents of `hivepipe web`: agents below their sessions, with their costs."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from starlette.testclient import TestClient

from hivepipe.cli.main import main
from hivepipe.db.database import Database
from hivepipe.reading.agents import agents
from hivepipe.reading.homes import KnownHome
from tests.web_scene import SESSION, insert, insert_usage


def spawn(home: Path, agent: str, session: str | None, at: str, **more: Any) -> None:
    with closing(Database(home / "hive.db")) as db:
        row = {"status": "completed", "outcome": "completed", "type": "Explore", **more}
        of = {"swarm_id": "swarm", "session_id": session, "created_at": at}
        insert(db, "agents", id=agent, **of, **row)
        own = {"message_id": agent, "agent_id": agent, "session_id": session or ""}
        insert_usage(db, is_sidechain=1, created_at=at, input=1000, **own)


def test_agents_are_listed_below_their_sessions(client: TestClient, home: Path) -> None:
    page = client.get("/agents").text
    assert '<th scope="rowgroup"' in page
    assert "0.0000" not in page, "the agents have no cost"
    spawn(home, "b1", "another", "2026-11-22T10:00:00.000Z")
    spawn(home, "a2", SESSION, "2026-11-22T11:00:00.000Z", outcome="failed", error="boom")
    spawn(home, "c1", None, "2026-11-20T10:00:00.000Z")
    found = client.get("/agents.json").json()["sessions"]
    assert [(each["session_id"], [agent["id"] for agent in each["agents"]]) for each in found] == [
        (SESSION, ["a1", "a2"]),
        ("another", ["b1"]),
        ("", ["c1"]),
    ]
    page = client.get("/agents").text
    assert page.index(">a2<") < page.index(">b1<") < page.index("without a session")
    assert '<td class="bad">failed</td>' in page


def test_an_agent_is_listed_below_the_agent_that_started_it(client: TestClient, home: Path) -> None:
    started_by = '{{"spawn_context": {{"agent_id": "{}"}}}}'.format
    for number, (agent, parent) in enumerate({"a2": "", "a3": "", "b1": "a2", "c1": "b1"}.items()):
        more = {"metadata": started_by(parent)} if parent else {}
        spawn(home, agent, SESSION, f"2026-11-22T1{number}:00:00.000Z", **more)
    (session,) = client.get("/agents.json").json()["sessions"]
    assert [(agent["id"], agent["parent_id"], agent["depth"]) for agent in session["agents"]] == [
        ("a1", None, 0),
        ("a2", None, 0),
        ("b1", "a2", 1),
        ("c1", "b1", 2),
        ("a3", None, 0),
    ]
    page = client.get("/agents").text
    assert '<th scope="row" class="depth-2"><span class="unseen">of b1: </span>' in page
    output = json.loads(CliRunner().invoke(main, ["agents", "--json"]).stdout)["agents"]
    assert {agent["id"]: agent["parent_id"] for agent in output}["c1"] == "b1"


def test_agents_that_name_each_other_are_shown(client: TestClient, home: Path) -> None:
    for agent, parent in (("b1", "c1"), ("c1", "b1"), ("d1", "d1"), ("e1", "gone")):
        context = json.dumps({"spawn_context": {"agent_id": parent}})
        spawn(home, agent, "another", "2026-11-22T10:00:00.000Z", metadata=context)
    spawn(home, "f1", "another", "2026-11-22T10:00:00.000Z", metadata='{"spawn_context": 7}')
    found = client.get("/agents.json").json()["sessions"]
    assert sorted(agent["id"] for agent in found[0]["agents"]) == ["b1", "c1", "d1", "e1", "f1"]


def test_only_the_newest_are_read_in_full(client: TestClient, home: Path) -> None:
    spawn(home, "a2", SESSION, "2026-11-22T11:00:00.000Z")
    known = KnownHome("key", str(home), "")
    found, has_more = agents([known], 1)
    assert [agent.id for each in found for agent in each.agents] == ["a2"]
    assert has_more
    assert not agents([known], 2)[1]
