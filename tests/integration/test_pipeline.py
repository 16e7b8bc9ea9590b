"""From real hooks through real processes to exactly the expected rows, even with failures."""

import itertools
import json
import os
import socket
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hivepipe import direct
from tests.conftest import Home, Server, Writer, accepted, fire, fire_all, is_drained, until
from tests.payloads import (
    FAILED_AGENT,
    FAILED_SKILL,
    POST_AGENT_ASYNC,
    POST_AGENT_COMPLETED,
    POST_EDIT,
    POST_SKILL,
    SESSION_END,
    SESSION_START,
    STOP,
    SUBAGENT_START,
    SUBAGENT_STOP,
    USER_PROMPT_SUBMIT,
    Payload,
    changed,
)

INJECTION = "x','r','{}','s','now'); UPDATE sessions SET status='pwned'; --"
INSTANCE = "instance-ana"
OTHER_UNSTABLE = {"last_seen", "last_active", "timestamp", "spawnedAt"}
OTHER_UNSTABLE |= {"concluded_by", "pid", "pid_started", "boot", "pid_space", "job_id"}
NUMBERED = ("session_logs", "prompts", "skill_uses")  # their ids only show the order of arrival


def edit(number: int, **more: Any) -> Payload:
    return changed(POST_EDIT, tool_use_id=f"toolu_edit{number}", **more)


def agent_call(payload: Payload, id: str, agent: str) -> Payload:
    response = {**payload["tool_response"], "agentId": agent}
    return changed(payload, tool_use_id=id, tool_response=response)


DAY: list[Payload] = [
    SESSION_START,
    USER_PROMPT_SUBMIT,
    edit(1),
    edit(2),
    edit(3),
    agent_call(POST_AGENT_COMPLETED, "toolu_done", "a0done"),
    agent_call(POST_AGENT_ASYNC, "toolu_async", "a1async"),
    changed(SUBAGENT_STOP, agent_id="a1async"),
    changed(POST_SKILL, tool_use_id="toolu_skill"),
    changed(FAILED_SKILL, tool_use_id="toolu_noskill"),
    changed(FAILED_AGENT, tool_use_id="toolu_noagent"),
    changed(STOP, background_tasks=[]),
    SESSION_END,
]
JOBS_OF_THE_DAY = 1 + 2 + 3 + 1 + 1 + 1 + 1 + 1 + 1 + 2 + 3  # with one checkpoint
SLOW_JOBS_OF_THE_DAY = 3 * 2 + 2  # per subagent stop, turn and end; and for the conclusion


def is_unstable(name: str) -> bool:
    """Return whether a field holds a time, or a value that differs between runs."""
    return name.endswith(("_at", "_ns")) or name in OTHER_UNSTABLE


def masked(value: Any, name: str = "") -> Any:
    """Leave out fields without a value and mask those that differ between runs, also in JSON."""
    if is_unstable(name) and value != 0:
        return "~"
    if isinstance(value, dict):
        return {key: masked(inner, key) for key, inner in value.items() if inner is not None}
    if isinstance(value, str) and value.startswith("{"):
        try:
            return masked(json.loads(value))
        except ValueError:
            return value
    return value


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda each: json.dumps(each, sort_keys=True))


def tables(home: Home) -> dict[str, list[dict[str, Any]]]:
    """Return every table that has rows, with its rows masked and sorted."""
    sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    found = {}
    for name in (table["name"] for table in home.rows(sql)):
        rows = [masked(each) for each in home.rows(f"SELECT * FROM {name}")]
        if name in NUMBERED:
            for each in rows:
                del each["id"]
        found[name] = in_order(rows)
    # Ids derived from the time of an event differ; their number does not.
    found["applied"] = [{"jobs": len(found["applied"])}]
    del found["activity"]  # heartbeats do not use the spool
    return {name: rows for name, rows in found.items() if rows}


def run_through_the_queue(
    home: Home, server: Server, writer: Writer, events: Iterable[Payload], **env: str
) -> None:
    writer.start()
    fire_all(events, home.with_env(INSTANCE_ID=INSTANCE, **env))
    until(lambda: is_drained(home, server, writer), "not drained")
    assert writer.end() == 0


def run_directly(home: Home, events: Iterable[Payload], **env: str) -> None:
    fire_all(events, home.with_env(INSTANCE_ID=INSTANCE, USE_QUEUE="false", **env))
    assert home.spool == []


# ---- a session's day, and several instances
def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Compare table by table, so that a difference is readable."""
    assert sorted(found) == sorted(expected)
    for name, rows in expected.items():
        assert found[name] == in_order(rows), name


def test_a_throttled_day_gives_the_same_rows_by_both_paths(
    private_home: Home, redis_server: Server, writer: Writer
) -> None:
    """All rows of days without a throttle are compared in tests/faults/test_mixed_load.py."""
    direct_home = private_home.another("direct")
    run_through_the_queue(private_home, redis_server, writer, DAY, CHECKPOINT_INTERVAL="3600")
    run_directly(direct_home, DAY, CHECKPOINT_INTERVAL="3600")
    for home in (private_home, direct_home):
        (session,) = home.rows("SELECT * FROM sessions")
        ends = ("status", "end_reason", "turn", "last_end_reason", "concluded_before_ns")
        ended = ("ended", "prompt_input_exit", "paused", "prompt_input_exit", 0)
        assert tuple(session[name] for name in ends) == ended
        assert json.loads(session["checkpoint_data"])["operationCount"] == 5
        (assigned,) = home.rows("SELECT checkpoint_count, operation_count FROM instance_sessions")
        assert assigned == {"checkpoint_count": 1, "operation_count": 5}
        (log,) = home.rows("SELECT message FROM session_logs")
        assert log == {"message": "Auto-checkpoint: Edit"}
        assert home.rows("SELECT DISTINCT host FROM instances") == [{"host": socket.gethostname()}]
        assert home.count("applied") == JOBS_OF_THE_DAY
    assert accepted(redis_server) == JOBS_OF_THE_DAY + SLOW_JOBS_OF_THE_DAY
    assert_same(tables(direct_home), tables(private_home))


def test_an_injection_is_text_by_both_paths(
    private_home: Home, redis_server: Server, writer: Writer
) -> None:
    resolved = ("agentType", "resolvedModel")  # otherwise these fields of the response are used
    response = {key: value for key, value in DAY[5]["tool_response"].items() if key not in resolved}
    texts = dict.fromkeys(("subagent_type", "description", "model"), INJECTION)
    hostile = changed(DAY[5], tool_input=DAY[5]["tool_input"] | texts, tool_response=response)
    other = private_home.another("direct")
    run_through_the_queue(private_home, redis_server, writer, [SESSION_START, hostile])
    run_directly(other, [SESSION_START, hostile])
    agent = {"id": "a0done", "status": "completed"}
    for home in (private_home, other):
        assert home.rows("SELECT id, status, type, name, model FROM agents") == [
            agent | dict.fromkeys(("type", "name", "model"), INJECTION)
        ]
        assert home.rows("SELECT status FROM sessions") == [{"status": "active"}]
    assert_same(tables(other), tables(private_home))


def test_operations_are_counted_by_instance_and_summed_by_session(
    private_home: Home, redis_server: Server, writer: Writer
) -> None:
    edits = {"one": 2, "two": 3, "three": 0}
    writer.start()
    number = itertools.count()
    for instance, times in edits.items():
        for _ in range(times):
            fire("PostToolUse", edit(next(number)), private_home.with_env(INSTANCE_ID=instance))
    for instance in edits:
        event = changed(STOP, prompt_id=f"prompt-{instance}")
        fire("Stop", event, private_home.with_env(INSTANCE_ID=instance))
    until(lambda: is_drained(private_home, redis_server, writer), "not drained")
    counted = private_home.rows(
        "SELECT instance_id, operation_count, checkpoint_count, status FROM instance_sessions"
    )
    assert {row.pop("instance_id"): row for row in counted} == {
        instance: {"operation_count": times, "checkpoint_count": min(times, 1), "status": "active"}
        for instance, times in edits.items()
    }
    saved = private_home.rows("SELECT checkpoint_data FROM sessions")
    assert [json.loads(row["checkpoint_data"])["operationCount"] for row in saved] == [5]


# ---- Redis stops, is killed, is absent
def wave(count: int, start: int = 0) -> list[Payload]:
    """Return events of one session that each create a row, in any order."""
    events: list[Payload] = []
    for number in range(start, start + count):
        agent = changed(SUBAGENT_START, agent_id=f"wave{number}")
        skill = changed(POST_SKILL, tool_use_id=f"toolu_wave{number}")
        prompt = changed(USER_PROMPT_SUBMIT, prompt=f"wave {number}")
        events.append((agent, skill, agent, prompt)[number % 4])
    return events


def assert_rows_of_wave(home: Home, events: list[Payload]) -> None:
    """Each event has exactly one row."""
    kinds = Counter(event["hook_event_name"] for event in events)
    agents = {event["agent_id"] for event in events if event["hook_event_name"] == "SubagentStart"}
    prompts = sorted(event["prompt"] for event in events if "prompt" in event)
    assert {row["id"] for row in home.rows("SELECT id FROM agents")} == agents
    assert sorted(row["prompt"] for row in home.rows("SELECT prompt FROM prompts")) == prompts
    assert home.count("skill_uses") == kinds["PostToolUse"]
    jobs = kinds["SubagentStart"] + kinds["PostToolUse"] + 2 * kinds["UserPromptSubmit"]
    assert home.count("applied") == jobs + 1  # and the session's start


def test_fifty_first_hooks_at_once_without_a_stack(
    private_home: Home, new_server: Callable[[Home], Server], writer: Writer
) -> None:
    sessions = [f"session-{number:02}" for number in range(50)]
    barrier = threading.Barrier(50)

    def first(session: str) -> None:
        barrier.wait()
        event = changed(SESSION_START, session_id=session)
        fire("SessionStart", event, private_home.with_env(INSTANCE_ID=f"i-{session}"))

    assert not private_home.path.exists()
    with ThreadPoolExecutor(50) as pool:
        for _ in pool.map(first, sessions):
            pass
    log = private_home.logs / "hook-errors.log"
    assert len(private_home.spool) == 50, log.read_text()[-2000:]
    server = new_server(private_home)
    writer.start()
    until(lambda: is_drained(private_home, server, writer), "not drained")
    rows = private_home.rows("SELECT id FROM sessions ORDER BY id")
    assert [row["id"] for row in rows] == sessions
    assert private_home.count("instance_sessions") == 50
    assert private_home.count("applied") == accepted(server) == 50


def test_an_event_with_an_invalid_folder_is_kept(private_home: Home) -> None:
    env = private_home.env
    del env["CLAUDE_PROJECT_DIR"]
    for number, cwd in enumerate(("nowhere", "/nowhere/at/all", "../up", "", "\0"), 1):
        fire("SessionStart", changed(SESSION_START, cwd=cwd), env)
        assert len(private_home.spool) == number, cwd


# ---- the spool without Redis
def test_the_process_with_the_lock_applies_an_event_that_is_spooled_meanwhile(
    private_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    fire("SessionStart", SESSION_START, private_home.env)
    events = wave(1)
    late = iter(events)

    def apply_late(*arguments: Any) -> direct.Report:
        for event in late:  # its own process finds the spool locked
            fire(event["hook_event_name"], event, private_home.with_env(USE_QUEUE="false"))
            assert len(private_home.spool) == 2
        return apply_files(*arguments)

    apply_files = direct.apply_files
    monkeypatch.setattr(direct, "apply_files", apply_late)
    direct.apply_in_turn(str(private_home.path), private_home.spool[0])
    assert private_home.spool == []
    assert_rows_of_wave(private_home, events)


def test_a_spool_is_drained_directly_and_bad_files_are_set_aside(
    private_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = private_home.with_env(INSTANCE_ID=INSTANCE)
    fire("SessionStart", SESSION_START, env)
    events = wave(29)
    fire_all(events, env, at_once=4)
    assert len(private_home.spool) == 30
    spool = private_home.path / "spool"
    torn = spool / "00000000000000000001_1.json"
    torn.write_bytes(private_home.spool[15].read_bytes()[:-20])
    foreign = spool / "00000000000000000002_1.json"
    foreign.write_text('{"v":1,"jobs":[{"queue":"other","envelope":{}}]}')
    abandoned = spool / "00000000000000000003_1.json.tmp"
    abandoned.write_text('{"v":1,"jobs":[{')
    os.utime(abandoned, (time.time() - 3600,) * 2)
    young = spool / "00000000000000000004_1.json.tmp"
    young.write_text('{"v":1,"jobs":[{')

    report = direct.drain(str(private_home.path))
    assert (report.applied, report.failed) == (30, {})
    assert set(report.set_aside) == {torn, foreign, abandoned}
    assert_rows_of_wave(private_home, events)
    assert [path.name for path in spool.iterdir() if path.is_file()] == [young.name]
    bad = spool / "bad"
    names = {path.name for path in (torn, foreign, abandoned)}
    assert {path.name for path in bad.iterdir()} == names | {f"{name}.reason" for name in names}
    for name in names:
        assert Path(bad / f"{name}.reason").read_text().strip()
    assert direct.drain(str(private_home.path)).applied == 0
    assert_rows_of_wave(private_home, events)


def test_a_failed_job_keeps_no_secret(
    private_home: Home, redis_server: Server, writer: Writer
) -> None:
    token = "ghp_CANARYCANARYCANARY0123456789abcdef"
    start = {"hook_event_name": "SessionStart", "session_id": "s1", "source": "startup"}
    agent = {
        "hook_event_name": "PostToolUse",
        "session_id": "s1",
        "tool_name": "Agent",
        "tool_use_id": "t1",
        "tool_input": {"description": f"use {token}", "subagent_type": token},
    }
    writer.start()
    fire("SessionStart", start, private_home.env)
    until(lambda: private_home.count("sessions") == 1, "no session")
    connection = sqlite3.connect(private_home.database)
    with connection:
        connection.execute("DELETE FROM swarms")
    connection.close()
    fire("PostToolUse", agent, private_home.with_env(CHECKPOINT_INTERVAL="3600"))
    with redis_server.client() as client:
        # each retry lowered its priority
        until(lambda: client.zcard("rq:failed:low") == 1, "no failed job")
        (job,) = client.zrange("rq:failed:low", 0, -1)
        kept = b"".join(client.hgetall(b"rq:job:" + job).values())
    assert token.encode() not in kept
    assert b"REDACTED" in kept


def test_a_named_pipe_instead_of_the_checkpoint_file_loses_no_event(
    private_home: Home, redis_server: Server, writer: Writer
) -> None:
    (private_home.path / "instances").mkdir(mode=0o700, parents=True)
    os.mkfifo(private_home.path / "instances" / "r1.checkpoint")
    env = private_home.with_env(INSTANCE_ID="r1")
    start = {"hook_event_name": "SessionStart", "session_id": "s1", "source": "startup"}
    fire("SessionStart", start, env)
    fire("Stop", {"hook_event_name": "Stop", "session_id": "s1"}, env)
    writer.start()
    until(lambda: is_drained(private_home, redis_server, writer), "not drained")
    assert private_home.rows("SELECT status FROM sessions") == [{"status": "paused"}]
