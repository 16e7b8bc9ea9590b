"""`hivepipe failed`: what died is seen, sent back, or dropped, whatever it is made of."""

import base64
import json
import pickle
import sqlite3
import zlib
from typing import Any

import pytest

from hivepipe.errors import StackError
from hivepipe.queue.claims import accounts
from hivepipe.queue.failed_jobs import failed_jobs
from hivepipe.stack.lock import Stack
from hivepipe.stack.redis_access import available_redis
from tests.conftest import Home, Server, Writer, fire, is_drained, until
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
    connection = sqlite3.connect(home.database, timeout=10)
    with connection:
        connection.execute(sql, values)
    connection.close()


def bury_agent(home: Home, server: Server, writer: Writer, **more: Any) -> str:
    """Let an agent's job die of its missing swarm; return the swarm's id."""
    fire("SessionStart", SESSION_START, home.env)
    writer.start()
    until(lambda: home.count("swarms"), "no swarm")
    swarm = str(home.rows("SELECT id FROM swarms")[0]["id"])
    change(home, "DELETE FROM swarms")
    fire("PostToolUse", changed(POST_AGENT_COMPLETED, **more), home.env)
    with server.client() as client:
        until(lambda: client.zcard("rq:failed:low"), "nothing died", 20)
    return swarm


def bury_by_hand(server: Server, id: str, data: bytes, **fields: str) -> None:
    """Put a job of anybody's among the failed jobs."""
    with server.client() as client:
        client.hset(f"rq:job:{id}", mapping={"data": data, "status": "failed", **fields})
        client.zadd("rq:failed:medium", {id: -1})


def balance(server: Server) -> dict[str, int]:
    with server.client() as client:
        found = accounts(client)
    assert found["accepted"] == sum(n for name, n in found.items() if name != "accepted")
    return found


# ---- seen


def test_a_missing_parent_is_shown_with_its_id_and_the_steps(
    private_home: Home, redis_server: Server, writer: Writer
) -> None:
    tool_input = {**POST_AGENT_COMPLETED["tool_input"], "description": f"Use {SECRET}"}
    swarm = bury_agent(private_home, redis_server, writer, tool_input=tool_input)
    (letter,) = listed(private_home)
    assert letter["operation"] == "insert_agent"
    assert letter["session"] == SESSION
    assert letter["attempts"] == 4
    assert letter["missing"] == {"kind": "swarm", "id": swarm}
    assert letter["reason"] == f"max retries exceeded: swarm {swarm} does not exist"
    assert letter["payload"]["agent_id"] == AGENT
    assert listed(private_home, "--operation", "insert_log") == []

    table = private_home.command("failed", "list")
    shown = private_home.command("failed", "show", letter["id"][:8])
    for text in (table, shown):
        assert letter["id"] in text
        assert SECRET not in text
    assert "***REDACTED" in shown
    assert f"missing swarm: {swarm}" in shown
    assert str(private_home.database) in shown
    assert f"hivepipe failed retry {letter['id']}" in shown
    assert "1 failed job: hivepipe failed list" in private_home.command("status", expect=1)


# ---- sent back


def test_a_job_whose_cause_was_fixed_is_retried_as_if_it_were_new(
    private_home: Home, redis_server: Server, writer: Writer
) -> None:
    swarm = bury_agent(private_home, redis_server, writer)
    (letter,) = listed(private_home)
    assert letter["queue"] == "low", "each retry made it less urgent"
    with redis_server.client() as client:
        client.hset(f"rq:job:{letter['id']}", mapping={"hp_deaths": 3, "retries_left": 0})
    writer.end()
    change(private_home, "INSERT INTO swarms (id, name) VALUES (?, 'shop')", swarm)

    assert "1 sent back" in private_home.command("failed", "retry", letter["id"])
    with redis_server.client() as client:
        job = f"rq:job:{letter['id']}"
        assert client.lrange("rq:queue:medium", 0, -1) == [letter["id"].encode()]
        assert client.hmget(job, "status", "origin", "retries_left") == [b"queued", b"medium", b"3"]
        assert client.hmget(job, "hp_attempts", "hp_deaths") == [None, None]
        assert client.llen("hivepipe:bell") == 1
    assert balance(redis_server)["waiting"] == 1
    writer.start()
    until(lambda: is_drained(private_home, redis_server, writer), "not drained")
    assert private_home.count("agents") == 1
    assert listed(private_home) == []
    assert balance(redis_server)["failed"] == 0


def test_all_and_an_operation_select(
    private_home: Home, redis_server: Server, writer: Writer
) -> None:
    bury_agent(private_home, redis_server, writer)
    fire("SubagentStart", SUBAGENT_START, private_home.env)
    with redis_server.client() as client:
        until(lambda: client.zcard("rq:failed:low") == 2, "not both died", 20)
    writer.end()
    assert {letter["operation"] for letter in listed(private_home)} == {
        "insert_agent",
        "start_agent",
    }
    assert "1 sent back" in private_home.command("failed", "retry", "--operation", "start_agent")
    assert [letter["operation"] for letter in listed(private_home)] == ["insert_agent"]
    assert "1 sent back" in private_home.command("failed", "retry", "--all")
    assert listed(private_home) == []
    assert balance(redis_server)["waiting"] == 2


# ---- dropped


def test_discarding_asks_and_is_counted(
    private_home: Home, redis_server: Server, writer: Writer
) -> None:
    bury_agent(private_home, redis_server, writer)
    (letter,) = listed(private_home)
    assert "Aborted" in private_home.command(
        "failed", "discard", letter["id"], data="n\n", expect=1
    )
    assert len(listed(private_home)) == 1
    assert "1 discarded" in private_home.command("failed", "discard", "--all", "--yes")
    assert listed(private_home) == []
    with redis_server.client() as client:
        assert not client.exists(f"rq:job:{letter['id']}", f"rq:results:{letter['id']}")
    assert balance(redis_server)["discarded"] == 1


# ---- what cannot be read


class Hostile:
    """A pickle that runs a shell."""

    def __init__(self, witness: str) -> None:
        self.witness = witness

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        import os  # noqa: PLC0415

        return os.system, (f"touch {self.witness}",)


def nested(depth: int) -> bytes:
    from hivepipe.queue.client import job_data  # noqa: PLC0415

    inner = "[" * depth + "]" * depth
    return job_data(
        '{"v":1,"id":"a","operation":"b","priority":1,"event_time_ns":1,"metadata":{},'
        f'"payload":{{"x":{inner}}}}}'
    )


def test_the_unreadable_is_listed_retried_and_discarded(
    private_home: Home, redis_server: Server, writer: Writer
) -> None:
    witness = private_home.root / "ran"
    hostile = pickle.dumps(Hostile(str(witness)))
    reason = base64.b64encode(zlib.compress(b"\x1b[31m[red]Traceback\nBoom: x"))
    bury_by_hand(redis_server, "evil", hostile, hp="1", meta=hostile.decode("latin-1"))
    bury_by_hand(redis_server, "garbage", b"\xff\xfe", hp_attempts="many", description="\x1b[2J")
    bury_by_hand(redis_server, "deep", nested(900))
    with redis_server.client() as client:
        client.xadd("rq:results:evil", {"type": 2, "exc_string": reason})
        client.zadd("rq:failed:high", {"ghost": -1})
        client.set("rq:job:wrong", "no hash")
        client.zadd("rq:failed:low", {"wrong": -1, b"\xff odd": -1})
    found = {letter["id"]: letter for letter in listed(private_home, "--operation", "?")}
    assert set(found) == {"evil", "garbage", "deep", "ghost", "wrong", "? odd"}
    assert found["ghost"]["reason"] == "the job's data is missing"
    assert found["evil"]["reason"].endswith("Boom: x")
    for id in ("evil", "garbage", "deep", "ghost", "wrong"):
        assert "\x1b" not in private_home.command("failed", "show", id)
    assert "Boom: x" in private_home.command("failed", "list")

    assert "1 sent back" in private_home.command("failed", "retry", "evil")
    assert "has no data" in private_home.command("failed", "retry", "ghost", expect=1)
    writer.start()
    until(lambda: "evil" in {letter["id"] for letter in listed(private_home)}, "not dead again")
    assert "6 discarded" in private_home.command("failed", "discard", "--operation", "?", "--yes")
    assert "no failed jobs" in private_home.command("failed", "list")
    assert not witness.exists()


# ---- errors


def test_an_unknown_or_ambiguous_id_says_so(private_home: Home, redis_server: Server) -> None:
    bury_by_hand(redis_server, "aa1", b"x")
    bury_by_hand(redis_server, "aa2", b"x")
    for action in ("show", "retry", "discard"):
        said = private_home.command("failed", action, "zz", expect=1)
        assert said.startswith("hivepipe: no failed job has the id zz")
        assert "2 failed jobs" in private_home.command("failed", action, "aa", expect=1)
    for arguments in ((), ("aa1", "--all"), ("--all", "--operation", "x")):
        private_home.command("failed", "retry", *arguments, expect=64)


@pytest.mark.parametrize("action", [["list"], ["show", "a"], ["retry", "--all"]])
def test_where_no_job_ever_was_none_failed(private_home: Home, action: list[str]) -> None:
    said = private_home.command("failed", *action, expect=1 if "show" in action else 0)
    assert said.startswith(("no failed jobs", "hivepipe: no failed job has", "0 sent back"))


def test_another_redis_that_does_not_answer_is_named() -> None:
    stack = Stack("/nowhere", "/nowhere", "redis://127.0.0.1:1/0")
    with (
        pytest.raises(StackError, match="Redis does not answer"),
        available_redis(stack) as address,
        failed_jobs(address) as store,
    ):
        store.jobs()
