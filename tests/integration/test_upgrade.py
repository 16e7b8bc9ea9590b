"""A running 1.0.0 is upgraded to this release: no event is lost, and the home is moved.

The code of 1.0.0 comes from the history of this repository.
"""

import io
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, redis_log, until
from tests.installed import Installation, User

RELEASE = "2ff84f8"
# Python 3.11.0 to 3.11.3 have no extraction filter.
SAFE: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the source of 1.0.0."""
    command = ["git", "-C", str(ROOT), "archive", RELEASE]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"the history of 1.0.0 is not in this checkout: {done.stderr.decode()}")
    folder = tmp_path_factory.mktemp("release")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, **SAFE)
    return folder


@pytest.fixture(scope="module")
def installed(code: Path) -> Iterator[Installation]:
    folder = Path(tempfile.mkdtemp(prefix="hp-", dir="/tmp")).resolve()
    folder.chmod(0o755)
    made = Installation(folder, code)
    yield made
    made.end()
    shutil.rmtree(folder)


@pytest.fixture
def old(folder: Path, code: Path, installed: Installation) -> Iterator[User]:
    """A user of 1.0.0 with a running stack and a recorded session."""
    installed.install(code)
    user = User(folder, installed)
    try:
        user.hivepipe("init")
        user.hivepipe("up", "-d")
        record(user, "before")
        # with what Python has compiled, for the next installation
        shutil.copytree(installed.folder / "hivepipe", code / "hivepipe", dirs_exist_ok=True)
        yield user
    finally:
        user.end_all()


def record(user: User, session: str) -> None:
    fire(user, session)
    until(lambda: session in recorded_sessions(user), f"{session} was not recorded")


def fire(user: User, session: str) -> None:
    user.fire("SessionStart", source="startup", session_id=session)
    user.fire("UserPromptSubmit", prompt="hello", prompt_id=session, session_id=session)
    edit = {"tool_name": "Edit", "tool_use_id": f"t-{session}", "tool_response": {}}
    user.fire("PostToolUse", **edit, tool_input={"file_path": "/a.py"}, session_id=session)
    user.fire("SessionEnd", reason="other", session_id=session)


def recorded_sessions(user: User) -> list[str]:
    return sorted(entry["id"] for entry in user.sessions())


def upgrade(user: User) -> None:
    user.installation.install(ROOT)


def test_restart_upgrades_a_running_stack(old: User) -> None:
    upgrade(old)
    fire(old, "between")  # settings of 1.0.0, hooks of this release
    old.hivepipe("restart")
    record(old, "after")
    assert_moved(old, "after", "before", "between")
    assert_purged(old)


def test_a_hook_upgrades_a_killed_stack_with_events_on_disk_and_in_redis(old: User) -> None:
    os.kill(old.pid("writer"), signal.SIGSTOP)
    spool_events(old, "spooled")
    upgrade(old)
    fire(old, "between")
    assert b"between" in redis_log(old.project)
    old.end_all()  # as a reboot does
    for claimed in old.run_folder.rglob("starting"):
        claimed.unlink()  # by a start that was killed too: hooks would wait 10 s before the next
    record(old, "after")
    assert_moved(old, "after", "before", "between", "spooled")
    old.hivepipe("init")  # a move does not depend on the first command
    old.hivepipe("move-home")
    record(old, "moved")
    assert recorded_sessions(old) == ["after", "before", "between", "moved", "spooled"]
    assert {path.name for path in old.project.iterdir()} == {".claude"}
    assert_purged(old)


def test_init_upgrades_a_running_stack_and_keeps_events_of_a_second_upgrade(
    old: User, code: Path
) -> None:
    """1.0.0 cannot write the migrated database: its events wait in a Redis of its own."""
    upgrade(old)
    fire(old, "between")
    old.hivepipe("init")
    record(old, "upgraded")
    assert_moved(old, "before", "between", "upgraded")
    os.kill(old.pid("writer"), signal.SIGSTOP)
    fire(old, "waiting")
    old.end_all()
    old.installation.install(code)
    old.hivepipe("init")
    old.hivepipe("up", "-d")
    fire(old, "again")
    assert b"again" in redis_log(old.project)
    upgrade(old)
    old.hivepipe("init")
    record(old, "after")
    assert_moved(old, "after", "again", "before", "between", "upgraded", "waiting")
    assert not list((old.recorded / "spool").rglob("*.json"))
    old.installation.install(code)
    old.hivepipe("init")
    upgrade(old)
    assert "run `uninstall --purge` again to delete it" in old.hivepipe(
        "uninstall", "--purge", "--yes"
    )
    assert_purged(old)
    assert not old.recorded.exists()


def test_a_purge_after_a_downgrade_leaves_no_file_of_1_0_0(
    folder: Path, code: Path, installed: Installation
) -> None:
    installed.install(ROOT)
    user = User(folder, installed)
    user.hivepipe("init")
    installed.install(code)
    user.hivepipe("init")
    assert (user.project / ".claude-state" / ".gitignore").exists()
    upgrade(user)
    user.hivepipe("uninstall", "--purge", "--yes")
    assert_purged(user)


def test_a_second_upgrade_hides_no_sessions_that_were_moved_out(old: User, code: Path) -> None:
    upgrade(old)
    old.hivepipe("init")
    old.hivepipe("restart")
    old.hivepipe("move-home")
    record(old, "moved")

    def downgrade() -> None:
        old.installation.install(code)
        old.hivepipe("init")

    downgrade()  # while the stack runs
    upgrade(old)
    old.hivepipe("init")
    old.hivepipe("up", "-d")
    assert recorded_sessions(old) == ["before", "moved"]
    old.hivepipe("down")
    old.end_all()
    downgrade()
    old.hivepipe("up", "-d")
    record(old, "again")
    old.end_all()
    upgrade(old)
    assert "both have sessions" in old.hivepipe("doctor", expect=1)
    assert "both have sessions" in old.hivepipe("migrate", "--dry-run", expect=1)
    old.hivepipe("init", expect=1)
    refused = old.hivepipe("up", "-d", expect=1)
    assert "both have sessions: move one of the two away, with its -wal" in refused
    for path in (old.project / ".hive-mind").glob("hive.db*"):
        path.rename(old.home / path.name)
    old.hivepipe("up", "-d")
    assert recorded_sessions(old) == ["before", "moved"]


def test_an_upgrade_keeps_a_database_in_the_state_folder(
    folder: Path, code: Path, installed: Installation
) -> None:
    """The database is there if its path is too long for SQLite, or on a shared file system."""
    installed.install(code)
    user = User(folder, installed, project=f"{250 * 'd'}/{250 * 'e'}")
    databases = user.home / ".local/state/hivepipe/databases"
    try:
        user.hivepipe("init")
        user.hivepipe("up", "-d")
        record(user, "before")
        upgrade(user)
        user.hivepipe("restart")
        until(lambda: recorded_sessions(user) == ["before"], "the session is hidden")
        assert len(list(databases.iterdir())) == 1
        user.hivepipe("down")
        installed.install(code)
        user.hivepipe("init")
        upgrade(user)
        user.hivepipe("up", "-d")
        record(user, "after")
        assert recorded_sessions(user) == ["after", "before"]
    finally:
        user.end_all()


def assert_moved(user: User, *sessions: str) -> None:
    """Check that these sessions are recorded, and that only data are in the project."""
    until(lambda: recorded_sessions(user) == [*sessions], f"{recorded_sessions(user)}")
    assert Path(user.hivepipe("home").strip()) == user.recorded
    left = {path.name for path in (user.project / ".hive-mind").iterdir()}
    assert left <= {".gitignore", "backups", "hive.db", "hive.db-wal", "hive.db-shm"}


def assert_purged(user: User) -> None:
    """Check that a purge leaves no file and no process."""
    user.hivepipe("uninstall", "--purge", "--yes")
    assert not list(user.project.rglob("*"))
    assert not user.processes()


def spool_events(user: User, session: str) -> None:
    """Record a session while hooks find no Redis."""
    (socket,) = user.run_folder.rglob("redis.sock")
    away = socket.rename(socket.with_name("away"))
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    fire(user, session)
    del user.env["HIVEPIPE_AUTOSTART"]
    away.rename(socket)
    assert session.encode() not in redis_log(user.project)
