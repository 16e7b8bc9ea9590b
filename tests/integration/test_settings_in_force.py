"""A running process keeps the settings it started with when the files change."""

import os
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import redis

from hivepipe.operations.declared import PERIODIC
from hivepipe.queue.ticks import run_triggered, trigger
from tests.conftest import Home, Writer, fire, until
from tests.payloads import SESSION_START, changed

# The first one once read the settings in each run; the others open the database.
OPERATIONS = ("raise_alerts", "reap_sessions", "cleanup_agents", "raise_alerts")


def run_now(client: redis.Redis, operation: str) -> None:
    """Trigger one periodic operation, and wait until the writer has executed it."""
    (row,) = [row for row in PERIODIC if row.operation == operation]
    before = client.hget("hivepipe:operations", operation)
    trigger(client, row.name, "manual")
    run_triggered(client, [row], time.time_ns())
    until(lambda: client.hget("hivepipe:operations", operation) != before, f"no {operation}")


def sessions(path: Path) -> int:
    """Return the number of sessions; the database may not be complete yet."""
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(path, timeout=10)) as db:
        return int(db.execute("SELECT count(*) FROM sessions").fetchone()[0])
    return 0


def test_an_incomplete_file_does_not_change_the_database_of_a_running_writer(
    private_home: Home, client: redis.Redis, writer: Writer, new_worker: Callable[[str], Writer]
) -> None:
    elsewhere = private_home.root / "elsewhere.db"
    config = private_home.path / "config.toml"
    config.write_text(f'db = "{elsewhere}"\n')
    writer.start()
    new_worker("scheduler").start()
    fire("SessionStart", changed(SESSION_START, session_id="one"), private_home.env)
    until(lambda: sessions(elsewhere) == 1, "not stored")
    config.write_text('db = "/half')
    for operation in OPERATIONS:
        run_now(client, operation)
    fire("SessionStart", changed(SESSION_START, session_id="two"), private_home.env)
    until(lambda: sessions(elsewhere) == 2, "not stored")
    assert not private_home.database.exists()


def test_a_starting_writer_names_invalid_settings_and_uses_the_others(
    private_home: Home, client: redis.Redis, writer: Writer
) -> None:
    config = private_home.path / "config.toml"
    config.write_text('log_format = "json"\nidle_secs = "never"\n')
    writer.start()
    until(lambda: "idle_secs must be a number of seconds; left out" in writer.text, "not reported")
    assert writer.text.startswith('{"at"')
    os.kill(writer.pid, signal.SIGTERM)
    until(lambda: not writer.is_running, "does not end")
