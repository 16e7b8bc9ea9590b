"""The cleanup of agents, manual and periodic, deletes exactly the expired ones and logs them."""

import json
import re
import sqlite3
import time
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import redis

from hivepipe.db import cleanups
from hivepipe.db.database import Database
from hivepipe.db.retention import DAYS
from hivepipe.events.job_plan import Message
from hivepipe.jobs.envelope import read_envelope
from hivepipe.operations.declared import PERIODIC
from hivepipe.queue import ticks
from hivepipe.queue.all_jobs import oldest_job_time
from hivepipe.queue.ticks import TRIGGERED_KEY, due_times, run_triggered
from tests.conftest import Home, Server, Writer, fire_all, until
from tests.payloads import (
    POST_AGENT_COMPLETED,
    POST_EDIT,
    SESSION_END,
    SESSION_START,
    SUBAGENT_START,
    SUBAGENT_STOP,
    changed,
)

RUN = re.compile(
    r"\[(.+)\] \[(\w+)\] \[INFO\] run (\d+): deleted (\d+) "
    r"\((\d+) expired, (\d+) completed, (\d+) orphaned\), kept (\d+)"
)


def ago(**span: float) -> str:
    moment = datetime.now(UTC) - timedelta(**span)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def metadata(kind: str = "ephemeral", protected: object = False, expired: bool = True) -> str:
    lifecycle = {
        "type": kind,
        "ttl": 3600,
        "expires_at": ago(hours=1) if expired else ago(hours=-1),
        "cleanup_trigger": "task_complete",
        "protected": protected,
    }
    # written on several lines, which the predecessor read as several agents
    return json.dumps({"model": "default", "lifecycle": lifecycle}, indent=2)


class Swarm:
    """Agents in a store."""

    def __init__(self, home: Home) -> None:
        self.home = home
        Database(home.database).close()
        self.write("INSERT INTO swarms (id, name) VALUES ('swarm-1', 'shop')")
        for session, status in (("open", "active"), ("over", "ended")):
            self.write(f"INSERT INTO sessions (id, status) VALUES ('{session}', '{status}')")

    def write(self, sql: str, *parameters: object) -> None:
        with closing(sqlite3.connect(self.home.database)) as db, db:
            db.execute(sql, parameters)

    def agent(
        self, name: str, status: str, metadata: str, session: str = "open", **age: float
    ) -> None:
        sql = """INSERT INTO agents (id, swarm_id, status, metadata, created_at, session_id)
                 VALUES (?, 'swarm-1', ?, ?, ?, ?)"""
        self.write(sql, name, status, metadata, ago(**age or {"hours": 2}), session)

    def age_deleted(self, days: int) -> None:
        self.write("UPDATE agents SET deleted_at = ? WHERE deleted_at IS NOT NULL", ago(days=days))

    def age_applied(self, job: str, days: float) -> None:
        self.write("INSERT OR REPLACE INTO applied VALUES (?, ?)", job, ago(days=days))

    def fill(self, permanent: int) -> None:
        """Add agents of every kind, among them `permanent` protected permanent ones."""
        for number in range(permanent):
            self.agent(f"permanent-{number}", "spawned", metadata("permanent", protected=True))
        self.agent("a-second-ago", "spawned", metadata(expired=False), seconds=1)
        self.agent("protected", "completed", metadata(protected=1))
        self.agent("at-work", "running", metadata())
        self.agent("expired", "spawned", metadata())
        self.agent("done", "completed", metadata(expired=False))
        self.agent("failed", "failed", metadata(expired=False))
        self.agent("lost", "spawned", metadata(expired=False), "over")
        self.agent("homeless", "spawned", metadata(expired=False), "never-was")

    def deleted(self) -> dict[str, str]:
        rows = self.home.rows("SELECT * FROM agents WHERE deleted_at IS NOT NULL")
        assert all(row["deleted_at"] and row["deleted_by"] for row in rows)
        return {row["id"]: row["deleted_reason"] for row in rows}

    @property
    def log(self) -> Path:
        return self.home.kept / "cleanup.log"

    def assert_log_equals_rows(self, cause: str) -> None:
        lines = self.log.read_text().splitlines()
        logged = dict(
            match.groups()
            for line in lines
            if (match := re.search(r"deleted (\S+) of \S+: (\w+)$", line)) is not None
        )
        assert logged == self.deleted()
        (run,) = [match for line in lines if (match := RUN.fullmatch(line))]
        found = [int(text) for text in run.groups()[3:]]
        reasons = list(self.deleted().values())
        counts = [reasons.count(reason) for reason in ("expired", "completed", "orphaned")]
        kept = self.home.rows("SELECT count(*) AS n FROM agents WHERE deleted_at IS NULL")[0]["n"]
        assert found == [len(reasons), *counts, kept]
        assert run[2] == cause


DELETED = {
    "expired": "expired",
    "done": "completed",
    "failed": "completed",
    "lost": "orphaned",
    "homeless": "orphaned",
}


@pytest.fixture
def periodic(
    redis_server: Server, writer: Writer, new_worker: Callable[[str], Writer]
) -> Callable[[], None]:
    """Start the processes that run periodic operations."""

    def start() -> None:
        for worker in (writer, new_worker("slow"), new_worker("scheduler")):
            worker.start()

    return start


@pytest.mark.parametrize("permanent", [0, 20])
def test_the_command_deletes_exactly_the_right_agents(private_home: Home, permanent: int) -> None:
    swarm = Swarm(private_home)
    swarm.fill(permanent)
    report = json.loads(private_home.command("cleanup", "--dry-run", "--json"))
    assert {entry["id"]: entry["reason"] for entry in report["deleted"]} == DELETED
    assert swarm.deleted() == {}
    assert not swarm.log.exists()
    kept = 3 + permanent
    assert f"deleted 5, kept {kept}" in private_home.command("cleanup")
    assert swarm.deleted() == DELETED
    swarm.assert_log_equals_rows("manual")
    assert swarm.log.stat().st_mode & 0o777 == 0o600
    # nothing is logged a second time
    assert f"deleted 0, kept {kept}" in private_home.command("cleanup")
    swarm.assert_log_equals_rows("manual")


def test_the_periodic_cleanup_deletes_exactly_the_right_agents(
    private_home: Home, periodic: Callable[[], None]
) -> None:
    swarm = Swarm(private_home)
    swarm.fill(permanent=9)
    periodic()
    until(lambda: swarm.deleted() == DELETED, "not deleted")
    until(swarm.log.exists, "not logged")
    until(lambda: RUN.search(swarm.log.read_text()), "not logged")
    swarm.assert_log_equals_rows("periodic")


def test_every_tenth_checkpoint_triggers_an_extra_run(
    private_home: Home, redis_server: Server, writer: Writer, new_worker: Callable[[str], Writer]
) -> None:
    writer.start()
    new_worker("scheduler").start()
    ran = "SELECT slot FROM slots WHERE name = 'cleanup' ORDER BY id"
    until(lambda: private_home.rows(ran), "no first turn")
    env = private_home.with_env(CHECKPOINT_INTERVAL="0")
    edits = [changed(POST_EDIT, tool_use_id=f"toolu_{number}") for number in range(10)]
    fire_all(edits[:9], env)
    until(lambda: private_home.count("session_logs") == 9, "not stored")
    extra = "SELECT job_id FROM applied WHERE job_id LIKE 'cleanup-at-%'"
    with redis_server.client() as client:
        assert not client.exists(TRIGGERED_KEY)
        before = due_times(client)["tick-cleanup"]
        fire_all(edits[9:], env)
        # without the trigger it would run in ten minutes
        until(lambda: private_home.rows(extra), "not triggered")
        assert due_times(client)["tick-cleanup"] >= before  # the periodic run itself is not delayed
    slots = [row["slot"] for row in private_home.rows(ran)]
    assert max(slots) <= time.time() // 600


def test_the_end_of_a_session_or_agent_triggers_a_run_with_its_cause(
    private_home: Home, redis_server: Server, writer: Writer, new_worker: Callable[[str], Writer]
) -> None:
    writer.start()
    scheduler = new_worker("scheduler")
    scheduler.start()
    until(lambda: private_home.rows("SELECT 1 FROM slots WHERE name = 'cleanup'"), "no first turn")
    scheduler.end()
    fire_all([changed(SESSION_START, source="startup")], private_home.env)
    until(lambda: private_home.count("sessions"), "not stored")
    swarm = Swarm(private_home)
    ends = (
        (SUBAGENT_STOP, "task_complete"),
        (POST_AGENT_COMPLETED, "task_complete"),
        (SESSION_END, "session_end"),
    )
    (row,) = [row for row in PERIODIC if row.name == "cleanup"]
    with redis_server.client() as client:
        for number, (event, _) in enumerate(ends):
            swarm.agent(f"done-{number}", "completed", metadata())
            fire_all([event], private_home.env)
            until(lambda: client.exists(TRIGGERED_KEY), "not triggered")
            run_triggered(client, [row], time.time_ns())
            assert not client.exists(TRIGGERED_KEY)
            until(lambda name=f"done-{number}": name in swarm.deleted(), "not deleted")  # type: ignore[misc]
    causes = private_home.rows("SELECT cause FROM cleanups ORDER BY id")
    assert [row["cause"] for row in causes] == [cause for _, cause in ends]


def test_a_request_that_arrives_after_the_run_was_enqueued_gets_a_run(
    redis_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    (row,) = [row for row in PERIODIC if row.name == "cleanup"]
    causes: list[str] = []
    with redis_server.client() as client, redis_server.client() as other:

        def enqueue(_connection: redis.Redis, jobs: list[Message], _counter: str) -> None:
            causes.extend(read_envelope(job.envelope).payload["trigger"] for job in jobs)
            if len(causes) == 1:  # the writer has executed it, and commits another end
                ticks.trigger(other, row.name, "session_end")

        monkeypatch.setattr(ticks, "enqueue_over", enqueue)
        ticks.trigger(other, row.name, "task_complete")
        for _ in range(3):
            run_triggered(client, [row], time.time_ns())
    assert causes == ["task_complete", "session_end"]


def test_a_protected_agent_stays_protected_after_later_events(
    private_home: Home, redis_server: Server, writer: Writer
) -> None:
    writer.start()
    began = [changed(SESSION_START, source="startup"), SUBAGENT_START]
    fire_all(began, private_home.env)
    until(lambda: private_home.count("agents"), "not stored")
    report = json.loads(private_home.rows("SELECT metadata FROM agents")[0]["metadata"])
    report["lifecycle"] |= {"protected": True, "owner": "me"}
    swarm = Swarm(private_home)
    swarm.write("UPDATE agents SET metadata = ?", json.dumps(report))
    fire_all([SUBAGENT_STOP], private_home.env)
    sql = "SELECT status, metadata FROM agents"
    until(lambda: private_home.rows(sql)[0]["status"] == "completed", "not completed")
    lifecycle = json.loads(private_home.rows(sql)[0]["metadata"])["lifecycle"]
    assert (lifecycle["protected"], lifecycle["owner"]) == (True, "me")
    swarm.write("UPDATE agents SET metadata = '{torn', status = 'spawned'")
    fire_all([changed(POST_AGENT_COMPLETED, tool_use_id="another")], private_home.env)
    until(lambda: private_home.rows(sql)[0]["status"] == "completed", "not completed")
    assert private_home.rows(sql)[0]["metadata"] == "{torn"
    swarm.write("UPDATE agents SET created_at = ?", ago(hours=2))
    assert "kept 1 (1 unreadable)" in private_home.command("cleanup")


def test_a_dry_run_holds_no_metadata_of_all_agents(private_home: Home) -> None:
    private_home.path.mkdir(parents=True)
    at, metadata = "2026-01-10T01:00:00.000Z", json.dumps({"prompt": "x" * 4000})
    sql = """
        INSERT INTO agents (id, swarm_id, name, type, metadata, status, created_at, last_active)
        VALUES (:id, 'w', 'a', 'Explore', :metadata, 'completed', :at, :at)
    """
    with Database(private_home.database) as db, db.transaction():
        db.execute("INSERT INTO swarms (id, name, created_at) VALUES ('w', 'w', :at)", {"at": at})
        for number in range(2000):
            db.execute(sql, {"id": f"a{number}", "metadata": metadata, "at": at})
        tracemalloc.start()
        judged = cleanups.verdicts(db, datetime.now(UTC))
        (_, peak_bytes) = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert len(judged) == 2000
    assert peak_bytes < 1_000_000


def test_a_torn_or_lost_log_is_written_again(private_home: Home) -> None:
    swarm = Swarm(private_home)
    swarm.agent("one", "completed", metadata())
    private_home.command("cleanup")
    whole = swarm.log.read_text()
    swarm.log.write_text(whole[:20])  # as after a full disk in the middle of a line
    swarm.agent("two", "completed", metadata())
    private_home.command("cleanup")
    text = swarm.log.read_text()
    assert text.startswith(whole[:20] + "\n" + whole)
    assert text.count("deleted two of open: completed\n") == 1
    swarm.log.unlink()
    private_home.command("cleanup")  # nothing is new, and everything is there again
    assert swarm.log.read_text() == text.partition("\n")[2]


def test_a_large_log_is_rotated_without_repeating_entries(private_home: Home) -> None:
    swarm = Swarm(private_home)
    swarm.agent("one", "completed", metadata())
    private_home.command("cleanup")
    first = swarm.log.read_text()
    swarm.log.write_text("x" * 1_000_000 + "\n" + first)
    swarm.agent("two", "completed", metadata())
    private_home.command("cleanup")
    assert "two" in swarm.log.read_text()
    assert "one" not in swarm.log.read_text()
    assert swarm.log.with_name("cleanup.log.1").read_text().endswith(first)
    private_home.command("cleanup")
    assert swarm.log.read_text().count("run 2: ") == 1


def test_rows_are_deleted_permanently_only_after_their_retention(
    private_home: Home, periodic: Callable[[], None]
) -> None:
    private_home.installed_long_ago()
    swarm = Swarm(private_home)
    swarm.fill(1)
    swarm.age_applied("old-1", DAYS["applied"] + 1)
    swarm.age_applied("young-1", DAYS["applied"] - 1)
    private_home.command("cleanup")
    swarm.age_deleted(DAYS["agents"] + 1)
    swarm.agent("since", "completed", metadata())
    periodic()
    until(lambda: not private_home.rows("SELECT 1 FROM agents WHERE id = 'done'"), "not deleted")
    left = {row["id"] for row in private_home.rows("SELECT id FROM agents")}
    assert left == {"permanent-0", "a-second-ago", "protected", "at-work", "since"}
    until(lambda: not private_home.rows("SELECT 1 FROM applied WHERE job_id = 'old-1'"), "kept")
    assert private_home.rows("SELECT 1 FROM applied WHERE job_id = 'young-1'")


def test_applied_ids_of_failed_jobs_are_kept(
    private_home: Home, redis_server: Server, periodic: Callable[[], None]
) -> None:
    """A job that is retried after ninety days must still find that it was applied."""
    private_home.installed_long_ago()
    swarm = Swarm(private_home)
    swarm.age_applied("before-it", 201)
    swarm.age_applied("after-it", 199)
    with redis_server.client() as client:
        created = ago(days=200)
        client.hset("rq:job:dead", mapping={"created_at": created, "status": "failed"})
        client.zadd("rq:failed:medium", {"dead": -1})
    periodic()
    until(lambda: not private_home.rows("SELECT 1 FROM applied WHERE job_id = 'before-it'"), "kept")
    until(lambda: private_home.rows("SELECT 1 FROM slots WHERE name = 'prune'"), "no slot")
    assert private_home.rows("SELECT 1 FROM applied WHERE job_id = 'after-it'")


def test_the_oldest_job_is_searched_in_redis_and_on_disk(
    private_home: Home, redis_server: Server
) -> None:
    spool = private_home.path / "spool"
    with redis_server.client() as client:
        assert oldest_job_time(client, spool) is None
        client.hset("rq:job:tick-prune", "created_at", "2020-01-01T00:00:00.000000Z")
        client.hset("rq:job:one", "created_at", "2026-01-02T00:00:00.000000Z")
        client.hset("rq:job:two", "created_at", "2026-01-01T00:00:00.000000Z")
        assert oldest_job_time(client, spool) == "2026-01-01T00:00:00.000000Z"
        spool.mkdir()
        (spool / "01760000000000000000_1.json").touch()
        (spool / "01770000000000000000_1.json").touch()
        assert oldest_job_time(client, spool) == "2025-10-09T08:53:20.000000Z"
