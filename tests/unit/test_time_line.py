"""The time line of a session: every kind of event, in order, bounded."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hivepipe.cli.main import main
from hivepipe.db.database import Database
from hivepipe.db.listings import listings
from hivepipe.reading.session_events import Event, events_of
from hivepipe.reading.time_line import TimeLine, time_line
from tests.store_scene import new_database
from tests.web_scene import insert, insert_usage

SESSION = "7b1f0c9e-3a52-4d0e-9c55-0d6a1f2be111"
LONG = "Say what the default is and why a person would change it. " * 20


def at(second: int) -> str:
    return f"2026-11-21T10:00:{second:02d}.000Z"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    """A database with one session that has every kind of event, inserted out of order."""
    of = {"session_id": SESSION}
    with closing(new_database(tmp_path / "hive.db")) as made:
        insert(made, "swarms", id="swarm", name="shop")
        agent = {**of, "swarm_id": "swarm", "type": "Explore"}
        insert(made, "agents", id="a1", status="completed", name="Map callers", began_at=at(5),
               created_at=at(4), completed_at=at(9), **agent)  # fmt: skip
        insert(made, "agents", id="a2", status="deleted", deleted_reason="expired",
               created_at=at(11), deleted_at=at(50), **agent)  # fmt: skip
        insert(made, "agents", id="a3", status="running", created_at=at(12), **agent)
        insert(made, "session_logs", log_level="INFO", message="Auto-checkpoint: Edit",
               data=json.dumps({"file_path": "/shop/a.py"}), created_at=at(3), **of)  # fmt: skip
        insert(made, "session_logs", log_level="ERROR", message="Turn ended by an error: overload",
               data="{}", created_at=at(13), **of)  # fmt: skip
        insert(made, "session_logs", log_level="INFO", message="Compaction: auto", data="no JSON",
               created_at=at(14), **of)  # fmt: skip
        insert(made, "prompts", prompt=LONG, created_at=at(2), **of)
        insert(made, "skill_uses", skill="run-tests", kind="tool", arguments="-k pay", success=0,
               created_at=at(10), **of)  # fmt: skip
        insert(made, "sessions", id=SESSION, status="ended", source="startup", model="opus",
               project="/shop", created_at=at(1), updated_at=at(59), ended_at=at(59),
               end_reason="logout")  # fmt: skip
        insert_usage(made, created_at=at(6), **of)
        insert(made, "summaries", state="s", made_at=at(58), kind="plain", provider="", model="",
               reason="", harness="", summary="The timeout can be set.", key_learnings="[]",
               files="[]", open_ends="[]", requests=0, **of)  # fmt: skip
        yield made


def time_line_of(folder: Path, limit: int = 100) -> TimeLine:
    with listings(folder / "hive.db") as store:
        return time_line(str(folder), store, SESSION, limit)


EVENTS = [
    (1, "started", "startup", None),
    (2, "prompt", LONG, None),
    (3, "checkpoint", "Edit", None),
    (5, "agent", "Explore: Map callers", "started"),
    (9, "agent", "Explore: Map callers (4 s)", "completed"),
    (10, "skill", "run-tests -k pay", "failed"),
    (11, "agent", "Explore", "started"),
    (12, "agent", "Explore", "started"),
    (13, "error", "Turn ended by an error: overload", None),
    (14, "note", "Compaction: auto", None),
    (50, "agent", "Explore (39 s)", "expired"),
    (59, "ended", "logout", None),
]


def test_every_kind_of_event_is_listed_in_order_of_time(db: Database, tmp_path: Path) -> None:
    line = time_line_of(tmp_path)
    shown = [(event.at, event.kind, event.text, event.outcome) for event in line.events]
    assert shown == [(at(second), *rest) for second, *rest in EVENTS]
    assert line.left_out == 0
    assert line.files == ["/shop/a.py"]
    assert (line.cost.messages, line.cost.tokens) == (1, 110)
    assert line.cost.dollars
    assert line.summary
    assert line.summary["summary"] == "The timeout can be set."


def test_a_prompt_that_is_only_an_image_has_a_text(db: Database, tmp_path: Path) -> None:
    """The Agent SDK 0.3.332 sends such prompts; their hook event has an empty prompt."""
    insert(db, "prompts", prompt="", session_id=SESSION, created_at=at(20))
    line = time_line_of(tmp_path)
    assert [each.text for each in line.events if each.at == at(20)] == ["[no text]"]


def test_the_newest_are_shown_and_the_others_counted(db: Database, tmp_path: Path) -> None:
    for limit in range(1, 14):
        line = time_line_of(tmp_path, limit)
        assert [event.at for event in line.events] == [at(second) for second, *_ in EVENTS[-limit:]]
        assert line.left_out == max(len(EVENTS) - limit, 0)


def test_a_limit_bounds_what_is_read(db: Database, tmp_path: Path) -> None:
    for number in range(500):
        time = f"2026-11-21T11:{number // 60:02d}:{number % 60:02d}.000Z"
        insert(db, "prompts", session_id=SESSION, prompt=f"{number}", created_at=time)
    read: list[int] = []
    with listings(tmp_path / "hive.db") as store:
        rows = store.rows
        store.rows = lambda *query: read.append(len(out := rows(*query))) or out  # type: ignore[func-returns-value, method-assign]
        events, _ = events_of(store, SESSION, 7)
    assert [event.text for event in events] == [str(n) for n in range(493, 500)]
    assert max(read) == 7


def test_a_deleted_session_has_its_events_still(db: Database, tmp_path: Path) -> None:
    db.execute("DELETE FROM sessions", {})
    line = time_line_of(tmp_path)
    assert line.session is None
    assert [event.kind for event in line.events] == [kind for _, kind, *_ in EVENTS[1:-1]]


def test_outcome_and_error_of_an_agent_outlive_its_cleanup(db: Database, tmp_path: Path) -> None:
    agent = {"session_id": SESSION, "swarm_id": "swarm", "type": "Plan", "created_at": at(20)}
    insert(db, "agents", id="b1", status="failed", completed_at=at(21), deleted_at=at(40),
           outcome="failed", error="API error", deleted_reason="completed", **agent)  # fmt: skip
    insert(db, "agents", id="b2", status="running", deleted_at=at(41), outcome="lost",
           deleted_reason="expired", **agent)  # fmt: skip
    ended = [each for each in time_line_of(tmp_path).events if each.agent_id in ("b1", "b2")]
    assert ended[2:] == [
        Event(at(21), "agent", "Plan (1 s)", "b1", None, "failed", "API error"),
        Event(at(41), "agent", "Plan", "b2", None, "lost"),
    ]


WORDS = ("session", "show", "7b1f", "--utc")


@pytest.fixture
def show(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HIVEPIPE_HOME", str(tmp_path))
    monkeypatch.setenv("HIVEPIPE_ALLOW_ROOT", "1")

    def run(*more: str) -> str:
        result = CliRunner().invoke(main, [*WORDS, *more])
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


def test_the_text_has_a_line_for_each_event(show: Any) -> None:
    output = show()
    for second, kind, text, _ in EVENTS:
        line = f"10:00:{second:02d}  {kind:<10}  "
        assert re.search(rf"^{line}.*{re.escape(text.strip())}", output, re.M), text
    assert "10:00:03  checkpoint  Edit /shop/a.py\n" in output
    assert "10:00:10  skill       run-tests -k pay (failed)\n" in output
    assert "cost        0.0" in output
    assert "1 prompt, " in output
    assert "1 file written" in output
    assert "The timeout can be set." in output
    assert not re.search(r" $", output, re.M)


def test_an_effort_without_a_model_is_shown_alone(db: Database, show: Any) -> None:
    db.execute("UPDATE sessions SET model = '', effort = 'high'", {})
    assert "  model       effort high\n" in show()


def test_a_terminal_of_80_columns_holds_every_line(
    show: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hivepipe.cli.session_text.is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    lines = show().splitlines()
    assert max(map(len, lines)) <= 80
    (first,) = [number for number, line in enumerate(lines) if "  prompt  " in line]
    assert lines[first + 1].startswith(" " * 22)
    assert "…" in "".join(lines[first : first + 6])


def test_json_holds_the_whole_time_line(show: Any) -> None:
    output = json.loads(show("--json", "--limit", "3"))
    assert (output["schema"], output["id"], output["left_out"]) == (1, SESSION, len(EVENTS) - 3)
    assert [event["kind"] for event in output["events"]] == ["note", "agent", "ended"]
    assert set(output["events"][0]) == set(Event._fields)
    assert output["session"]["status"] == "ended"
    assert "checkpoint_data" not in output["session"]
    assert f"{output['cost']['tokens']} tokens" == "110 tokens"


def test_older_events_are_counted_with_the_option_that_shows_them(show: Any) -> None:
    output = show("--limit", "2")
    assert "10 older events are not shown: --limit 12" in output
    assert "older" not in show("--limit", "12")
