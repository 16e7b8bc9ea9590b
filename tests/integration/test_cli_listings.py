"""`sessions`, `session`, `agents`, `agent` and `status` show the stored data."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from hivepipe.db.listings import listings
from tests.conftest import Home, Server, Writer, fire_all, is_drained, made_home, servers, until
from tests.payloads import (
    AGENT,
    POST_AGENT_COMPLETED,
    POST_EDIT,
    SESSION,
    SESSION_END,
    SESSION_START,
    USER_PROMPT_SUBMIT,
    changed,
)

OTHER = SESSION[:4] + "ffff-0000-4000-8000-000000000000"
DAY = [
    SESSION_START,
    USER_PROMPT_SUBMIT,
    POST_EDIT,
    POST_AGENT_COMPLETED,
    changed(SESSION_START, session_id=OTHER, session_title="[bold]other\x1b[2J"),
    changed(SESSION_END, session_id=OTHER),
]


def command(home: Home, *arguments: str, expect: int = 0, given: str = "") -> str:
    """Run the real command line in the project, in a time zone far from UTC."""
    output = home.command(*arguments, data=given, expect=expect, TZ="Asia/Kathmandu")
    assert "\x1b" not in output
    return output


def objects(home: Home, noun: str, *arguments: str) -> list[dict[str, Any]]:
    content = json.loads(command(home, noun, "--json", *arguments))
    assert content["schema"] == 1
    return list(content[noun])


def play_day(home: Home, server: Server, writer: Writer) -> None:
    fire_all(DAY, home.with_env(CHECKPOINT_INTERVAL="0"))
    writer.start()
    until(lambda: is_drained(home, server, writer), "not drained")


@pytest.fixture
def day(private_home: Home, redis_server: Server, writer: Writer) -> Home:
    play_day(private_home, redis_server, writer)
    return private_home


@pytest.fixture(scope="module")
def unchanged_day() -> Iterator[Home]:
    """The same for all tests that only read it."""
    with made_home() as home, servers() as new_server:
        writer = Writer(home)
        try:
            play_day(home, new_server(home), writer)
        finally:
            if writer.is_running:
                writer.end()
        yield home


def test_sessions_shows_the_open_ones_or_all(unchanged_day: Home) -> None:
    (entry,) = objects(unchanged_day, "sessions")
    assert (entry["id"], entry["status"]) == (SESSION, "active")
    assert (entry["operations"], entry["agents"]) == (2, 1)
    assert {entry["id"] for entry in objects(unchanged_day, "sessions", "--all")} == {
        SESSION,
        OTHER,
    }
    table = command(unchanged_day, "sessions", "--all")
    assert SESSION in table
    assert "[bold]other\\x1b[2J" in table


def test_a_pipe_gets_columns_without_borders(unchanged_day: Home) -> None:
    head, *rows = command(unchanged_day, "sessions", "--all").splitlines()
    assert head.split()[:3] == ["session", "status", "last"]
    assert sorted(row.split()[0] for row in rows) == sorted([SESSION, OTHER])


def test_times_are_local_unless_utc_is_asked_for(unchanged_day: Home) -> None:
    stored = datetime.fromisoformat(objects(unchanged_day, "sessions")[0]["updated_at"])
    assert stored.utcoffset() is not None
    assert f"{stored:%Y-%m-%d %H:%M:%S}Z" in command(unchanged_day, "sessions", "--utc")
    local = stored.astimezone(timezone(timedelta(hours=5, minutes=45)))
    shown = command(unchanged_day, "sessions")
    assert f"{local:%Y-%m-%d %H:%M:%S} " in shown
    assert f"{stored:%Y-%m-%d %H:%M:%S}" not in shown


def test_a_session_and_its_log_are_shown(unchanged_day: Home) -> None:
    shown = command(unchanged_day, "session", "show", SESSION)
    for text in (SESSION, "claude-opus-5", "cart-refactor", "checkpoint", "Explore"):
        assert text in shown
    assert "{" not in shown
    log = command(unchanged_day, "session", "log", SESSION[:6])
    assert log.index("Auto-checkpoint: Edit") < log.index("Auto-checkpoint: Agent")
    assert "{" not in log
    assert f"hivepipe session show {SESSION}" in log
    (edit, _) = json.loads(command(unchanged_day, "session", "log", SESSION, "--json"))["log"]
    assert edit["message"] == "Auto-checkpoint: Edit"


def test_agents_are_listed_for_all_or_one_session(unchanged_day: Home) -> None:
    (entry,) = objects(unchanged_day, "agents")
    assert (entry["id"], entry["type"], entry["status"]) == (AGENT, "Explore", "completed")
    assert objects(unchanged_day, "agents", "--session", SESSION) == [entry]
    assert AGENT in command(unchanged_day, "agents")
    shown = command(unchanged_day, "agent", "show", AGENT[:5])
    assert "Map checkout callers" in shown
    assert "ephemeral" in shown


def test_a_prefix_must_be_unambiguous(unchanged_day: Home) -> None:
    output = command(unchanged_day, "session", "show", SESSION[:4], expect=1)
    assert SESSION in output
    assert OTHER in output
    for arguments in (("session", "show"), ("session", "log"), ("agent", "show")):
        assert "has the id %" in command(unchanged_day, *arguments, "%", expect=1)
    assert "see `hivepipe agents`" in command(unchanged_day, "agent", "show", "zz", expect=1)
    command(unchanged_day, "agents", "--session", "", expect=0)


def test_history_outlives_its_session(day: Home) -> None:
    with closing(sqlite3.connect(day.database, timeout=10)) as db, db:
        db.execute("DELETE FROM sessions WHERE id = ?", (SESSION,))
    assert "deleted; its events remain" in command(day, "session", "show", SESSION)
    assert json.loads(command(day, "session", "show", SESSION, "--json"))["session"] is None
    assert "Auto-checkpoint: Edit" in command(day, "session", "log", SESSION)


@pytest.mark.parametrize(
    "words", ["sessions", "session show a", "session log a", "agents", "agent show a"]
)
def test_a_missing_database_is_reported(private_home: Home, words: str) -> None:
    assert "nothing is recorded yet" in command(private_home, *words.split(), expect=1)
    assert not private_home.database.exists()
    private_home.path.mkdir()
    private_home.database.touch()  # as by a writer that has just started
    assert command(private_home, *words.split(), expect=1).startswith("hivepipe: ")


def test_before_init_a_listing_names_the_command_that_counts_waiting_events(
    private_home: Home,
) -> None:
    fire_all([SESSION_START], private_home.env)
    said = command(private_home, "session", "show", SESSION, expect=1)
    assert "is created when the first event is stored" in said
    assert "`hivepipe status` says whether events wait" in said
    status = json.loads(command(private_home, "status", "--json", expect=1))
    assert (status["condition"], status["spool"]) == ("unregistered", 1)


def test_an_empty_listing_says_that_events_wait_on_disk(private_home: Home) -> None:
    fire_all([SESSION_START, SESSION_END], private_home.env)
    command(private_home, "drain")
    assert command(private_home, "sessions") == "no open sessions; --all shows ended ones\n"
    fire_all([changed(SESSION_START, session_id=OTHER)], private_home.env)
    said = command(private_home, "sessions")
    assert said.endswith("ended ones; 1 event waits on disk: see `hivepipe status`\n")


def test_an_export_without_a_database_is_reported(private_home: Home) -> None:
    assert "nothing is recorded yet" in command(private_home, "export", "--jsonl", expect=1)
    assert not private_home.database.exists()


def test_a_listing_neither_writes_nor_keeps_a_lock(day: Home) -> None:
    with listings(day.database) as store:
        assert len(store.sessions(True)) == 2
        connection = sqlite3.connect(day.database, timeout=0, isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("DELETE FROM session_logs")
        connection.execute("COMMIT")
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        assert not busy, "a reader holds an old snapshot"
        connection.close()
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            store._connection.execute("DELETE FROM sessions")


def test_status_accounts_for_every_job(day: Home, redis_server: Server, writer: Writer) -> None:
    writer.end()
    fire_all([changed(SESSION_START, source="startup")], day.env)
    (day.path / "spool" / "bad").mkdir(parents=True)
    (day.path / "spool" / "bad" / "1.json").touch()
    (day.path / "spool" / "bad" / "1.json.reason").touch()
    redis = redis_server.client()
    before = json.loads(command(day, "status", "--json", expect=1))["accepted"]
    redis.incrby("hivepipe:periodic", 3)  # three periodic jobs that are done
    redis.incrby("hivepipe:done", 3)
    redis.incrby("hivepipe:retried", 5)
    report = json.loads(command(day, "status", "--json", expect=1))
    accounts = report["accounts"]
    assert report["schema"] == 1
    assert accounts["accepted"] == report["accepted"] == before + 3
    assert report["retried"] == 5
    assert "retried   5" in command(day, "status", expect=1)
    # A second archive pass waits for its time.
    assert accounts["accepted"] == accounts["done"] + accounts["waiting"] + accounts["retrying"]
    assert accounts["waiting"] == sum(report["queues"].values()) > 0
    assert report["oldest_waiting_secs"] >= 0
    assert (report["spool"], report["set_aside"]) == (0, 1)
    output = command(day, "status", expect=1)
    assert f"accepted  {accounts['accepted']} = {accounts['done']} done" in output
    assert "1 unreadable in spool/bad" in output
    assert "no-op     0 checkpoint updates" in output

    redis_server.end()
    report = json.loads(command(day, "status", "--json", expect=1))
    for name in ("accounts", "accepted", "queues", "oldest_waiting_secs"):
        assert report[name] is None
    assert "unregistered: " in command(day, "status", expect=1)


def test_status_shows_updates_without_effect(day: Home) -> None:
    rows = [("zero_rows:update_checkpoint", 3), ("zero_rows:update_instance", 2)]
    with closing(sqlite3.connect(day.database, timeout=10)) as db, db:
        db.executemany("INSERT INTO counters VALUES (?, ?)", rows)
    output = command(day, "status", expect=1)
    assert "no-op     3 checkpoint updates found no row to change" in output
    assert "no-op     zero_rows:update_instance 2" in output
