"""config.toml as hooks, commands and running processes read it."""

import os
import shutil
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
from tests.installed import User
from tests.payloads import SESSION_START, changed


def checkpoints_of_two_edits(user: User) -> int:
    """Return how many checkpoints two edits create."""
    user.fire("SessionStart", source="startup")
    for number in range(2):
        user.fire(
            "PostToolUse",
            tool_name="Edit",
            tool_use_id=f"t{number}",
            tool_input={"file_path": "/a"},
            tool_response={},
        )
    spooled = (user.recorded / "spool").glob("*.json")
    return sum(path.read_text().count('"update_checkpoint"') for path in spooled)


def forget_edits(user: User) -> None:
    for name in ("spool", "instances"):
        shutil.rmtree(user.recorded / name)


def test_hooks_read_the_file_and_the_environment_overrides_it(user: User) -> None:
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    user.hivepipe("init")
    (user.recorded / "config.toml").write_text("checkpoint_interval = 0\n")
    user.hivepipe("config")
    assert checkpoints_of_two_edits(user) == 2
    user.env["HIVEPIPE_CHECKPOINT_INTERVAL"] = "60"
    forget_edits(user)
    assert checkpoints_of_two_edits(user) == 1


def test_a_damaged_settings_file_sets_nothing_and_loses_no_event(user: User) -> None:
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    user.hivepipe("init")
    values = (b'{"values": 7}', b'{"values": {"HIVEPIPE_DB": 7}}', b'{"\xff": "\xfe"}')
    for data in (b"", b"{", b"[]", *values):
        (user.recorded / "hook-settings.json").write_bytes(data)
        assert checkpoints_of_two_edits(user) == 1, data
        forget_edits(user)


def test_an_invalid_file_is_reported_and_stops_no_command(user: User) -> None:
    user.hivepipe("init")
    file = user.recorded / "config.toml"
    file.write_text("use_qeue = false\n")
    assert "use_qeue" in user.hivepipe("config", expect=1)
    assert "use_qeue" in user.hivepipe("url")
    assert not Path(user.project, ".hive-mind", "hook-settings.json").exists()
    file.write_text("use_queue = ")
    for command, expect in (("config", 1), ("url", 0)):
        assert user.hivepipe(command, expect=expect).count("cannot be read") == 1
    user.hivepipe("uninstall", "--purge", "--yes")


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
