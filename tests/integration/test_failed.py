"""`hivepipe failed`: dead-lettered jobs are listed, retried and discarded, even unreadable ones."""

import base64
import json
import pickle
import sqlite3
import zlib
from contextlib import closing
from typing import Any

import pytest

from hivepipe.errors import StackError
from hivepipe.queue.claims import accounts
from hivepipe.queue.failed_jobs import failed_jobs
from hivepipe.stack.redis_access import available_redis
from hivepipe.stack.runtime_folder import Stack
from tests.conftest import Home, Server, Writer, fire, is_drained, until
from tests.integration.test_restricted_rq import Hostile
from tests.payloads import (
    AGENT,
    POST_AGENT_COMPLETED,
    SESSION,
    SESSION_START,
    SUBAGENT_START,
    changed,
)

SECRET = "sk-ant-api03-" + "EXAMPLE0123456789" * 2


def listed(home: Home, *arguments: str) -> list[dict[str, Any]]:
    content = json.loads(home.command("failed", "list", "--json", *arguments))
    assert content["schema"] == 1
    return list(content["failed"])


def change(home: Home, sql: str, *values: str) -> None:
    with closing(sqlite3.connect(home.database, timeout=10)) as db, db:
        db.execute(sql, values)


def fail_agent_job(home: Home, server: Server, writer: Writer, **more: Any) -> str:
    """Fire an agent event whose job fails for lack of its swarm; return the swarm's id."""
    fire("SessionStart", SESSION_START, home.env)
    writer.start()
    until(lambda: home.count("swarms"), "no swarm")
    swarm = str(home.rows("SELECT id FROM swarms")[0]["id"])
    change(home, "DELETE FROM swarms")
    fire("PostToolUse", changed(POST_AGENT_COMPLETED, **more), home.env)
    with server.client() as client:
        until(lambda: client.zcard("rq:failed:low"), "no job failed", 20)
    return swarm


def add_failed_job(server: Server, id: str, data: bytes, **fields: str) -> None:
    with server.client() as client:
        client.hset(f"rq:job:{id}", mapping={"data": data, "status": "failed", **fields})
        client.zadd("rq:failed:medium", {id: -1})


def balance(server: Server) -> dict[str, int]:
    with server.client() as client:
        found = accounts(client)
    assert found["accepted"] == sum(n for name, n in found.items() if name != "accepted")
    return found


def test_a_job_without_its_parent_row_is_shown_with_the_steps_and_discarded_on_request(
    private_home: Home, redis_server: Server, writer: Writer
) -> None:
    tool_input = {**POST_AGENT_COMPLETED["tool_input"], "description": f"Use {SECRET}"}
    swarm = fail_agent_job(private_home, redis_server, writer, tool_input=tool_input)
    (job,) = listed(private_home)
    assert job["operation"] == "insert_agent"
    assert job["session"] == SESSION
    assert job["attempts"] == 4
    assert job["missing"] == {"kind": "swarm", "id": swarm}
    assert job["reason"] == f"max retries exceeded: swarm {swarm} does not exist"
    assert job["payload"]["agent_id"] == AGENT
    assert listed(private_home, "--operation", "insert_log") == []

    table = private_home.command("failed", "list")
    shown = private_home.command("failed", "show", job["id"][:8])
    for text in (table, shown):
        assert job["id"] in text
        assert SECRET not in text
    assert "***REDACTED" in shown
    assert f"missing swarm: {swarm}" in shown
    assert str(private_home.database) in shown
    assert f"hivepipe failed retry {job['id']}" in shown
    assert "1 failed job: hivepipe failed list" in private_home.command("status", expect=1)

    assert "Aborted" in private_home.command("failed", "discard", job["id"], data="n\n", expect=1)
    assert len(listed(private_home)) == 1
    assert "1 discarded" in private_home.command("failed", "discard", "--all", "--yes")
    assert listed(private_home) == []
    with redis_server.client() as client:
        assert not client.exists(f"rq:job:{job['id']}", f"rq:results:{job['id']}")
    assert balance(redis_server)["discarded"] == 1


def test_a_retried_job_starts_with_fresh_counters(
    private_home: Home, redis_server: Server, writer: Writer
) -> None:
    swarm = fail_agent_job(private_home, redis_server, writer)
    (job,) = listed(private_home)
    assert job["queue"] == "low", "each retry made it less urgent"
    with redis_server.client() as client:
        client.hset(f"rq:job:{job['id']}", mapping={"hp_deaths": 3, "retries_left": 0})
    writer.end()
    change(private_home, "INSERT INTO swarms (id, name) VALUES (?, 'shop')", swarm)

    assert "1 sent back" in private_home.command("failed", "retry", job["id"])
    with redis_server.client() as client:
        key = f"rq:job:{job['id']}"
        assert client.lrange("rq:queue:medium", 0, -1) == [job["id"].encode()]
        assert client.hmget(key, "status", "origin", "retries_left") == [b"queued", b"medium", b"3"]
        assert client.hmget(key, "hp_attempts", "hp_deaths") == [None, None]
        assert client.llen("hivepipe:bell") == 1
    assert balance(redis_server)["waiting"] == 1
    writer.start()
    until(lambda: is_drained(private_home, redis_server, writer), "not drained")
    assert private_home.count("agents") == 1
    assert listed(private_home) == []
    assert balance(redis_server)["failed"] == 0


def test_retry_selects_by_operation_or_all(
    private_home: Home, redis_server: Server, writer: Writer
) -> None:
    fail_agent_job(private_home, redis_server, writer)
    fire("SubagentStart", SUBAGENT_START, private_home.env)
    with redis_server.client() as client:
        until(lambda: client.zcard("rq:failed:low") == 2, "not both failed", 20)
    writer.end()
    assert {job["operation"] for job in listed(private_home)} == {"insert_agent", "start_agent"}
    assert "1 sent back" in private_home.command("failed", "retry", "--operation", "start_agent")
    assert [job["operation"] for job in listed(private_home)] == ["insert_agent"]
    assert "1 sent back" in private_home.command("failed", "retry", "--all")
    assert listed(private_home) == []
    assert balance(redis_server)["waiting"] == 2


def nested(depth: int) -> bytes:
    from hivepipe.queue.client import job_data  # noqa: PLC0415

    inner = "[" * depth + "]" * depth
    return job_data(
        '{"v":1,"id":"a","operation":"b","priority":1,"event_time_ns":1,"metadata":{},'
        f'"payload":{{"x":{inner}}}}}'
    )


def test_unreadable_jobs_are_listed_retried_and_discarded(
    private_home: Home, redis_server: Server, writer: Writer
) -> None:
    witness = private_home.root / "ran"
    hostile = pickle.dumps(Hostile(witness))
    reason = base64.b64encode(zlib.compress(b"\x1b[31m[red]Traceback\nBoom: x"))
    add_failed_job(redis_server, "evil", hostile, hp="1", meta=hostile.decode("latin-1"))
    add_failed_job(redis_server, "garbage", b"\xff\xfe", hp_attempts="many", description="\x1b[2J")
    add_failed_job(redis_server, "deep", nested(900))
    with redis_server.client() as client:
        client.xadd("rq:results:evil", {"type": 2, "exc_string": reason})
        client.zadd("rq:failed:high", {"ghost": -1})
        client.set("rq:job:wrong", "no hash")
        client.zadd("rq:failed:low", {"wrong": -1, b"\xff odd": -1})
    found = {job["id"]: job for job in listed(private_home, "--operation", "?")}
    assert set(found) == {"evil", "garbage", "deep", "ghost", "wrong", "? odd"}
    assert found["ghost"]["reason"] == "the job's data is missing"
    assert found["evil"]["reason"].endswith("Boom: x")
    for id in ("evil", "garbage", "deep", "ghost", "wrong"):
        assert "\x1b" not in private_home.command("failed", "show", id)
    assert "Boom: x" in private_home.command("failed", "list")

    assert "1 sent back" in private_home.command("failed", "retry", "evil")
    assert "has no data" in private_home.command("failed", "retry", "ghost", expect=1)
    writer.start()
    until(lambda: "evil" in {job["id"] for job in listed(private_home)}, "not failed again")
    assert "6 discarded" in private_home.command("failed", "discard", "--operation", "?", "--yes")
    assert "no failed jobs" in private_home.command("failed", "list")
    assert not witness.exists()


def test_a_file_that_redis_cannot_read_is_located(private_home: Home) -> None:
    private_home.path.mkdir(mode=0o700, exist_ok=True)
    (private_home.path / "appendonly.aof").write_text("garbage")
    output = private_home.command("failed", "list", expect=1)
    assert f"Redis ended: it cannot write its files in {private_home.path}, or" in output


def test_an_unknown_or_ambiguous_id_is_reported(private_home: Home, redis_server: Server) -> None:
    add_failed_job(redis_server, "aa1", b"x")
    add_failed_job(redis_server, "aa2", b"x")
    for action in ("show", "retry", "discard"):
        output = private_home.command("failed", action, "zz", expect=1)
        assert output.startswith("hivepipe: no failed job has the id zz")
        assert "2 failed jobs" in private_home.command("failed", action, "aa", expect=1)
    for arguments in ((), ("aa1", "--all"), ("--all", "--operation", "x")):
        private_home.command("failed", "retry", *arguments, expect=64)


@pytest.mark.parametrize("action", [["list"], ["show", "a"], ["retry", "--all"]])
def test_without_a_stack_there_are_no_failed_jobs(private_home: Home, action: list[str]) -> None:
    output = private_home.command("failed", *action, expect=1 if "show" in action else 0)
    assert output.startswith(("no failed jobs", "hivepipe: no failed job has", "0 sent back"))


def test_another_redis_that_does_not_answer_is_named() -> None:
    stack = Stack("/nowhere", "/nowhere", "redis://127.0.0.1:1/0")
    with (
        pytest.raises(StackError, match="Redis does not answer"),
        available_redis(stack) as address,
        failed_jobs(address) as store,
    ):
        store.jobs()
