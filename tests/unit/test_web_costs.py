"""The view Costs of `hivepipe web`: shares of the cache, the trend and filters."""

import json
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from click.testing import CliRunner
from starlette.testclient import TestClient

from hivepipe.cli.main import main
from hivepipe.costs.bill import Bill, Cost
from hivepipe.db.database import Database
from hivepipe.db.spending import spending_path
from hivepipe.home import short_hash
from hivepipe.reading.costs import GroupCost
from hivepipe.web.folders import PAGES
from hivepipe.web.team_views import _sums as sums
from hivepipe.web.templates import templates
from hivepipe.web.trend import DAYS, trend_of
from tests.web_scene import SESSION, insert_usage

FUTURE = "2099-01-01"  # of a message before the clock was set back


def cost(day: str, dollars: float | None) -> GroupCost:
    return GroupCost({"day": day}, Bill(), Cost(None if dollars is None else Decimal(dollars), []))


def test_the_trend_is_to_scale_and_ends_with_the_newest_day() -> None:
    bars = trend_of([cost("2026-11-21", 1), cost("2026-11-21", 1), cost("2026-11-20", 0.5)])
    assert len(bars) == DAYS
    assert [(bar["day"], bar["cost_usd"], bar["y"], bar["height"]) for bar in bars[-2:]] == [
        ("2026-11-20", 0.5, 75.0, 25.0),
        ("2026-11-21", 2, 0.0, 100.0),
    ]
    assert all(bar["x"] + bar["width"] <= 100 for bar in bars)


def test_without_a_day_or_a_price_there_is_no_trend() -> None:
    for day in ("0001-01-02", "soon"):
        assert trend_of([cost(day, 1)]) == []
    assert trend_of([]) == []
    assert {bar["height"] for bar in trend_of([cost("2026-11-21", None)])} == {0}


def test_shares_of_the_cache_and_filters(client: TestClient, home: Path) -> None:
    with closing(Database(home / "hive.db")) as db:
        at = "2026-11-22T12:00:00.000Z"
        insert_usage(db, message_id="m2", created_at=at, cache_read=900, session_id=SESSION)
    whole = client.get("/costs.json").json()
    assert whole["cache_share"] == 0.45
    assert [each["cache_share"] for each in whole["costs"]] == [0.9, 0]
    narrowed = client.get("/costs.json?since=2026-11-22").json()
    assert [each["day"] for each in narrowed["costs"]] == ["2026-11-22"]
    for day in ("2026-11-22", "20261122", "2026-W47-7"):
        assert client.get(f"/costs.json?until={day}").json()["cache_share"] == 0, day
    for wrong in ("since=soon", "until=soon", "since=9999-12-31T23:59:59-12:00"):
        refused = client.get(f"/costs?{wrong}")
        assert refused.status_code == 400, wrong
        assert "<h1>Nothing to show</h1>" in refused.text
        assert "Back to the queues" not in refused.text
    assert "No message matches" in client.get("/costs?since=2030-01-01").text
    assert '<svg class="trend"' in client.get("/costs").text


def test_numbers_of_messages_have_separators(client: TestClient, home: Path) -> None:
    with closing(Database(home / "hive.db")) as db:
        for number in range(1500):
            insert_usage(db, message_id=f"many-{number}", session_id=SESSION)
    messages = client.get("/costs.json").json()["costs"][0]["messages"]
    cell = f'<td class="number">{messages:,}</td>'
    path = f"/session/{short_hash(str(home))}/{SESSION}"
    assert cell in client.get("/costs").text
    session = client.get(path).text
    assert cell in session
    assert f"tokens in {messages:,} messages" in session


def test_dollars_have_separators() -> None:
    usd = templates(PAGES).get_template("macros.html").module.usd  # type: ignore[attr-defined]
    assert [usd(each) for each in (1234567.5, 0, None)] == ["1,234,567.5000", "0.0000", "no price"]


def test_the_last_days_are_those_up_to_the_newest_message(client: TestClient, home: Path) -> None:
    days = ("2026-09-01", "2026-11-22", FUTURE)
    with closing(Database(home / "hive.db")) as db:
        for day in days:
            at = f"{day}T12:00:00.000Z"
            insert_usage(db, message_id=day, created_at=at, session_id=SESSION)
    last, whole = (client.get(f"/costs.json{query}").json() for query in ("", "?all=1"))
    assert (last["since"], whole["since"]) == ("2026-10-24", "")
    assert {each["day"] for each in last["costs"]} & {*days} == {"2026-11-22", FUTURE}
    assert last["trend"][-1]["day"] == "2026-11-22"
    assert {each["day"] for each in whole["costs"]} >= {*days}
    assert "Last 30 days" in client.get("/costs").text


def test_a_damaged_ledger_of_own_calls_hides_no_costs(client: TestClient, home: Path) -> None:
    spending_path().parent.mkdir(parents=True, exist_ok=True)
    spending_path().write_text("no database " * 100)
    found = client.get("/costs.json").json()
    assert found["costs"]
    assert "move it away" in found["own_problem"]
    shown = CliRunner().invoke(main, ["costs"])
    assert "List prices of" in shown.stdout
    assert shown.exit_code == 1
    assert "move it away" in shown.stderr
    output = json.loads(CliRunner().invoke(main, ["costs", "--json"]).stdout)
    assert output["costs"]
    assert output["own_problem"] == found["own_problem"]
    assert f"is unknown: cannot use {spending_path()}" in client.get("/costs").text


def test_models_without_a_price_are_named_beside_the_total(client: TestClient, home: Path) -> None:
    assert "no price is known" not in client.get("/costs").text
    with closing(Database(home / "hive.db")) as db:
        for number in range(22):
            insert_usage(db, message_id=f"n{number}", model=f"new-{number:02d}", session_id=SESSION)
        insert_usage(db, message_id="n", model="<b>" + "x" * 100, session_id=SESSION)
    shown = client.get("/costs").text
    assert "because no price is known: &lt;b&gt;xxx" in shown
    assert "new-18 and 3 more." in shown
    assert "x" * 61 not in shown.partition("<table>")[0]
    assert len(client.get("/costs.json").json()["models_without_price"]) == 23
    said = CliRunner().invoke(main, ["costs"]).stdout.partition("No price is known for: ")[2]
    assert said.startswith("<b>xxx")
    assert "x" * 61 not in said
    assert "new-18 and 3 more\n" in said


def test_a_sum_of_a_team_without_any_price_is_not_zero() -> None:
    def spent(person: str, dollars: float | None) -> GroupCost:
        return replace(cost("2026-11-21", dollars), key={"person": person})

    found = [spent("ann", None), spent("bob", 1), spent("bob", None), spent("bob", 0.5)]
    assert sums(found, "person") == [("bob", 1.5), ("ann", None)]
