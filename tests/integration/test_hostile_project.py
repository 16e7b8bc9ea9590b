"""A project folder is not trusted until the user agrees."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
import redis

from tests.conftest import ROOT, Home, fire, until
from tests.outcome import outcome_of
from tests.sandbox import Sandbox

PLANTED = "*3\r\n$3\r\nSET\r\n$7\r\nplanted\r\n$1\r\n1\r\n"


def git(*words: str, cwd: Path) -> None:
    outcome_of(["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words], cwd=cwd, check=True)


def test_a_home_in_the_project_is_refused_until_the_user_adopts_it(sandbox: Sandbox) -> None:
    shipped = sandbox.project / ".hive-mind"
    shipped.mkdir(mode=0o700)
    (shipped / "appendonly.aof").write_text(PLANTED)
    for words in (("init", "--in-tree", "--no-probe"), ("init", "--no-probe"), ("up", "-d")):
        output = sandbox.run(*words, expect=1)
        assert "never registered" in output
        assert "--adopt" in output
    assert (shipped / "appendonly.aof").read_bytes() == PLANTED.encode()
    sandbox.run("up", "-d", "--adopt")
    assert not (shipped / "appendonly.aof").exists()


def test_a_committed_home_is_not_offered_for_adoption_and_stays(sandbox: Sandbox) -> None:
    planted = sandbox.project / ".hive-mind" / "appendonly.aof"
    planted.parent.mkdir(mode=0o700)
    planted.write_text(PLANTED)
    git("init", "-q", cwd=sandbox.project)
    git("add", "-f", ".hive-mind", cwd=sandbox.project)
    sandbox.run("init", "--no-probe")
    sandbox.run("up", "-d")
    assert planted.read_bytes() == PLANTED.encode()


def test_a_link_in_place_of_the_logs_is_refused(sandbox: Sandbox) -> None:
    (sandbox.project / ".claude-state").mkdir(mode=0o700)
    (sandbox.project / ".claude-state" / "logs").symlink_to(sandbox.folder)
    assert "is a link" in sandbox.run("init", "--in-tree", "--no-probe", expect=1)


def test_a_home_recreated_after_git_clean_is_ignored_by_git(sandbox: Sandbox) -> None:
    git("init", "-q", cwd=sandbox.project)
    sandbox.run("up", "-d")
    sandbox.run("down")
    shutil.rmtree(sandbox.home)
    env = {**sandbox.env, "CLAUDE_PROJECT_DIR": str(sandbox.project)}
    fire("UserPromptSubmit", {"session_id": "s1", "prompt": "secret plan"}, env)
    assert list(sandbox.home.glob("spool/*.json"))
    git("add", "-A", cwd=sandbox.project)
    staged = subprocess.run(
        ["git", "status", "--short"], cwd=sandbox.project, capture_output=True, text=True
    )
    assert staged.stdout == ""


def test_the_command_ignores_pythonpath_and_the_folder(tmp_path: Path) -> None:
    for name in ("hivepipe.py", "redis.py", "click.py", "workers.py"):
        (tmp_path / name).write_text("raise SystemExit('shadowed')")
    done = outcome_of(
        [str(Path(sys.executable).parent / "hivepipe"), "--version"],
        {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("hivepipe, version")


@pytest.mark.parametrize("python", ["", "/usr/bin/false"], ids=["without hivepipe", "failing"])
def test_a_failed_direct_run_does_not_fail_the_hook(private_home: Home, python: str) -> None:
    home = private_home
    if python:
        record = home.record_of(home.path)
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(f"home={home.path}\npython={python}\n")
    done = outcome_of(
        [os.path.realpath(sys.executable), "-I", "-S", str(ROOT / "hooks" / "session_start.py")],
        home.with_env(USE_QUEUE="false"),
        input=json.dumps({"session_id": "s1", "hook_event_name": "SessionStart"}),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(home.spool) == 1, "nothing is lost"
    logs = list(home.root.rglob("hook-errors.log"))
    assert "direct run failed" in logs[0].read_text()


def test_status_is_unhealthy_while_the_store_does_not_answer(sandbox: Sandbox) -> None:
    sandbox.run("up", "-d")
    before = sandbox.pids()
    holder = sqlite3.connect(sandbox.home / "hive.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    sandbox.fire("s1")
    until(lambda: sandbox.report()["store_trouble"], "no trouble is reported")
    assert sandbox.report()["condition"] == "degraded"
    with redis.Redis(unix_socket_path=sandbox.socket) as client:
        client.hset("hivepipe:trouble", "since", str(time.time() - 11))
    assert sandbox.status(expect=1)["healthy"] is False
    said = " ".join(sandbox.run("status", expect=1).split())
    assert "database has not answered for 1" in said
    assert "database is locked" in said
    holder.execute("ROLLBACK")
    until(lambda: not sandbox.report()["store_trouble"], "the trouble stays")
    sandbox.status()
    assert sandbox.pids() == before
