"""Alerts on a real stack: raised, recorded, logged and sent; workers that hang or were killed."""

import json
import os
import posix
import pty
import select
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis

from hivepipe.alerts.rules import CHECKS_TO_RESOLVE
from hivepipe.db.spending import Amount, spending
from hivepipe.monitor.snapshot import budget
from hivepipe.operations.declared import PERIODIC
from hivepipe.queue.alert_counts import ALERTS_KEY
from hivepipe.queue.figures import SAMPLES_KEY
from hivepipe.queue.latencies import latencies
from hivepipe.queue.rq_workers import rq_workers
from hivepipe.queue.ticks import LOCK_KEY, run_triggered, trigger
from tests.conftest import CLI, COMMANDS, Home, Writer, fire_all, until
from tests.loopback import QuietHandler, served
from tests.payloads import SESSION_START, changed

(ROW,) = [row for row in PERIODIC if row.operation == "raise_alerts"]


@pytest.fixture
def start(
    private_home: Home, client: redis.Redis, writer: Writer, new_worker: Callable[[str], Writer]
) -> Callable[[], Home]:
    """Start writer, slow worker and scheduler, and wait for the first check of the alerts."""

    def start() -> Home:
        writer.start()
        new_worker("slow").start()
        new_worker("scheduler").start()
        until(lambda: checks_done(client), "no first check")
        return private_home

    return start


@pytest.fixture
def stack(start: Callable[[], Home]) -> Home:
    """Writer, slow worker and scheduler with the default settings."""
    return start()


def users_config(home: Home) -> Path:
    path = home.root / ".config" / "hivepipe" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


def checks_done(client: redis.Redis) -> int:
    return int(client.hget("hivepipe:operations", ROW.operation) or 0)


def check_alerts(client: redis.Redis) -> None:
    """Trigger a check of the alerts now and wait for it."""

    before = checks_done(client)
    trigger(client, ROW.name, "manual")
    run_triggered(client, [ROW], time.time_ns())
    until(lambda: checks_done(client) > before, "no check")


def add_failed_job(client: redis.Redis) -> None:
    client.hset("rq:job:" + "0" * 32, mapping={"status": "failed", "hp": 1})
    client.zadd("rq:failed:medium", {"0" * 32: -1})


def remove_failed_job(client: redis.Redis) -> None:
    client.zrem("rq:failed:medium", "0" * 32)


def status(home: Home, *arguments: str) -> subprocess.CompletedProcess[str]:
    return COMMANDS.run(["status", *arguments], "", home.env, home.project, 60)


def suspend(writer: Writer, home: Home) -> None:
    """Suspend a writer, but not while it makes the database: it would lock out all readers."""
    until(lambda: home.rows("SELECT 1 FROM sqlite_schema WHERE name = 'alerts'"), "no database")
    writer.signal(signal.SIGSTOP)


def recorded_alerts(home: Home) -> list[tuple[str, bool]]:
    rows = home.rows("SELECT name, ended_at FROM alerts ORDER BY id")
    return [(row["name"], row["ended_at"] is None) for row in rows]


class Webhook(QuietHandler):
    """Stores the alerts that it receives."""

    received: list[dict[str, Any]]
    url: str

    def do_POST(self) -> None:
        self.received.append(json.loads(self.content()))
        self.send(204)


@pytest.fixture
def webhook() -> Iterator[type[Webhook]]:
    Webhook.received = []
    with served(Webhook) as address:
        Webhook.url = f"{address}/alert"
        yield Webhook


def test_an_alert_and_its_end_are_recorded_shown_and_notified_once(
    private_home: Home, start: Callable[[], Home], client: redis.Redis, webhook: type[Webhook]
) -> None:
    sent = private_home.root / "sent"
    users_config(private_home).write_text(
        f"alert_command = \"sh -c 'cat >> {sent}; echo >> {sent}'\"\n"
        f'alert_webhook = "{webhook.url}"\n'
    )
    stack = start()
    add_failed_job(client)
    check_alerts(client)
    until(lambda: recorded_alerts(stack) == [("failed_jobs", True)], "not recorded")
    check_alerts(client)  # the alert stays active and is not sent again
    output = status(stack).stdout
    assert "alert     failed_jobs: 1 failed job: hivepipe failed list (since " in output
    (alert,) = json.loads(status(stack, "--json").stdout)["alerts"]
    assert alert["name"] == "failed_jobs"
    remove_failed_job(client)
    for _ in range(CHECKS_TO_RESOLVE - 1):
        check_alerts(client)
    assert recorded_alerts(stack) == [("failed_jobs", True)]  # the condition might return at once
    check_alerts(client)
    until(lambda: recorded_alerts(stack) == [("failed_jobs", False)], "not over")
    until(lambda: len(webhook.received) == 2, "not sent")
    until(lambda: len(sent.read_text().splitlines()) == 2, "not sent")
    by_command = [json.loads(line) for line in sent.read_text().splitlines()]
    assert by_command == webhook.received
    assert [entry["state"] for entry in by_command] == ["raised", "over"]
    assert by_command[0]["text"] == "1 failed job: hivepipe failed list"
    log = (stack.root / f"writer{stack.path.name}.log").read_text()
    assert log.count("alert failed_jobs: 1 failed job") == 1
    assert log.count("alert failed_jobs is over") == 1


def test_no_alert_is_repeated_while_the_database_cannot_be_written_or_redis_lost_all(
    stack: Home, client: redis.Redis
) -> None:
    add_failed_job(client)
    check_alerts(client)
    until(lambda: recorded_alerts(stack) == [("failed_jobs", True)], "not recorded")
    with closing(sqlite3.connect(stack.database, timeout=10)) as db, db:
        db.execute("DELETE FROM alerts")  # as if it had not been written yet
    check_alerts(client)
    assert recorded_alerts(stack) == []
    with closing(sqlite3.connect(stack.database, timeout=10)) as db, db:
        db.execute("INSERT INTO alerts (name, text, raised_at) VALUES ('failed_jobs', '', '2026')")
    client.delete(ALERTS_KEY)
    check_alerts(client)
    assert recorded_alerts(stack) == [("failed_jobs", True)]
    log = (stack.root / f"writer{stack.path.name}.log").read_text()
    assert log.count("alert failed_jobs:") == 1


def test_a_failed_notification_stops_nothing(
    private_home: Home, start: Callable[[], Home], client: redis.Redis
) -> None:
    users_config(private_home).write_text(
        'alert_command = "/no/such/program"\nalert_webhook = "http://127.0.0.1:9/nobody"\n'
    )
    stack = start()
    add_failed_job(client)
    check_alerts(client)
    log = stack.root / f"slow{stack.path.name}.log"
    until(lambda: log.read_text().count("alert failed_jobs not sent") == 2, "not logged")
    assert client.zcard("rq:failed:slow") == 0


def test_a_repository_cannot_set_the_alert_command(
    private_home: Home, start: Callable[[], Home], client: redis.Redis
) -> None:
    sent = private_home.root / "sent"
    (private_home.path / "config.toml").write_text(f'alert_command = "touch {sent}"\n')
    stack = start()
    add_failed_job(client)
    check_alerts(client)
    until(lambda: recorded_alerts(stack) == [("failed_jobs", True)], "not recorded")
    assert not client.keys("rq:job:*send*")
    assert client.hget("hivepipe:operations", "send_alert") is None
    assert not sent.exists()


def test_updates_without_effect_are_counted_against_all_of_their_kind(
    stack: Home, client: redis.Redis
) -> None:
    fire_all([changed(SESSION_START, source="startup")], stack.env)
    until(lambda: client.hget("hivepipe:operations", "start_session"), "not counted")
    client.delete(SAMPLES_KEY)
    client.hset("hivepipe:operations", "update_checkpoint", 1000)
    check_alerts(client)  # takes the sample that later ones are compared with
    client.hincrby("hivepipe:operations", "update_checkpoint", 100)
    with closing(sqlite3.connect(stack.database, timeout=10)) as db, db:
        db.execute("INSERT INTO counters VALUES ('zero_rows:update_checkpoint', 5)")
    (alert,) = json.loads(status(stack, "--json").stdout)["alerts"]
    assert alert["text"] == "updates that changed no row within 15 min: 5 of 100 update_checkpoint"


def test_summaries_near_their_cap_are_reported(
    private_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(posix.environ, b"HIVEPIPE_LLM_DAILY_CALLS", b"10")
    caps, each = Amount(10, 10**9, 10**9), Amount(1, 100, 1000)
    with spending() as ledger:
        for number in range(8):
            ledger.reserve(f"s{number}", each, 1, caps, 0, provider="p", model="m", home="h")
    assert budget() == ""
    with spending() as ledger:
        ledger.reserve("s9", each, 1, caps, 0, provider="p", model="m", home="h")
    assert budget() == "9 of 10 calls"


# ---- workers
def test_a_killed_worker_is_unregistered_when_another_one_works(
    private_home: Home, client: redis.Redis, writer: Writer
) -> None:
    writer.start()
    (first,) = until(lambda: rq_workers(client), "not registered")
    writer.end(signal.SIGKILL)
    assert [worker.name for worker in rq_workers(client)] == [first.name]
    writer.start()
    trigger(client, "stale_workers", "manual")
    run_triggered(client, PERIODIC, time.time_ns())
    until(lambda: first.name not in {w.name for w in rq_workers(client)}, "still registered")
    (second,) = until(lambda: rq_workers(client), "not registered")
    assert second.pid == writer.pid
    assert second.is_alive
    said = f"worker {first.name} died without unregistering: process {first.pid} has ended"
    until(lambda: said in writer.text, "not logged")
    assert not client.exists(f"rq:worker:{first.name}")
    assert client.smembers("rq:workers:high") == {f"rq:worker:{second.name}".encode()}


def test_a_hanging_worker_is_reported_and_its_queues_as_unserved(
    private_home: Home, client: redis.Redis, writer: Writer
) -> None:
    writer.start()
    (worker,) = until(lambda: rq_workers(client), "not registered")
    key = f"rq:worker:{worker.name}"
    alerts = json.loads(status(private_home, "--json").stdout)["alerts"]
    assert alerts == []  # the stack has just started
    suspend(writer, private_home)
    client.hset(key, mapping={"birth": "2026-01-01T00:00:00.000000Z"})
    client.hset(key, mapping={"last_heartbeat": "2026-01-01T00:00:00.000000Z"})
    report = json.loads(status(private_home, "--json").stdout)
    alert, clock = report["alerts"]
    assert clock["name"] == "no_scheduler"  # no scheduler was ever started
    assert alert["text"] == "no worker serves high, medium, low, slow, llm"
    assert alert["urgent"]
    assert [entry["alive"] for entry in report["workers"]] == [False]
    writer.signal(signal.SIGCONT)
    until(lambda: rq_workers(client)[0].is_alive, "it stays silent")
    report = json.loads(status(private_home, "--json").stdout)
    assert report["alerts"][0]["text"] == "no worker serves slow, llm"


def test_a_full_redis_is_reported_but_not_its_silent_workers(
    private_home: Home, client: redis.Redis, writer: Writer
) -> None:
    writer.start()
    (worker,) = until(lambda: rq_workers(client), "not registered")
    suspend(writer, private_home)
    births = {
        "birth": "2026-01-01T00:00:00.000000Z",
        "last_heartbeat": "2026-01-01T00:00:00.000000Z",
    }
    client.hset(f"rq:worker:{worker.name}", mapping=births)
    client.config_set("maxmemory", 1)
    try:
        done = status(private_home)
    finally:
        client.config_set("maxmemory", 0)
        writer.signal(signal.SIGCONT)
    alerts = [line for line in done.stdout.splitlines() if line.startswith("alert ")]
    assert alerts == [
        (
            "alert     redis_memory: the memory of Redis is full: events wait on disk; "
            "silent workers are not seen"
        )
    ]
    assert done.returncode == 1


def test_without_a_supervisor_the_workers_registrations_count(
    private_home: Home, client: redis.Redis, writer: Writer, new_worker: Callable[[str], Writer]
) -> None:
    for each in (writer, slow := new_worker("slow"), llm := new_worker("llm")):
        each.start()
    until(lambda: len(rq_workers(client)) == 3, "not registered")
    done = status(private_home)
    assert done.returncode == 0, done.stdout
    assert f"worker    of llm on {os.uname().nodename}, pid {llm.pid}, " in done.stdout
    slow.end()  # no other worker serves its queue
    assert status(private_home).returncode == 1


def test_a_hanging_scheduler_is_reported(
    private_home: Home, client: redis.Redis, writer: Writer, new_worker: Callable[[str], Writer]
) -> None:
    writer.start()
    scheduler = new_worker("scheduler")
    scheduler.start()
    until(lambda: client.exists(LOCK_KEY), "no scheduler acts")
    (worker,) = until(lambda: rq_workers(client), "not registered")
    client.hset(f"rq:worker:{worker.name}", "birth", "2026-01-01T00:00:00.000000Z")

    def named() -> list[str]:
        report = json.loads(status(private_home, "--json").stdout)
        return [entry["name"] for entry in report["alerts"]]

    assert named() == ["no_worker"]  # of the queues slow and llm
    scheduler.signal(signal.SIGSTOP)
    client.expire(LOCK_KEY, 0)  # instead of waiting until it expires
    assert named() == ["no_worker", "no_scheduler"]
    scheduler.signal(signal.SIGCONT)
    until(lambda: named() == ["no_worker"], "it does not act again")


# ---- live
def test_the_live_view_shows_the_stack_and_restores_the_screen(
    stack: Home, client: redis.Redis
) -> None:
    title = "Fix [/api/users] for [red]"  # rich reads brackets as colours
    fire_all([changed(SESSION_START, source="startup", session_title=title)], stack.env)
    add_failed_job(client)
    check_alerts(client)
    until(lambda: recorded_alerts(stack) == [("failed_jobs", True)], "not recorded")
    words = ("processes", "queues", "waiting", "alerts", "failed_jobs", "jobs/s", title)
    for number in (signal.SIGINT, signal.SIGTERM):
        text = live_view_until(number, stack)
        assert [word for word in words if word not in text] == []
        assert "\x1b[?1049l" in text  # the terminal leaves the alternate screen


def live_view_until(number: signal.Signals, stack: Home) -> str:
    """Return what the live view has shown when the signal has ended it."""
    process, shown = _in_a_terminal([*CLI, "status", "--watch"], stack)
    try:
        until(lambda: "open sessions: 1" in shown(), "not shown")
    finally:
        process.send_signal(number)
        # The test must read its last output, or it blocks on a full terminal.
        until(lambda: shown() and process.poll() is not None, "it does not end")
    assert process.returncode == 0
    return shown()


def test_the_live_view_needs_a_terminal(private_home: Home) -> None:
    assert status(private_home, "--watch").returncode == 64


def _in_a_terminal(command: list[str], home: Home) -> tuple[Any, Callable[[], str]]:
    ours, theirs = pty.openpty()
    env = home.env | {"TERM": "xterm", "COLUMNS": "120", "LINES": "50"}
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=home.project
    )
    os.close(theirs)
    seen = bytearray()

    def shown() -> str:
        while select.select([ours], [], [], 0)[0]:
            try:
                seen.extend(os.read(ours, 65536))
            except OSError:  # the process ended
                break
        return seen.decode("utf-8", "replace")

    return process, shown


def test_each_check_counts_how_long_jobs_took(stack: Home, client: redis.Redis) -> None:
    fire_all([changed(SESSION_START, source="startup")], stack.env)
    until(lambda: client.hget("hivepipe:operations", "start_session"), "not counted")
    check_alerts(client)
    until(lambda: latencies(client).operations, "the job is not in the figures")
    assert latencies(client).operations["start_session"].jobs == 1
