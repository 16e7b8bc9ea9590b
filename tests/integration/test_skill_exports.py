"""skill-usage.json and its index: complete, valid at every moment, under a lock that holds."""

import contextlib
import fcntl
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hivepipe.db.database import Database
from hivepipe.files.export_folder import locked
from hivepipe.files.manifest import Manifest
from hivepipe.operations import skill_exports
from hivepipe.operations.skill_exports import AGE_SECS, USES, SkillExports
from tests.conftest import (
    ROOT,
    Home,
    Process,
    Server,
    Writer,
    fire,
    fire_all,
    is_drained,
    until,
)
from tests.payloads import FAILED_SKILL, POST_SKILL, USER_PROMPT_EXPANSION, changed

SKILL = "acme:release-notes"
FILES = ("skill-usage.json", "skill-usage-index.json")


def folder(home: Home) -> Path:
    return home.kept


def exported(home: Home) -> dict[str, Any]:
    path = folder(home) / FILES[0]
    found: dict[str, Any] = json.loads(path.read_text())["skills"] if path.exists() else {}
    return found


def count(home: Home) -> int:
    return sum(entry["count"] for entry in exported(home).values())


def insert(home: Home, many: int, time: str = "2026-11-20T23:00:00.000Z", skill: str = "x") -> None:
    home.path.mkdir(mode=0o700, exist_ok=True)
    db = Database(home.database)
    sql = """
        INSERT INTO skill_uses (skill, kind, session_id, success, arguments, created_at)
        VALUES (:skill, 'tool', 's', 1, '', :time)
    """
    with db.transaction():
        for _ in range(many):
            db.execute(sql, {"skill": skill, "time": time})
    db.close()


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())


# ---- when


def test_ten_uses_are_written_at_once_fewer_after_a_while(
    private_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skill_exports, "LOOK_EVERY_SECS", 0)
    exports = SkillExports(str(private_home.path))
    exports.tidy()  # there is no database yet
    insert(private_home, USES - 1, now())
    exports.tidy()
    assert exported(private_home) == {}
    insert(private_home, 1, now())
    exports.tidy()
    assert count(private_home) == USES
    insert(private_home, 1, now())
    exports.tidy()
    assert count(private_home) == USES
    long_ago = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - AGE_SECS - 1))
    insert(private_home, 1, long_ago)
    exports.tidy()
    assert count(private_home) == USES + 2


def test_nothing_new_writes_nothing(private_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even in a process that has just started: the lock's file says what is in the files."""
    monkeypatch.setattr(skill_exports, "LOOK_EVERY_SECS", 0)
    insert(private_home, USES)
    SkillExports(str(private_home.path)).tidy()
    before = (folder(private_home) / FILES[0]).stat().st_ino
    exports = SkillExports(str(private_home.path))
    exports.tidy()
    exports.finish()
    assert (folder(private_home) / FILES[0]).stat().st_ino == before


def test_what_is_left_at_the_end_is_written(private_home: Home) -> None:
    insert(private_home, 1, now())
    SkillExports(str(private_home.path)).finish()
    assert count(private_home) == 1


def test_a_new_database_is_exported_too(private_home: Home) -> None:
    insert(private_home, 50, skill="old")
    SkillExports(str(private_home.path)).finish()
    for path in private_home.database.parent.glob("hive.db*"):
        path.unlink()
    insert(private_home, 2, skill="new")
    SkillExports(str(private_home.path)).finish()
    assert list(exported(private_home)) == ["new"]


# ---- the files


def test_the_files_are_the_users_alone_and_ignored_by_git(private_home: Home) -> None:
    insert(private_home, 1)
    before = os.umask(0)
    try:
        SkillExports(str(private_home.path)).write()
    finally:
        os.umask(before)
    names = sorted(path.name for path in folder(private_home).iterdir())
    assert names == [".skill-usage.lock", *sorted(FILES)]
    for path in folder(private_home).iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
    assert folder(private_home).stat().st_mode & 0o777 == 0o700
    if private_home.is_in_tree:
        assert (private_home.project / ".claude-state" / ".gitignore").read_text() == "*\n"


def test_a_home_of_no_project_keeps_its_exports_to_itself(private_home: Home) -> None:
    home = private_home.another("elsewhere")
    insert(home, 1)
    SkillExports(str(home.path)).write()
    assert (home.path / "archive" / FILES[0]).exists()
    assert not [*(home.project / ".claude-state").rglob("*.json")]


def test_a_link_in_the_folders_place_is_not_followed(private_home: Home) -> None:
    insert(private_home, 1)
    elsewhere = private_home.root / "elsewhere"
    elsewhere.mkdir()
    folder(private_home).parent.mkdir(exist_ok=True)
    folder(private_home).symlink_to(elsewhere)
    with pytest.raises(OSError, match=r"archive|logs"):
        SkillExports(str(private_home.path)).write()
    assert list(elsewhere.iterdir()) == []


def test_days_are_those_of_the_machine(private_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as changed_zone:
        changed_zone.setenv("TZ", "Asia/Kathmandu")
        time.tzset()
        insert(private_home, 1)
        SkillExports(str(private_home.path)).write()
    time.tzset()
    assert exported(private_home)["x"]["daily"] == {"2026-11-21": 1}


# ---- the lock


def test_a_lock_held_by_another_process_is_a_warning_and_a_retry(
    private_home: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(skill_exports, "LOOK_EVERY_SECS", 0)
    monkeypatch.setattr(skill_exports, "file_delay_secs", lambda *_, **__: 0)
    monkeypatch.setattr("hivepipe.files.export_folder.LOCK_SECS", 0.05)
    insert(private_home, USES)
    exports = SkillExports(str(private_home.path))
    manifest = Manifest(str(private_home.path))
    with (
        locked(str(folder(private_home)), "skill-usage", manifest),
        caplog.at_level(logging.WARNING),
    ):
        exports.tidy()
        assert exported(private_home) == {}
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "another process holds the lock of skill-usage" in caplog.text
    said = (private_home.logs / "hook-errors.log").read_text()
    assert "[skill-export] [WARNING] skills not exported" in said
    monkeypatch.setattr(exports, "_next_look", 0.0)
    exports.tidy()
    assert count(private_home) == USES


def test_the_locks_file_is_never_another_one(private_home: Home) -> None:
    insert(private_home, 1)
    exports = SkillExports(str(private_home.path))
    exports.write()
    lock = folder(private_home) / ".skill-usage.lock"
    before = lock.stat().st_ino
    exports.write()
    assert lock.stat().st_ino == before
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nobody holds it any more


# ---- everything together


class Readers:
    """Threads that read all the time: each file is whole whenever it is there, and never older."""

    def __init__(self, home: Home, many: int = 3) -> None:
        self.errors: list[str] = []
        self.highest = 0
        self._paths = [folder(home) / name for name in FILES]
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._read) for _ in range(many)]

    def _read(self) -> None:
        last = 0
        while not self._ended.is_set():
            try:
                usage, index = (json.loads(path.read_text()) for path in self._paths)
            except FileNotFoundError:
                continue
            except ValueError as error:
                self.errors.append(str(error))
                return
            found = sum(entry["count"] for entry in usage["skills"].values())
            if found < last or not index["skills"]:
                self.errors.append(f"{found} after {last}")
            last = found
            self.highest = max(self.highest, found)

    def __enter__(self) -> "Readers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()


def test_many_writers_at_once_leave_the_files_whole_and_never_older(private_home: Home) -> None:
    def write() -> None:
        for _ in range(15):
            with contextlib.suppress(TimeoutError):  # the others took their turn for a second
                SkillExports(str(private_home.path)).write()

    insert(private_home, 300)  # enough for a file that takes more than one write to fill
    writers = [threading.Thread(target=write) for _ in range(3)]
    with Readers(private_home) as readers:
        for thread in writers:
            thread.start()
        while any(thread.is_alive() for thread in writers):
            insert(private_home, 5)
        for thread in writers:
            thread.join()
        SkillExports(str(private_home.path)).finish()
    assert readers.errors == []
    assert count(private_home) == private_home.count("skill_uses") > 300


@pytest.fixture
def slow_worker(private_home: Home, redis_server: Server) -> Iterator[Process]:
    """The slow worker of the private home, at work."""
    script = str(ROOT / "workers" / "slow.py")
    log = private_home.root / "slow.log"
    made = Process([sys.executable, "-I", script], log, private_home.env, private_home.root)
    made.start()
    with redis_server.client() as client:
        until(lambda: client.scard("rq:workers"), f"the worker does not come: {made.text}")
    yield made
    if made.is_running:
        made.end()


def test_thirty_skills_at_once_are_thirty_and_every_reader_sees_valid_files(
    private_home: Home,
    redis_server: Server,
    writer: Writer,
    slow_worker: Process,
) -> None:
    """The predecessor counted 2 to 9 of 30."""
    writer.start()
    uses = [changed(POST_SKILL, tool_use_id=f"toolu_{number}") for number in range(30)]
    with Readers(private_home) as readers:
        fire_all(uses, private_home.env, at_once=30)
        until(lambda: readers.highest == 30, "not all exported")
    assert readers.errors == []
    assert readers.highest == 30
    entry = exported(private_home)[SKILL]
    assert (entry["count"], entry["success_rate"], entry["session_count"]) == (30, 1.0, 1)
    assert len(entry["invocations"]) == 30
    assert private_home.count("skill_uses") == 30


def test_successes_failures_and_interrupts(
    private_home: Home,
    redis_server: Server,
    writer: Writer,
    slow_worker: Process,
) -> None:
    """Doubled events count once, MCP prompts not at all; a worker that ends writes what is left."""
    writer.start()
    mcp = changed(USER_PROMPT_EXPANSION, expansion_type="mcp_prompt", command_name="mcp:ask:me")
    for event in (
        POST_SKILL,
        POST_SKILL,
        FAILED_SKILL,
        changed(FAILED_SKILL, tool_use_id="toolu_interrupted", is_interrupt=True),
        USER_PROMPT_EXPANSION,
        USER_PROMPT_EXPANSION,
        changed(USER_PROMPT_EXPANSION, command_name="deploy"),
        mcp,
    ):
        fire(event["hook_event_name"], event, private_home.env)
    until(lambda: is_drained(private_home, redis_server, writer), "not drained")
    slow_worker.end()
    assert list(exported(private_home)) == [SKILL]
    entry = exported(private_home)[SKILL]
    assert [use["success"] for use in entry["invocations"]].count(False) == 1
    assert entry["count"] == 3
    assert entry["success_rate"] == 0.6667


def test_without_a_stack_the_drain_writes_the_files(private_home: Home) -> None:
    from hivepipe.direct import drain  # noqa: PLC0415

    fire("PostToolUse", POST_SKILL, private_home.env)
    assert len(private_home.spool) == 1
    drain(str(private_home.path))
    assert count(private_home) == 1
