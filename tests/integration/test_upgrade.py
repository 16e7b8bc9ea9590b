"""A running 1.0.0 is upgraded to this release: no event is lost, and the home is moved.

The code of 1.0.0 comes from the history of this repository.
"""

import io
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, until
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


@pytest.fixture
def old(folder: Path, code: Path) -> Iterator[User]:
    """A user of 1.0.0 with a running stack and a recorded session."""
    user = User(folder, Installation(folder / "installed", code))
    try:
        user.hivepipe("init")
        user.hivepipe("up", "-d")
        record(user, "before")
        yield user
    finally:
        user.end_all()
        shutil.rmtree(folder / "installed")


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


@pytest.mark.parametrize("first", ["init", "restart", "a hook"])
def test_a_running_stack_of_1_0_0_is_upgraded(old: User, first: str) -> None:
    upgrade(old)
    fire(old, "between")  # settings and stack of 1.0.0, hooks of this release
    if first == "a hook":
        old.end_all()  # as after a reboot
    else:
        old.hivepipe(first)
    record(old, "after")
    until(
        lambda: recorded_sessions(old) == ["after", "before", "between"],
        f"{recorded_sessions(old)}",
    )
    assert Path(old.hivepipe("home").strip()) == old.recorded
    left = {path.name for path in (old.project / ".hive-mind").iterdir()}
    assert left <= {".gitignore", "backups", "hive.db", "hive.db-wal", "hive.db-shm"}
    old.hivepipe("init")
    old.hivepipe("move-home")
    record(old, "moved")
    assert recorded_sessions(old) == ["after", "before", "between", "moved"]
    assert {path.name for path in old.project.iterdir()} == {".claude"}
    old.hivepipe("uninstall", "--purge", "--yes")
    assert not list(old.project.rglob("*"))
    assert not old.processes()


def test_a_resting_home_of_1_0_0_with_spooled_events_is_upgraded(old: User) -> None:
    old.end_all()
    old.env["HIVEPIPE_AUTOSTART"] = "0"
    fire(old, "spooled")
    del old.env["HIVEPIPE_AUTOSTART"]
    upgrade(old)
    record(old, "after")
    until(
        lambda: recorded_sessions(old) == ["after", "before", "spooled"],
        f"{recorded_sessions(old)}",
    )
