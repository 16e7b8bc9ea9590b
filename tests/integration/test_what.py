"""`hivepipe what` shows what is stored of a project, and where."""

import json
from pathlib import Path

from tests.conftest import until
from tests.installed import User


def test_what_counts_recorded_data_and_names_every_folder(user: User) -> None:
    assert "hivepipe init" in user.hivepipe("what")
    user.hivepipe("init")
    user.hivepipe("up", "-d")
    user.play_session()
    until(user.sessions, "no session was recorded")
    found = json.loads(user.hivepipe("what", "--json"))
    assert (found["kept"]["sessions"], found["kept"]["transcripts"]) == (1, 0)
    assert found["hooks"] == [str(user.settings)]
    paths = {entry["path"] for entry in found["data"] if entry["bytes"] > 2}
    assert str(user.recorded) in paths
    assert found["leaves"].startswith("nothing")
    screen = user.hivepipe("what")
    assert len(screen.splitlines()) <= 24
    assert max(map(len, screen.splitlines())) <= 100
    user.hivepipe("off")
    assert "is not recorded" in user.hivepipe("what")
    user.hivepipe("uninstall", "--purge", "--yes")
    assert not [entry for entry in map(Path, paths) if entry.exists()]


def test_what_and_doctor_agree_below_two_registrations(user: User) -> None:
    inner = user.project / "inner"
    below = inner / "below"
    user.do("mkdir", "-p", below)
    user.git("init")
    user.hivepipe("init", "--no-probe")
    user.hivepipe("init", "--no-probe", cwd=inner)
    for is_read in (True, False):
        found = json.loads(user.do("hivepipe", "doctor", "--json", cwd=below).stdout)
        assert ("folder" in {each["check"] for each in found["findings"]}) is not is_read
        assert str(user.project / ".claude") not in json.dumps(found)  # of another project
        assert ("is not recorded" in user.hivepipe("what", cwd=below)) is not is_read
        user.do("mv", ".git", "git")


def test_a_copied_project_is_told_that_its_events_wait(user: User) -> None:
    user.hivepipe("init", "--no-probe")
    copy = f"{user.project} copy"
    user.do("cp", "-R", user.project, copy)
    assert " is recorded\n" in user.hivepipe("what")
    assert "only, until `hivepipe init` registers" in user.hivepipe("what", cwd=copy)
