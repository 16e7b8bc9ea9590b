"""Heartbeats: every tool call is counted once, without a job, and stalled sessions are detected."""

import itertools
import json
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hivepipe.cli.main import main
from hivepipe.db.activity import record_activity
from hivepipe.db.database import Database
from hivepipe.db.session_state import note_work
from hivepipe.jobs.envelope import Envelope
from hivepipe.operations import heartbeats
from hivepipe.operations.client_status import ClientStatus
from hivepipe.operations.liveness import condition
from hivepipe.operations.registry import execute
from hivepipe.queue.activity import take_activity
from hivepipe.settings import use as set_in_files
from hivepipe.times import stored_time
from tests import native_fire, payloads
from tests.conftest import (
    Home,
    Server,
    Writer,
    accepted,
    hook_answer,
    is_drained,
    repeat_until_in_time,
    until,
)
from tests.payloads import SESSION, changed


class Scene:
    """A home with Redis and a writer that is not yet started."""

    def __init__(self, home: Home, server: Server, writer: Writer) -> None:
        self.home = home
        self.server = server
        self.writer = writer

    def fire(self, payload: dict[str, Any], **variables: str) -> None:
        hook_answer(payload["hook_event_name"], payload, self.home.with_env(**variables))

    def fire_all(self, events: list[dict[str, Any]], at_once: int = 1, **variables: str) -> None:
        with ThreadPoolExecutor(at_once) as pool:
            for _ in pool.map(lambda event: self.fire(event, **variables), events):
                pass

    def stored(self, session: str = SESSION) -> dict[str, Any]:
        """Return the sums of the stored totals, or an empty dictionary if there are none."""
        rows = self.home.rows(f"SELECT * FROM activity WHERE session_id = '{session}'")
        if not rows:
            return {}
        names = ("calls", "failed", "denied", "warned")
        last = max(rows, key=lambda row: row["last_active_at"])
        return {**last, **{name: sum(row[name] for row in rows) for name in names}}


@pytest.fixture
def scene(private_home: Home, redis_server: Server, writer: Writer) -> Scene:
    return Scene(private_home, redis_server, writer)


def calls(kind: dict[str, Any], times: int, **fields: Any) -> list[dict[str, Any]]:
    return [changed(kind, tool_use_id=f"t{n}", **fields) for n in range(times)]


def test_fifty_parallel_calls_are_stored_as_fifty(scene: Scene) -> None:
    results = [*calls(payloads.POST_BASH, 20), *calls(payloads.FAILED_BASH, 50)[20:]]

    def wave(session: str) -> None:
        for events, at_once in ((calls(payloads.PRE_BASH, 50), 50), (results, 10)):
            named = [changed(event, session_id=session) for event in events]
            scene.fire_all(named, at_once)

    session = repeat_until_in_time(scene.home, wave)
    scene.writer.start()
    until(lambda: scene.stored(session), "not flushed")
    found = scene.stored(session)
    assert (found["calls"], found["failed"], found["open_calls"]) == (50, 30, 0)
    assert scene.writer.end() == 0


def test_a_call_makes_no_job_and_one_connection(scene: Scene) -> None:
    scene.fire(payloads.PRE_BASH)  # this also creates the session
    before = accepted(scene.server)
    with scene.server.client() as client:
        connected = client.info("stats")["total_connections_received"]
        for kind in (payloads.PRE_BASH, payloads.POST_BASH, payloads.FAILED_BASH):
            scene.fire_all(calls(kind, 5))
        scene.fire(payloads.POST_EDIT)
        now = client.info("stats")["total_connections_received"]
    # the intake keeps a connection open
    assert now - connected == (0 if native_fire.IS_NATIVE else 16)
    assert accepted(scene.server) - before == 3  # the checkpoint of the edit is a job


def test_a_call_counts_once_though_it_is_fired_twice_or_only_its_result(scene: Scene) -> None:
    for kind in (payloads.PRE_BASH, payloads.FAILED_BASH):
        twice = [event for event in calls(kind, 5) for _ in range(2)]
        scene.fire_all(twice, 10)
    scene.fire_all(calls(payloads.POST_BASH, 5, session_id="results"), 5)
    scene.writer.start()
    until(lambda: scene.stored() and scene.stored("results"), "not flushed")
    found = scene.stored()
    assert (found["calls"], found["failed"]) == (5, 5)
    assert scene.stored("results")["calls"] == 5


def test_open_calls_the_open_turn_task_and_profile_are_stored(scene: Scene) -> None:
    names = {"TASK_ID": "t-1", "AGENT_ID": "ana"}
    scene.writer.start()
    scene.fire(payloads.USER_PROMPT_SUBMIT, **names)
    scene.fire_all(calls(payloads.PRE_BASH, 3), 3, **names)
    scene.fire(calls(payloads.POST_BASH, 1)[0], **names)
    until(lambda: scene.stored().get("open_calls") == 2, "not flushed")
    found = scene.stored()
    assert (found["turn_is_open"], found["task_id"], found["profile"]) == (1, "t-1", "ana")
    scene.fire(payloads.STOP, **names)
    until(lambda: scene.stored()["turn_is_open"] == 0, "the turn did not end")


@pytest.mark.parametrize("agent", ["hook-agent-1", "a4607689665358ae5"])  # the latter of /btw
def test_an_internal_agent_neither_counts_nor_reopens_the_turn(scene: Scene, agent: str) -> None:
    scene.writer.start()
    scene.fire_all([payloads.USER_PROMPT_SUBMIT, *calls(payloads.PRE_BASH, 2)])
    scene.fire(changed(payloads.STOP, background_tasks=[]))
    until(lambda: state_of(scene.home) == ("paused", True), "not paused")
    internal = {"agent_id": agent, "agent_type": ...}
    for kind in (payloads.PRE_BASH, payloads.FAILED_BASH):
        scene.fire_all([changed(kind, **internal, tool_use_id=f"j{n}") for n in range(3)])
    scene.fire_all(calls(payloads.PRE_BASH, 1, session_id="later"))
    until(lambda: scene.stored("later"), "not flushed")
    assert (scene.stored()["calls"], scene.stored()["failed"]) == (2, 0)
    assert state_of(scene.home) == ("paused", True)


def state_of(home: Home) -> tuple[str, bool]:
    """Return a session's status, and whether it is known when it paused."""
    rows = home.rows(f"SELECT status, paused_at FROM sessions WHERE id = '{SESSION}'")
    return (rows[0]["status"], rows[0]["paused_at"] is not None) if rows else ("", False)


def test_a_heartbeat_after_the_end_of_a_turn_makes_a_session_active_again(scene: Scene) -> None:
    scene.writer.start()
    scene.fire(payloads.USER_PROMPT_SUBMIT)
    in_background = {"agent_id": "a1", "agent_type": "Explore", "tool_use_id": "t-background"}
    for number, call in enumerate((payloads.PRE_BASH, changed(payloads.PRE_BASH, **in_background))):
        end = changed(payloads.STOP, prompt_id=f"p{number}", background_tasks=[])
        # A repeated Stop does not count as work.
        scene.fire_all([end, end])
        until(lambda: scene.stored().get("turn_is_open") == 0, "not flushed")
        until(lambda: state_of(scene.home) == ("paused", True), "not paused")
        scene.fire(call)
        until(lambda: state_of(scene.home) == ("active", False), "still paused")


@pytest.mark.parametrize("order", list(itertools.permutations(("pause", "work", "end"))))
@pytest.mark.parametrize("worked_at", [1, 3])
def test_a_heartbeat_and_the_end_of_a_turn_in_any_order(
    tmp_path: Path, order: tuple[str, ...], worked_at: int
) -> None:
    """Events in any order give the same status to a session that was ended and reopened."""
    first_ns = time.time_ns() - 60 * 10**9

    def job(operation: str, at: int, **payload: Any) -> Envelope:
        time_ns = first_ns + at * 10**9
        return Envelope(
            id=f"{operation}",
            operation=operation,
            priority=1,
            payload=payload,
            session=SESSION,
            instance="i-1",
            project="/shop",
            event_time_ns=time_ns,
        )

    with closing(Database(tmp_path / "hive.db")) as db, db.transaction():
        execute(db, job("start_session", 0, swarm="s", source="startup"))
        for step in order:
            if step == "pause":
                execute(db, job("pause_session", 2))
            elif step == "end":
                execute(db, job("end_session", 1, reason="other"))
            else:
                at = stored_time(first_ns + worked_at * 10**9)
                state = {
                    "open_calls": 0,
                    "turn_is_open": True,
                    "last_work_at": at,
                    "last_active_at": at,
                }
                totals = {"calls": 1, "failed": 0, "denied": 0, "warned": 0}
                record_activity(db, SESSION, 1, totals, state)
                note_work(db, SESSION)
        row = db.row("SELECT status, paused_at FROM sessions", {})
    assert row is not None
    is_active = worked_at > 2
    assert row["status"] == ("active" if is_active else "paused")
    assert (row["paused_at"] is None) == is_active


def test_totals_go_on_after_a_kill_or_the_loss_of_all_data(scene: Scene) -> None:
    def five_calls(name: str, expected: int) -> None:
        named = [changed(payloads.PRE_BASH, tool_use_id=f"{name}{n}") for n in range(5)]
        scene.fire_all(named, 5)
        scene.writer.restart_if_ended()
        until(lambda: scene.stored().get("calls") == expected, f"not flushed: {name}")

    five_calls("first", 5)
    scene.writer.end(signal.SIGKILL)
    five_calls("killed-writer", 10)
    scene.server.end(signal.SIGKILL)
    scene.server.start()
    five_calls("killed-redis", 15)
    with scene.server.client() as client:
        client.flushall()
    five_calls("lost-data", 20)


def test_activity_stays_until_its_newest_state_is_stored(scene: Scene) -> None:
    """As with a scheduler's job that still runs when a writer has started, and is then killed."""
    scene.fire_all(calls(payloads.PRE_BASH, 3))
    with scene.server.client() as client:
        stored = take_activity(client)
        other = [changed(event, session_id="other") for event in calls(payloads.PRE_BASH, 2)]
        more = [*calls(payloads.PRE_BASH, 5), *other]
        scene.fire_all(more)
        take_activity(client)  # by a process that is then killed
        left = take_activity(client, stored)
        assert {(each.session, each.calls) for each in left} == {(SESSION, 5), ("other", 2)}
        assert take_activity(client, left) == []


def test_a_locked_database_loses_no_activity(scene: Scene) -> None:
    scene.fire_all(calls(payloads.PRE_BASH, 3))
    db = Database(scene.home.database, 0.1)
    lock = sqlite3.connect(scene.home.database, isolation_level=None)
    with scene.server.client() as client:
        beats = heartbeats.Heartbeats(client)
        lock.execute("BEGIN IMMEDIATE")
        beats.flush(db)
        lock.execute("ROLLBACK")
        assert not scene.stored()
        beats.flush(db)
    lock.close()
    db.close()
    assert scene.stored()["calls"] == 3


def test_foreign_names_among_the_sessions_are_removed(scene: Scene) -> None:
    with scene.server.client() as client:
        client.sadd("hivepipe:active", "../x", b"\xff", "nothing-of-it")
        client.sadd("hivepipe:active", "without-start", SESSION)
        for session in (b"../x", b"\xff", SESSION.encode()):
            client.hset(b"hivepipe:activity:" + session, mapping={"since_ms": 1, "calls": 1})
        client.hset("hivepipe:activity:without-start", mapping={"calls": 1})
        (taken,) = take_activity(client)
        assert taken.session == SESSION
        assert client.smembers("hivepipe:active") == {SESSION.encode()}


BEATS = st.lists(
    st.tuples(st.integers(1, 2), st.integers(0, 9), st.integers(0, 5), st.booleans()), min_size=1
)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(BEATS, st.randoms())
def test_times_only_move_forward_and_totals_only_rise(
    tmp_path: Path, beats: list[tuple[int, int, int, bool]], random: Any
) -> None:
    rows = []
    for order in (beats, random.sample(beats, len(beats))):
        db = Database(tmp_path / "hive.db")
        with db.transaction():
            db.execute("DELETE FROM activity", {})
            for since, second, calls, _ in order:
                state = {
                    "open_calls": second % 3,
                    "turn_is_open": bool(second % 2),
                    "waits_for": "permission: Bash" if second % 2 else "",
                    "task_id": f"t{second}",
                    "last_work_at": f"2026-11-21T01:00:0{second}.000Z" if second % 2 else None,
                    "last_active_at": f"2026-11-21T01:00:0{second}.000Z",
                }
                totals = {"calls": calls + second, "failed": calls, "denied": 0, "warned": 0}
                record_activity(db, "s", since, totals, state)
        rows.append([tuple(row) for row in db.rows("SELECT * FROM activity ORDER BY since_ms")])
        db.close()
    assert rows[0] == rows[1]


# ---- stalled and lost
def ago(**time_ago: int) -> str:
    return (datetime.now(UTC) - timedelta(**time_ago)).isoformat(timespec="milliseconds")


@pytest.mark.parametrize(
    ("status", "silent", "waits", "alive", "expected"),
    [
        ("active", {"minutes": 14}, False, True, "active"),
        ("active", {"minutes": 16}, False, True, "stalled"),
        ("active", {"minutes": 16}, False, None, "stalled"),
        ("active", {"minutes": 31}, False, None, "lost"),
        ("active", {"hours": 9}, False, True, "stalled"),
        ("active", {"hours": 9}, True, True, "active"),
        ("active", {"seconds": 1}, False, False, "lost"),
        ("active", {"seconds": 1}, True, False, "lost"),
        ("paused", {"hours": 9}, False, True, "paused"),
        ("paused", {"hours": 9}, False, False, "lost"),
        ("ended", {"hours": 9}, False, False, "ended"),
    ],
)
def test_conditions(
    status: str, silent: dict[str, int], waits: bool, alive: bool | None, expected: str
) -> None:
    assert condition(status, ago(**silent), waits=waits, alive=alive) == expected


LONG_AGO, NOW_NS = ago(hours=9), time.time_ns()


@pytest.mark.parametrize(
    ("client", "asks", "turn_is_open", "expected"),
    [
        (None, True, True, "waiting"),
        (ClientStatus("waiting", NOW_NS, "approve Bash"), False, True, "waiting"),
        (ClientStatus("busy", NOW_NS), True, True, "active"),
        (ClientStatus("busy", 0), True, True, "waiting"),
        (ClientStatus("idle", NOW_NS), True, True, "paused"),
        (ClientStatus("idle", NOW_NS), False, True, "paused"),
        (ClientStatus("idle", 0), False, True, "active"),
        # the notification came after the end of the turn
        (ClientStatus("idle", 0), True, True, "paused"),
        (ClientStatus("shell", NOW_NS), False, True, "paused"),
        # the session got no prompt yet; a command in the background keeps it active
        (ClientStatus("idle", 0), False, False, "paused"),
        (ClientStatus("shell", NOW_NS), False, False, "active"),
    ],
)
def test_the_clients_own_status_counts_if_it_is_newer(
    client: ClientStatus | None, asks: bool, turn_is_open: bool, expected: str
) -> None:
    def now(status: str, *, alive: bool, turn_is_open: bool = True) -> str:
        return condition(
            status,
            LONG_AGO,
            waits=True,
            alive=alive,
            asks=asks,
            turn_is_open=turn_is_open,
            client=client,
        )

    assert now("active", alive=True, turn_is_open=turn_is_open) == expected
    assert now("active", alive=False) == "lost"
    assert now("ended", alive=True) == "ended"


def test_the_limits_of_stalled_and_lost_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def now(**silent: int) -> str:
        return condition("active", ago(**silent), waits=False, alive=None)

    set_in_files({"HIVEPIPE_STALLED_SECS": "60", "HIVEPIPE_LOST_SECS": "7200"})
    try:
        assert now(seconds=10) == "active"
        assert now(minutes=2) == "stalled"
        assert now(minutes=100) == "stalled"
        assert now(minutes=121) == "lost"
    finally:
        set_in_files({})


@pytest.fixture
def listed(
    private_home: Home, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], dict[str, dict[str, Any]]]:
    monkeypatch.chdir(private_home.project)

    def show() -> dict[str, dict[str, Any]]:
        result = CliRunner().invoke(main, ["sessions", "--json"])
        assert result.exit_code == 0, result.output
        return {entry["id"]: entry for entry in json.loads(result.output)["sessions"]}

    return show


def test_sessions_shows_stalled_and_lost_ones(
    scene: Scene, listed: Callable[[], dict[str, dict[str, Any]]]
) -> None:
    claude = subprocess.Popen(["sleep", "600"])
    try:
        for session in ("works", "stalls", "waits", "gone"):
            instance = f"i-{session}"
            scene.fire(changed(payloads.PRE_BASH, session_id=session), INSTANCE_ID=instance)
            if session != "waits":
                scene.fire(changed(payloads.POST_BASH, session_id=session), INSTANCE_ID=instance)
        scene.writer.start()
        until(lambda: is_drained(scene.home, scene.server, scene.writer), "not drained")
        until(lambda: scene.home.count("activity") == 4, "not flushed")
        scene.writer.end()
        with sqlite3.connect(scene.home.database) as db:
            db.execute("UPDATE instances SET pid = ?, pid_started = ''", (claude.pid,))
            db.execute("UPDATE instances SET pid = 4194305 WHERE id = 'i-gone'")
            for table, column in (("sessions", "updated_at"), ("activity", "last_active_at")):
                key = "id" if table == "sessions" else "session_id"
                for session in ("stalls", "waits"):
                    sql = f"UPDATE {table} SET {column} = ? WHERE {key} = ?"
                    db.execute(sql, (ago(minutes=20), session))
        db.close()
        found = {name: entry["condition"] for name, entry in listed().items()}
        assert found == {"works": "active", "stalls": "stalled", "waits": "active", "gone": "lost"}
        assert {entry["status"] for entry in listed().values()} == {"active"}
        with sqlite3.connect(scene.home.database) as db:  # as seen from a sandbox
            db.execute("UPDATE instances SET pid_space = 'pid:[1]' WHERE id = 'i-gone'")
        db.close()
        assert listed()["gone"]["condition"] == "active"
        shown = CliRunner().invoke(main, ["sessions"]).output
        assert "stalled" in shown
        shown = CliRunner().invoke(main, ["session", "show", "works"]).output
        assert "tool call" in shown
        assert "no answer of Claude is recorded" in shown
    finally:
        claude.kill()
        claude.wait()


def test_the_last_activity_is_a_call_or_an_event(
    scene: Scene, listed: Callable[[], dict[str, dict[str, Any]]]
) -> None:
    scene.fire(payloads.SESSION_START)
    scene.writer.start()
    until(lambda: is_drained(scene.home, scene.server, scene.writer), "not drained")
    started = listed()[SESSION]
    assert (started["calls"], started["last_active_at"]) == (0, started["updated_at"])
    time.sleep(0.01)
    scene.fire(payloads.PRE_BASH)
    until(lambda: listed()[SESSION]["calls"] == 1, "not flushed")
    assert listed()[SESSION]["last_active_at"] > started["updated_at"]
    assert listed()[SESSION]["updated_at"] == started["updated_at"]


def test_the_calls_of_an_ended_session_are_stored_at_its_end(scene: Scene) -> None:
    scene.writer.start()
    scene.fire(payloads.SESSION_START)
    until(lambda: scene.stored() or scene.home.rows("SELECT 1 FROM sessions"), "no session")
    scene.fire_all(calls(payloads.PRE_BASH, 3))
    scene.fire(payloads.SESSION_END)
    ended = "SELECT 1 FROM sessions WHERE status = 'ended'"
    until(lambda: scene.home.rows(ended), "not ended")
    began = time.monotonic()
    until(lambda: scene.stored().get("calls") == 3, "not flushed")
    assert time.monotonic() - began < heartbeats.EVERY_SECS / 2
