"""skill-usage.json and its index are complete, always valid, and protected by a lock."""

import contextlib
import fcntl
import json
import logging
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from hivepipe.db.database import Database
from hivepipe.files.export_folder import locked
from hivepipe.files.manifest import Manifest
from hivepipe.operations import skill_exports
from hivepipe.operations.skill_exports import AGE_SECS, USES, SkillExports
from tests.conftest import Home, Process, Server, Writer, fire, is_drained, until
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


def add_uses(
    home: Home, many: int, time: str = "2026-11-20T23:00:00.000Z", skill: str = "x"
) -> None:
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


# ---- times of writing
def test_an_imported_use_without_a_time_is_exported(private_home: Home) -> None:
    add_uses(private_home, 1, time="")
    SkillExports(str(private_home.path)).tidy()
    assert count(private_home) == 1


def test_ten_uses_are_exported_at_once_and_fewer_later(
    private_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skill_exports, "LOOK_EVERY_SECS", 0)
    exports = SkillExports(str(private_home.path))
    exports.tidy()  # there is no database yet
    add_uses(private_home, USES - 1, now())
    exports.tidy()
    assert exported(private_home) == {}
    add_uses(private_home, 1, now())
    exports.tidy()
    assert count(private_home) == USES
    add_uses(private_home, 1, now())
    exports.tidy()
    assert count(private_home) == USES
    long_ago = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - AGE_SECS - 1))
    add_uses(private_home, 1, long_ago)
    exports.tidy()
    assert count(private_home) == USES + 2


def test_without_new_uses_nothing_is_written(
    private_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new process writes nothing either: the lock file stores what was exported."""
    monkeypatch.setattr(skill_exports, "LOOK_EVERY_SECS", 0)
    add_uses(private_home, USES)
    SkillExports(str(private_home.path)).tidy()
    before = (folder(private_home) / FILES[0]).stat().st_ino
    exports = SkillExports(str(private_home.path))
    exports.tidy()
    exports.finish()
    assert (folder(private_home) / FILES[0]).stat().st_ino == before


def test_a_new_database_is_exported_too(private_home: Home) -> None:
    add_uses(private_home, 50, skill="old")
    SkillExports(str(private_home.path)).finish()
    for path in private_home.database.parent.glob("hive.db*"):
        path.unlink()
    add_uses(private_home, 2, skill="new")
    SkillExports(str(private_home.path)).finish()
    assert list(exported(private_home)) == ["new"]


# ---- the files
def test_the_files_are_private_and_ignored_by_git(private_home: Home) -> None:
    add_uses(private_home, 1)
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


def test_a_home_without_a_project_has_its_exports_inside(private_home: Home) -> None:
    home = private_home.another("elsewhere")
    add_uses(home, 1)
    SkillExports(str(home.path)).write()
    assert (home.path / "archive" / FILES[0]).exists()
    assert not [*(home.project / ".claude-state").rglob("*.json")]


def test_a_link_instead_of_the_folder_is_not_followed(private_home: Home) -> None:
    add_uses(private_home, 1)
    elsewhere = private_home.root / "elsewhere"
    elsewhere.mkdir()
    folder(private_home).parent.mkdir(exist_ok=True)
    folder(private_home).symlink_to(elsewhere)
    with pytest.raises(OSError, match=r"archive|logs"):
        SkillExports(str(private_home.path)).write()
    assert list(elsewhere.iterdir()) == []


def test_days_are_in_the_local_time_zone(
    private_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as changed_zone:
        changed_zone.setenv("TZ", "Asia/Kathmandu")
        time.tzset()
        add_uses(private_home, 1)
        SkillExports(str(private_home.path)).write()
    time.tzset()
    assert exported(private_home)["x"]["daily"] == {"2026-11-21": 1}


# ---- the lock
def test_a_held_lock_gives_a_warning_and_a_retry(
    private_home: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(skill_exports, "LOOK_EVERY_SECS", 0)
    monkeypatch.setattr(skill_exports, "file_delay_secs", lambda *_, **__: 0)
    monkeypatch.setattr("hivepipe.files.export_folder.LOCK_SECS", 0.05)
    add_uses(private_home, USES)
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
    output = (private_home.logs / "hook-errors.log").read_text()
    assert "[skill-export] [WARNING] skills not exported" in output
    monkeypatch.setattr(exports, "_next_look", 0.0)
    exports.tidy()
    assert count(private_home) == USES


def test_the_lock_file_is_never_replaced(private_home: Home) -> None:
    add_uses(private_home, 1)
    exports = SkillExports(str(private_home.path))
    exports.write()
    lock = folder(private_home) / ".skill-usage.lock"
    before = lock.stat().st_ino
    exports.write()
    assert lock.stat().st_ino == before
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the lock is free


# ---- everything together
class Readers:
    """Threads that read the files constantly: each file is complete, and its counts never fall."""

    def __init__(self, home: Home, many: int = 2) -> None:
        self.errors: list[str] = []
        self.highest = 0
        self._paths = [folder(home) / name for name in FILES]
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._read) for _ in range(many)]

    def _read(self) -> None:
        last = 0
        while not self._ended.is_set():
            try:
                usage, index = map(json.loads, self._texts())
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

    def _texts(self) -> list[str]:
        """Return the texts of the files; an open file must not change."""
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(path.open()) for path in self._paths]
            texts = [file.read() for file in files]
            time.sleep(0.005)
            for file, text in zip(files, texts, strict=True):
                file.seek(0)
                if file.read() != text:
                    self.errors.append(f"{file.name} was written in place")
            return texts

    def __enter__(self) -> "Readers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()


def test_parallel_writers_leave_complete_files_with_rising_counts(private_home: Home) -> None:
    def write() -> None:
        for _ in range(6):
            with contextlib.suppress(TimeoutError):  # the other threads held the lock for a second
                SkillExports(str(private_home.path)).write()

    add_uses(private_home, 300)  # a file of this size takes more than one write
    writers = [threading.Thread(target=write) for _ in range(3)]
    with Readers(private_home) as readers:
        for thread in writers:
            thread.start()
        while any(thread.is_alive() for thread in writers):
            add_uses(private_home, 5)
        for thread in writers:
            thread.join()
        SkillExports(str(private_home.path)).finish()
    assert readers.errors == []
    assert count(private_home) == private_home.count("skill_uses") > 300


def test_successes_and_failures_count_and_interrupts_do_not(
    private_home: Home, redis_server: Server, writer: Writer, slow_worker: Process
) -> None:
    """Repeated events count once, MCP prompts not at all; a worker that ends writes the rest."""
    writer.start()
    slow_worker.start()
    with redis_server.client() as client:
        until(lambda: client.scard("rq:workers"), "the worker does not start")
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
