"""The stored outcome of an agent does not depend on the order of its events."""

import itertools
import json
from pathlib import Path
from typing import Any

import click.testing
import pytest

from hivepipe.cli.main import main
from hivepipe.db.database import Database
from hivepipe.operations.cleanup import clean
from hivepipe.times import stored_time
from tests.store_scene import AT_NS, apply

HOUR_NS = 3600 * 10**9
ERROR = "API error: token sk-ant-api03-" + "x" * 60 + " is not valid"

EVENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "call": ("insert_agent", {"type": "Explore", "description": "Map", "launch": "async"}),
    "start": ("start_agent", {"type": "Explore"}),
    "stop": ("finish_agent", {"type": "Explore"}),
    "notice": ("finish_agent", {"type": "", "tokens": 6100, "duration_ms": 1923}),
    "fail": ("fail_agent", {"type": "Explore", "description": "Map", "error": ERROR}),
}


def start_session(db: Database) -> None:
    apply(db, "start_session", source="startup")


def agent(db: Database) -> dict[str, Any]:
    (row,) = db.rows("SELECT * FROM agents")
    return dict(row)


@pytest.mark.parametrize("order", [*itertools.permutations(("call", "start", "stop"))])
def test_the_calling_agent_is_stored_in_every_order_of_events(
    db: Database, order: tuple[str, ...]
) -> None:
    start_session(db)
    for name in order:
        operation, fields = EVENTS[name]
        caller = "a0" if name == "call" else "a1"
        apply(db, operation, caller=caller, agent_id="a1", **fields)
    assert json.loads(agent(db)["metadata"])["spawn_context"]["agent_id"] == "a0"


def clean_up(db: Database, at_ns: int = AT_NS + HOUR_NS) -> None:
    with db.transaction():
        clean(db, f"cleanup-{at_ns}", "manual", at_ns)


@pytest.mark.parametrize(
    ("events", "status", "outcome"),
    [
        (("call",), "spawned", None),
        (("call", "start"), "running", None),
        (("call", "start", "stop", "notice"), "completed", "completed"),
        (("start", "fail"), "failed", "failed"),
        (("call", "start", "fail", "stop"), "failed", "failed"),
    ],
)
def test_the_status_is_the_same_in_every_order_of_the_events(
    db: Database, events: tuple[str, ...], status: str, outcome: str | None
) -> None:
    start_session(db)
    for number, order in enumerate(itertools.permutations(events)):
        for event in order:
            operation, fields = EVENTS[event]
            at_ns = AT_NS + 10**9 * (1 + events.index(event))
            apply(db, operation, at_ns, agent_id=f"a{number}", **fields)
    rows = [{**row, "id": ""} for row in map(dict, db.rows("SELECT * FROM agents"))]
    assert {(row["status"], row["outcome"]) for row in rows} == {(status, outcome)}
    assert all(row == rows[0] for row in rows)


@pytest.mark.parametrize(
    ("events", "hour"), [(("start", "stop", "notice"), 1), (("call", "start", "notice"), 2)]
)
def test_a_late_notification_ends_only_an_agent_without_another_end(
    db: Database, events: tuple[str, ...], hour: int
) -> None:
    start_session(db)
    for number, order in enumerate(itertools.permutations(enumerate(events))):
        for at, event in order:
            operation, fields = EVENTS[event]
            apply(db, operation, AT_NS + at * HOUR_NS, agent_id=f"a{number}", **fields)
    ends = {(row["outcome"], row["completed_at"]) for row in db.rows("SELECT * FROM agents")}
    assert ends == {("completed", stored_time(AT_NS + hour * HOUR_NS))}


def test_outcome_and_error_survive_the_cleanup(db: Database) -> None:
    start_session(db)
    apply(db, "fail_agent", agent_id="a1", **EVENTS["fail"][1])
    before = agent(db)
    assert before["error"].startswith("API error: token ")
    assert "sk-ant" not in before["error"]
    clean_up(db)
    after = agent(db)
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"deleted_at", "deleted_reason", "deleted_by"}
    apply(db, "fail_agent", agent_id="a2", type="Explore", is_interrupt=True)
    (row,) = db.rows("SELECT outcome, error FROM agents WHERE id = 'a2'")
    assert tuple(row) == ("failed", "interrupted by the user")


def test_an_unfinished_agent_is_lost_until_its_end_arrives(db: Database) -> None:
    start_session(db)
    apply(db, "start_agent", agent_id="a1", **EVENTS["start"][1])
    apply(db, "end_session", AT_NS + 10**9, reason="process gone")
    clean_up(db)
    row = agent(db)
    assert (row["status"], row["outcome"]) == ("running", "lost")
    assert row["deleted_reason"] == "orphaned"
    apply(db, "finish_agent", AT_NS + 10**8, agent_id="a1", **EVENTS["stop"][1])
    late = agent(db)
    assert (late["status"], late["outcome"]) == ("completed", "completed")
    assert late["deleted_at"] == row["deleted_at"]


ENDS = ("failed", "lost", "done")


@pytest.fixture
def runner(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> click.testing.CliRunner:
    monkeypatch.setenv("HIVEPIPE_HOME", str(tmp_path))
    monkeypatch.setenv("HIVEPIPE_ALLOW_ROOT", "1")
    start_session(db)
    day_ns = 24 * HOUR_NS
    failed, lost, done = ({"agent_id": f"a-{how}", "type": "Explore"} for how in ENDS)
    apply(db, "fail_agent", description="Map", error="no key", **failed)
    apply(db, "start_agent", AT_NS + 1, **lost)
    apply(db, "finish_agent", AT_NS + day_ns, tokens=7, duration_ms=90, **done)
    apply(db, "end_session", AT_NS + day_ns + 1, reason="process gone")
    return click.testing.CliRunner()


def output(runner: click.testing.CliRunner, *words: str) -> str:
    result = runner.invoke(main, [*words, "--utc"])
    assert result.exit_code == 0, result.output
    return result.output


def test_agents_lists_the_outcome_of_each_on_a_day(
    db: Database, runner: click.testing.CliRunner
) -> None:
    """The output is the same before and after the cleanup."""
    for _ in range(2):
        text = output(runner, "agents", "--day", "2026-11-21")
        states = {
            word: line.split()[1]
            for line in text.splitlines()
            for word in (f"a-{how}" for how in ENDS)
            if word in line
        }
        assert states == {"a-failed": "failed", "a-lost": "lost"}
        assert "no key" in text
        assert "a-done" in output(runner, "agents", "--since", "2026-11-22")
        assert "a-lost" not in output(runner, "agents", "--since", "2026-11-22")
        clean_up(db, AT_NS + 48 * HOUR_NS)


def test_an_agent_is_shown_with_all_that_is_known(runner: click.testing.CliRunner) -> None:
    lines = output(runner, "agent", "show", "a-d").splitlines()
    shown = dict(line.split(maxsplit=1) for line in lines)
    assert (shown["outcome"], shown["tokens"], shown["duration_ms"]) == ("completed", "7", "90")
    assert "no key" in output(runner, "agent", "show", "a-failed", "--json")
    result = runner.invoke(main, ["agents", "--day", "2026-11-21", "--since", "2026-11-20"])
    assert result.exit_code == 64, "they exclude each other"
