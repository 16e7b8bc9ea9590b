"""The page's team views: `team=1` in the address."""

import sys
from itertools import pairwise
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from hivepipe.home import make_folders
from hivepipe.stack import registration
from hivepipe.stack.runtime_folder import Stack
from hivepipe.team import membership
from hivepipe.web.folders import STATIC
from tests.team_readers import Members, made_members, members, own_members
from tests.web_scene import client_of

__all__ = ["made_members", "members", "own_members"]


def page_of(team_members: Members, who: str) -> TestClient:
    team_members.use(who)
    return client_of(".")


def test_the_views_show_rows_of_the_team(members: Members) -> None:
    client = page_of(members, "bob/desk")
    assert 'href="/now?team=1"' in client.get("/now").text
    now = client.get("/now.json?team=1&all=1").json()
    assert {(each["person"], each["machine"]) for each in now["sessions"]} == {
        ("ann", "desk"), ("ann", "laptop"), ("bob", "desk"),
    }  # fmt: skip
    own = members.output("bob/desk", "costs", "--by", "session", "--team")
    assert sorted(each["dollars"] for each in now["sessions"]) == sorted(
        row["cost_usd"] for row in own["costs"]
    )
    agents = client.get("/agents.json?team=1").json()["sessions"]
    assert [len(each["agents"]) for each in agents] == [1, 1, 1, 1]
    costs = client.get("/costs.json?team=1&all=1").json()
    assert costs["total_usd"] == pytest.approx(own["total"]["cost_usd"], abs=1e-5)
    assert [name for name, _ in costs["sums"]["person"]] == ["ann", "bob"]
    of_bob = client.get("/costs.json?team=1&all=1&person=bob").json()["sums"]
    assert [name for name, _ in of_bob["machine"]] == ["bob/desk"]
    hits = client.get("/search.json?team=1&q=cart").json()
    assert hits["total"] == 8
    for view in ("now", "agents", "costs", "search"):
        shown = client.get(f"/{view}?team=1&all=1&q=cart")
        assert shown.status_code == 200, shown.text
        assert "ann" in shown.text
        assert "This machine</a>" in shown.text
        assert ("?team=1" in shown.text.partition("/session/")[2]) == (view != "costs")
    assert 'class="beside"' not in client.get("/search?team=1&q=cart").text, "an empty column"
    assert "shows this machine only" in client.get("/skills?team=1").text


def test_a_session_of_the_team_is_shown_and_audited(members: Members) -> None:
    client = page_of(members, "bob/desk")
    now = client.get("/now.json?team=1&all=1").json()["sessions"]
    homes = {each["id"]: each["home"] for each in now}
    shown = client.get(f"/session/{homes['ann-1']}/ann-1?team=1")
    assert shown.status_code == 200
    for text in ("ann, desk", "mend the cart of ann-1", "the team keeps no archives"):
        assert text in shown.text, text
    twin = client.get(f"/session/{homes['ann-1']}/ann-1.json?team=1").json()
    own = members.output("bob/desk", "session", "show", "ann-1", "--team")
    assert twin["cost"] == own["cost"]
    assert twin["summary"] == own["summary"]
    assert sum(each["messages"] for each in twin["agent_costs"]) == own["cost"]["messages"]
    assert {(row[0], row[2]) for row in members.audit() if row[2] != "*"} == {("bob", "ann-1")}
    assert client.get(f"/session/{homes['ann-1']}/eve-1?team=1").status_code == 404
    # without team=1 only this machine's sessions are found
    assert client.get(f"/session/{homes['ann-1']}/ann-1").status_code == 404


def test_the_views_use_the_prices_and_rules_of_the_home_where_the_page_was_started(
    members: Members, tmp_path: Path
) -> None:
    client = page_of(members, "bob/desk")
    before = client.get("/costs.json?team=1&all=1").json()
    other = Stack(str(tmp_path / "another-home"), str(tmp_path / "run"))
    registration.register("/ first of all", other, sys.executable)
    for name in ("prices.toml", "config.toml"):
        make_folders(other.home)
        Path(other.home, name).write_text("damaged")
    assert client.get("/costs.json?team=1&all=1").json() == before
    for each in client.get("/now.json?team=1&all=1").json()["sessions"]:
        assert client.get(f"/session/{each['home']}/{each['id']}?team=1").status_code == 200


def test_the_tables_of_costs_stand_apart(members: Members) -> None:
    from tests.browser_scene import running_chromium  # noqa: PLC0415  skips without playwright

    members.use("bob/desk")
    text = client_of(".").get("/costs?team=1&all=1").text
    with running_chromium() as browser:
        page = browser.new_page()
        page.set_content(text)
        page.add_style_tag(content=(STATIC / "page.css").read_text())
        boxes = [table.bounding_box() for table in page.locator(".wide").all()]
    assert len(boxes) > 3
    assert all(under["y"] > over["y"] + over["height"] + 10 for over, under in pairwise(boxes))


def test_a_missing_team_is_reported(members: Members) -> None:
    members.use("ann/desk")
    membership.remove()
    client = client_of(".")
    assert "Team</a>" not in client.get("/now").text
    answer = client.get("/now?team=1")
    assert answer.status_code == 404
    assert "no team is joined" in answer.text
