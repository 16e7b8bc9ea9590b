"""Hooks record nothing in CI or in the cloud unless enabled, nor as root for another user."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.conftest import NEUTRAL
from tests.installed import AS_USER, SECS, User, changed
from tests.outcome import outcome_of


def fire(user: User, event: str, *as_user: str, **env: str) -> str:
    """Run a hook by its path in the user's project as the given user, and return its output."""
    hook = user.installation.folder / "hooks" / f"{event}.py"
    done = outcome_of(
        [*as_user, user.installation.bin / "python", "-I", "-S", hook],
        user.env | {"CLAUDE_PROJECT_DIR": str(user.project)} | env,
        user.project,
        input=json.dumps({"session_id": "s1", "cwd": str(user.project)}),
        timeout=SECS,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def spooled(home: Path) -> int:
    return len(list((home / "spool").glob("*.json")))


@pytest.mark.parametrize("name", ["CI", "CLAUDE_CODE_REMOTE"])
def test_in_ci_nothing_is_stored_of_an_unregistered_project(user: User, name: str) -> None:
    before = user.files()
    assert fire(user, "session_start", *AS_USER, **{name: "true"}) == NEUTRAL
    assert fire(user, "stop", *AS_USER, **{name: "true"}) == NEUTRAL
    assert changed(before, user.files()) == {}
    fire(user, "stop", *AS_USER, **{name: "false"})
    assert changed(before, user.files()) != {}


def test_in_ci_events_are_stored_if_it_is_set(user: User) -> None:
    default = user.home / ".local/state/hivepipe/default"
    fire(user, "stop", *AS_USER, CI="true", HIVEPIPE_AUTOSTART="1")
    assert spooled(default) == 1
    named = user.home / "named"
    fire(user, "stop", *AS_USER, CI="true", HIVEPIPE_HOME=str(named))
    assert spooled(named) == 1
    user.hivepipe("init", CI="true")
    fire(user, "stop", *AS_USER, CI="true")
    assert (spooled(user.recorded), spooled(default)) == (2, 0)  # init takes the early event


@pytest.fixture
def ana(user: User) -> User:
    """A user who is not root, while root runs the tests."""
    if not AS_USER:
        pytest.skip("needs root")
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    return user


def as_root(user: User, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return outcome_of(
        [user.installation.bin / "hivepipe", *words], user.env | env, user.project, timeout=SECS
    )


def test_root_leaves_nothing_in_another_users_home(ana: User) -> None:
    ana.hivepipe("init")
    fire(ana, "stop", *AS_USER)
    before = ana.files()
    message = json.loads(fire(ana, "session_start"))["systemMessage"]
    assert "root" in message
    assert str(ana.recorded) in message
    for event in ("post_tool_use", "stop", "session_end"):
        assert fire(ana, event) == NEUTRAL
    for command in ("status", "up", "init"):
        done = as_root(ana, command)
        assert done.returncode == 1
        assert "you are root" in done.stderr
    assert changed(before, ana.files()) == {}


def test_root_in_another_users_project_is_advised(ana: User, folder: Path) -> None:
    roots = folder / "root"
    roots.mkdir()
    before = ana.files(ana.home)
    for words in (("init",), ("up", "-d")):
        done = as_root(ana, *words, HOME=str(roots))
        assert done.returncode == 1
        assert "sudo -u nobody hivepipe" in done.stderr
        assert "Traceback" not in done.stderr
    assert changed(before, ana.files(ana.home)) == {}
    assert as_root(ana, "init", "--user", HOME=str(roots)).returncode == 0
    fire(ana, "stop", HOME=str(roots))
    assert spooled(roots / ".local/state/hivepipe/default") == 1
    assert changed(before, ana.files(ana.home)) == {}
