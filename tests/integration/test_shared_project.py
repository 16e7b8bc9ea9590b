"""Two users with one project folder: neither changes the files of the other."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import until
from tests.installed import UID, Installation, User, changed
from tests.integration.test_install import has_claude

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")

OTHER_UID = 50_000 + os.getpid() % 10_000


class Colleague(User):
    """A second user of a project, in the same group."""

    account = "colleague"
    become = ("setpriv", f"--reuid={OTHER_UID}", f"--regid={UID}", "--clear-groups")

    def own(self, path: Path) -> None:
        subprocess.run(["chown", "-R", f"{OTHER_UID}:{UID}", path], check=True)


@pytest.fixture
def colleague(user: User, installation: Installation, folder: Path) -> Iterator[Colleague]:
    """A second user of the project of `user`, whose home folders are closed to each other."""
    account = Colleague(folder / "second", installation)
    shared = folder / "shared"
    (shared / ".claude").mkdir(parents=True)
    for path in (shared, shared / ".claude"):
        os.chown(path, UID, UID)
        path.chmod(0o2775)
    for each in (user, account):
        each.project = shared
        each.home.chmod(0o700)
    yield account
    account.end_all()


def theirs(account: User) -> dict[str, str]:
    """Return the files of a user, in the home folder and in the project."""
    owned = {str(path): path.stat().st_uid for path in account.project.rglob("*")}
    uid = account.home.stat().st_uid
    files = account.files(account.home, account.project)
    return {path: print_ for path, print_ in files.items() if owned.get(path, uid) == uid}


@pytest.mark.parametrize("mode", [0o644, 0o664])
def test_uninstall_leaves_the_settings_of_another_user(
    user: User, colleague: Colleague, mode: int
) -> None:
    user.hivepipe("init", "--project")
    (user.project / ".claude" / "settings.json").chmod(mode)
    empty, before = colleague.files(colleague.home), theirs(user)
    colleague.hivepipe("init")
    colleague.play_session()
    until(colleague.sessions, "no session was recorded")
    assert colleague.do("chown", str(OTHER_UID), ".claude/settings.json").returncode != 0
    said = colleague.hivepipe("uninstall", "--purge", "--yes")
    assert said.count(".claude/settings.json") == 1
    assert "left     .claude/settings.json: it belongs to nobody" in said
    assert theirs(user) == before
    assert not colleague.settings.exists()
    assert changed(empty, colleague.files(colleague.home)) == {}


def test_uninstall_of_the_first_user_leaves_the_hooks_of_the_second(
    user: User, colleague: Colleague
) -> None:
    user.hivepipe("init", "--project")
    colleague.hivepipe("init")
    before = theirs(colleague)
    said = user.hivepipe("uninstall", "--purge", "--yes")
    assert f"left     .claude/settings.local.json: it belongs to #{OTHER_UID}" in said
    assert theirs(colleague) == before
    assert not (user.project / ".claude" / "settings.json").exists()
    said = user.hivepipe("uninstall")
    assert "has no hooks of yours" in said
    assert "left     .claude/settings.local.json" in said


def test_uninstall_forgets_an_edit_of_a_file_that_another_user_replaced(
    user: User, colleague: Colleague
) -> None:
    empty = colleague.files(colleague.home)
    colleague.hivepipe("init", "--project")
    settings = user.project / ".claude" / "settings.json"
    text = settings.read_bytes()
    settings.unlink()
    settings.write_bytes(text)
    os.chown(settings, UID, UID)
    before = theirs(user)
    said = colleague.hivepipe("uninstall", "--purge", "--yes")
    assert said.count(".claude/settings.json") == 1
    assert theirs(user) == before
    assert changed(empty, colleague.files(colleague.home)) == {}


def test_doctor_names_the_hook_of_another_user_that_may_not_be_read(
    user: User, colleague: Colleague
) -> None:
    user.hivepipe("init", "--project")
    colleague.hivepipe("init")
    assert user.do("ls", colleague.home).returncode != 0
    report = json.loads(user.hivepipe("doctor", "--json", expect=1))
    (found,) = (each for each in report["findings"] if not each["is_note"])
    assert found["check"] == "hook-programs"
    assert f"which you may not read: these hooks of #{OTHER_UID} fail" in found["text"]
    assert found["mend"] == ""


@pytest.mark.parametrize(("theirs", "own"), [("2.1.80", "2.1.332"), ("2.1.332", "2.1.80")])
def test_doctor_asks_for_no_repair_of_the_hooks_of_another_user(
    user: User, colleague: Colleague, theirs: str, own: str
) -> None:
    has_claude(user, own)
    has_claude(colleague, theirs)
    user.hivepipe("init", "--user")
    colleague.hivepipe("init")
    report = json.loads(user.hivepipe("doctor", "--json", expect=1))
    of_theirs = {
        each["check"] for each in report["findings"] if str(colleague.settings) in each["text"]
    }
    assert of_theirs == {"hook-programs"}


def test_init_leaves_the_exclude_file_of_another_user(user: User, colleague: Colleague) -> None:
    user.git("init", "-q", "--shared=group")
    colleague.git("config", "--global", "safe.directory", "*")
    before = theirs(user)
    said = colleague.hivepipe("init")
    assert "add /.claude/settings.local.json to .git/info/exclude" in said
    assert theirs(user) == before
    colleague.hivepipe("uninstall")
    assert theirs(user) == before


@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_a_home_of_another_user_in_the_project_is_not_looked_at(
    user: User, colleague: Colleague, mode: int
) -> None:
    theirs = user.project / ".hive-mind"
    (theirs / "spool").mkdir(parents=True)
    colleague.own(theirs)
    theirs.chmod(mode)
    user.hivepipe("init")
    user.hivepipe("up", "-d")
    said = user.hivepipe("doctor")
    assert ".hive-mind" not in said
    assert "failed" not in said
    for words in (("init", "--adopt"), ("up", "-d", "--adopt")):
        said = user.hivepipe(*words, expect=1)
        assert f"{theirs} belongs to " in said
