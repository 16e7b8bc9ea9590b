"""What became of an agent: the same in every order of its signs, before and after its cleanup."""

import itertools
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import click.testing
import pytest

from hivepipe.cli.main import main
from hivepipe.db.database import Database
from hivepipe.jobs.envelope import Envelope
from hivepipe.operations.cleanup import clean
from hivepipe.operations.registry import execute
from tests.payloads import SESSION

AT_NS = 1_795_222_800 * 10**9  # 2026-11-21 01:00 UTC
HOUR_NS = 3600 * 10**9
ERROR = "API error: token sk-ant-api03-" + "x" * 60 + " is not valid"

SIGNS: dict[str, tuple[str, dict[str, Any]]] = {
    "call": ("insert_agent", {"type": "Explore", "description": "Map", "launch": "async"}),
    "start": ("start_agent", {"type": "Explore"}),
    "stop": ("finish_agent", {"type": "Explore"}),
    "notice": ("finish_agent", {"type": "", "tokens": 6100, "duration_ms": 1923}),
    "fail": ("fail_agent", {"type": "Explore", "description": "Map", "error": ERROR}),
}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with closing(Database(tmp_path / "hive.db")) as made:
        yield made


def tell(
    db: Database,
    operation: str,
    at_ns: int = AT_NS,
    agent: str = "a1",
    caller: str = "",
    **said: Any,
) -> None:
    payload = {"agent_id": agent, "swarm": "swarm-1", **said}
    id = f"{operation}-{agent}-{at_ns}"
    job = Envelope(
        id=id,
        operation=operation,
        priority=5,
        payload=payload,
        session=SESSION,
        instance="instance-a",
        project="/shop",
        agent=caller,
        event_time_ns=at_ns,
    )
    with db.transaction():
        execute(db, job)


def begin(db: Database) -> None:
    tell(db, "start_session", source="startup")


def agent(db: Database) -> dict[str, Any]:
    (row,) = db.rows("SELECT * FROM agents")
    return dict(row)


@pytest.mark.parametrize("order", [*itertools.permutations(("call", "start", "stop"))])
def test_who_called_the_agent_is_known_in_every_order(db: Database, order: tuple[str, ...]) -> None:
    begin(db)
    for name in order:
        operation, said = SIGNS[name]
        tell(db, operation, caller="a0" if name == "call" else "a1", **said)
    assert json.loads(agent(db)["metadata"])["spawn_context"]["agent_id"] == "a0"


def clean_up(db: Database, at_ns: int = AT_NS + HOUR_NS) -> None:
    with db.transaction():
        clean(db, f"cleanup-{at_ns}", "manual", at_ns)


@pytest.mark.parametrize(
    ("signs", "status", "outcome"),
    [
        (("call",), "spawned", None),
        (("call", "start"), "running", None),
        (("call", "start", "stop"), "completed", "completed"),
        (("call", "start", "stop", "notice"), "completed", "completed"),
        (("start", "fail"), "failed", "failed"),
        (("call", "start", "fail", "stop"), "failed", "failed"),
    ],
)
def test_status_moves_forward_in_every_order_of_the_signs(
    tmp_path: Path, signs: tuple[str, ...], status: str, outcome: str | None
) -> None:
    rows = []
    for number, order in enumerate(itertools.permutations(signs)):
        with closing(Database(tmp_path / f"{number}.db")) as db:
            begin(db)
            for sign in order:
                operation, said = SIGNS[sign]
                tell(db, operation, AT_NS + 10**9 * (1 + signs.index(sign)), **said)
            rows.append(agent(db))
    assert {(row["status"], row["outcome"]) for row in rows} == {(status, outcome)}
    assert all(row == rows[0] for row in rows)


def test_outcome_and_error_survive_the_cleanup(db: Database) -> None:
    begin(db)
    tell(db, "fail_agent", **SIGNS["fail"][1])
    before = agent(db)
    assert before["error"].startswith("API error: token ")
    assert "sk-ant" not in before["error"]
    clean_up(db)
    after = agent(db)
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"deleted_at", "deleted_reason", "deleted_by"}


def test_an_interrupted_agent_says_so(db: Database) -> None:
    begin(db)
    tell(db, "fail_agent", type="Explore", is_interrupt=True)
    assert (agent(db)["outcome"], agent(db)["error"]) == ("failed", "interrupted by the user")


def test_who_had_not_finished_is_lost_and_a_late_end_still_counts(db: Database) -> None:
    begin(db)
    tell(db, "start_agent", **SIGNS["start"][1])
    tell(db, "end_session", AT_NS + 10**9, reason="process gone")
    clean_up(db)
    row = agent(db)
    assert (row["status"], row["outcome"]) == ("running", "lost")
    assert row["deleted_reason"] == "orphaned"
    tell(db, "finish_agent", AT_NS + 10**8, **SIGNS["stop"][1])
    late = agent(db)
    assert (late["status"], late["outcome"]) == ("completed", "completed")
    assert late["deleted_at"] == row["deleted_at"]


# ---- the commands


@pytest.fixture
def told(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> click.testing.CliRunner:
    monkeypatch.setenv("HIVEPIPE_HOME", str(tmp_path))
    monkeypatch.setenv("HIVEPIPE_ALLOW_ROOT", "1")
    begin(db)
    day_ns = 24 * HOUR_NS
    tell(db, "fail_agent", AT_NS, "a-failed", type="Explore", description="Map", error="no key")
    tell(db, "start_agent", AT_NS + 1, "a-lost", type="Explore")
    tell(db, "finish_agent", AT_NS + day_ns, "a-done", type="Explore", tokens=7, duration_ms=90)
    tell(db, "end_session", AT_NS + day_ns + 1, reason="process gone")
    return click.testing.CliRunner()


def said(runner: click.testing.CliRunner, *words: str) -> str:
    result = runner.invoke(main, [*words, "--utc"])
    assert result.exit_code == 0, result.output
    return result.output


def test_agents_lists_the_outcome_of_each_on_a_day(
    db: Database, told: click.testing.CliRunner
) -> None:
    """Before the cleanup as after it."""
    for _ in range(2):
        text = said(told, "agents", "--day", "2026-11-21")
        states = {
            word: line.split()[1]
            for line in text.splitlines()
            for word in ("a-failed", "a-lost", "a-done")
            if word in line
        }
        assert states == {"a-failed": "failed", "a-lost": "lost"}
        assert "no key" in text
        assert "a-done" in said(told, "agents", "--since", "2026-11-22")
        assert "a-lost" not in said(told, "agents", "--since", "2026-11-22")
        clean_up(db, AT_NS + 48 * HOUR_NS)


def test_an_agent_is_shown_with_all_that_is_known(told: click.testing.CliRunner) -> None:
    lines = dict(line.split(maxsplit=1) for line in said(told, "agent", "show", "a-d").splitlines())
    assert (lines["outcome"], lines["tokens"], lines["duration_ms"]) == ("completed", "7", "90")
    assert "no key" in said(told, "agent", "show", "a-failed", "--json")


def test_a_day_and_a_since_exclude_each_other(told: click.testing.CliRunner) -> None:
    result = told.invoke(main, ["agents", "--day", "2026-11-21", "--since", "2026-11-20"])
    assert result.exit_code == 64
