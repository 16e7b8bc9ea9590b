"""A cloned repository with `.hive-mind` and `.claude-state`: no file of it is trusted."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.conftest import NEUTRAL, until
from tests.installed import User, changed
from tests.payloads import spooled_start

PLANTED = "planted-by-the-clone"


@pytest.fixture
def hostile(user: User) -> Path:
    """Give the user's project every file that might be trusted; return a file an attack creates."""
    proof = user.home / "pwned"
    home = user.project / ".hive-mind"
    for name in ("spool", "instances", "sessions", "context", "logs"):
        (home / name).mkdir(parents=True)
    database = sqlite3.connect(home / "hive.db")
    database.executescript(
        f"""
        CREATE TABLE sessions (id TEXT PRIMARY KEY, status TEXT, project TEXT);
        CREATE TABLE applied (job_id TEXT PRIMARY KEY, applied_at TEXT);
        CREATE TRIGGER t AFTER INSERT ON sessions BEGIN
          UPDATE sessions SET project = '{PLANTED}';
        END;
        INSERT INTO sessions VALUES ('{PLANTED}', 'active', 'x');
        """
    )
    database.close()
    spooled = home / "spool" / "00000000000000000001_1.json"
    spooled.write_text(json.dumps({"v": 1, "jobs": [spooled_start(PLANTED, "/x")]}))
    (home / "appendonly.aof").write_text(f"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$1\r\n1\r\n{PLANTED}")
    (home / "config.toml").write_text(f'redis_server = "{proof}"\nuse_queue = false\n')
    (home / "hook-settings.json").write_text(
        json.dumps({"values": {"HIVEPIPE_DB": str(proof), "HIVEPIPE_USE_QUEUE": "false"}})
    )
    (home / "record").write_text(f"home={user.home}\nstate=off\npython={proof}\n")
    (home / ".active_session").write_text(f"{PLANTED}\n")
    (home / "context" / "s1.txt").write_text(PLANTED)
    state = user.project / ".claude-state"
    state.mkdir()
    (state / "logs").symlink_to(user.home)
    script = user.project / "pwn.sh"
    script.write_text(f"#!/bin/sh\ntouch '{proof}'\n")
    script.chmod(0o755)
    user.own(user.project)
    return proof


def contents_of(*folders: Path) -> str:
    return "\n".join(
        path.read_bytes().decode("latin-1")
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file()
    )


def test_hooks_and_commands_use_no_file_of_the_clone(user: User, hostile: Path) -> None:
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    user.hivepipe("init", "--user")
    before = user.files(user.project)
    settings = user.home / ".claude" / "settings.json"
    for event in user.hooks(settings):
        assert user.fire(event, path=settings, source="startup") == [NEUTRAL]
    home = user.home / ".local" / "state" / "hivepipe" / "default"
    assert len(list(home.glob("spool/*.json"))) == 6, "an event was not queued"
    user.hivepipe("up", "-d", HIVEPIPE_HOME=str(home))
    until(lambda: user.sessions(), "no session was recorded")
    assert [entry["id"] for entry in user.sessions()] == ["s1"]
    user.hivepipe("status")
    user.hivepipe("down")
    user.hivepipe("drain")
    assert changed(before, user.files(user.project)) == {}
    assert PLANTED not in contents_of(user.home / ".local")
    assert not hostile.exists()


def test_init_and_up_refuse_the_clone_and_change_nothing(user: User, hostile: Path) -> None:
    before = user.files()
    for command in (("init",), ("init", "--project"), ("up", "-d")):
        assert "belongs to the bash hooks" in user.hivepipe(*command, expect=1), (
            "a foreign database"
        )
    assert changed(before, user.files(user.home)) == {}
    assert not user.processes()
    assert not hostile.exists()


def test_a_link_in_place_of_the_home_is_refused(user: User, hostile: Path) -> None:
    shutil.rmtree(user.project / ".hive-mind")
    (user.project / ".hive-mind").symlink_to(user.home)
    before = user.files()
    user.hivepipe("init", "--in-tree", expect=1)
    assert changed(before, user.files(user.home)) == {}


def test_settings_of_the_clone_are_only_added_to(user: User) -> None:
    theirs = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x # hivepipe"}]}]}}
    user.settings.parent.mkdir()
    user.settings.write_text(json.dumps(theirs))
    user.own(user.project)
    user.hivepipe("init")
    commands = [handler["command"] for group in user.hooks().values() for handler in group]
    assert "x # hivepipe" in commands, "a comment alone does not mark a hook of hivepipe"
