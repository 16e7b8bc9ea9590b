"""A worktree of the real client is recorded before uninstall and not recorded afterwards."""

import subprocess

from tests.real.environment import client_environment, needs_claude, settle
from tests.real.script import Say, Script

pytestmark = needs_claude

WORK = Script("work", [[Say("A numbat.")]])


def test_after_uninstall_a_session_in_a_worktree_is_not_recorded() -> None:
    with client_environment(WORK, init=()) as person:
        author = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
        commit = ("commit", "-q", "--allow-empty", "-m", "First")
        subprocess.run(["git", *author, *commit], cwd=person.project, check=True)
        person.hivepipe("init", "--no-probe")
        person.ask(WORK.prompt("Please work"), "-w", "side")
        settle(person)
        assert len(person.json("sessions", "--all")["sessions"]) == 1
        tree = person.project / ".claude" / "worktrees" / "side"
        copy = tree / ".claude" / "settings.local.json"
        assert tree.is_dir()

        person.hivepipe("uninstall")
        # 2.1.197 copies the settings there, 2.1.330 does not.
        assert not copy.exists() or "hivepipe" not in copy.read_text()
        person.ask(WORK.prompt("Please work"), "-w", "side")
        assert not list(person.home.glob(".local/state/hivepipe/default/spool/*.json"))
