"""`init --statusline`: the line is installed, shows recorded data, and is removed by uninstall."""

import json
import re
from pathlib import Path
from typing import Any

from tests.conftest import until
from tests.installed import User, changed

TRANSCRIPT = Path(__file__).resolve().parents[1] / "transcripts" / "session_b.jsonl"
SESSION = "session_b"
OTHER_LINE = {"type": "command", "command": "printf 'mine '; wc -c", "padding": 1}


def shown(user: User, **fields: Any) -> str:
    """Return what Claude Code would show with the present settings."""
    command = json.loads(user.settings.read_text())["statusLine"]["command"]
    data = json.dumps({"session_id": "s1", "cwd": str(user.project), **fields})
    return user.do("sh", "-c", command, data=data).stdout


def test_the_line_wraps_another_one_and_is_removed_completely(user: User) -> None:
    user.settings.parent.mkdir()
    user.settings.write_text(json.dumps({"statusLine": OTHER_LINE, "model": "opus"}, indent=3))
    user.own(user.project)
    before = user.files()
    user.hivepipe("init", "--statusline")
    assert shown(user, cost={"total_cost_usd": 2}).splitlines()[1] == "$2.00 session"
    assert shown(user).startswith("mine ")
    once = user.settings.read_text()
    user.hivepipe("init")
    user.hivepipe("init", "--statusline")
    assert user.settings.read_text() == once
    user.hivepipe("uninstall")
    assert changed(before, user.files()) == {}


def test_a_users_own_line_is_not_shared_through_git(user: User) -> None:
    user.hivepipe("init", "--project", "--statusline")
    shared = user.project / ".claude" / "settings.json"
    once = shared.read_text()
    own = user.home / ".claude" / "settings.json"
    own.parent.mkdir(exist_ok=True)
    own.write_text(json.dumps({"statusLine": OTHER_LINE}))
    user.own(user.home)
    user.hivepipe("init", "--project")
    assert shared.read_text() == once
    output = user.hivepipe("init", "--project", "--statusline", expect=1)
    assert "would share your own status line through git" in output
    assert shared.read_text() == once


def test_init_updates_the_line_after_an_upgrade(user: User) -> None:
    user.settings.parent.mkdir()
    user.settings.write_text(json.dumps({"statusLine": OTHER_LINE}))
    user.own(user.project)
    user.hivepipe("init", "--statusline")
    once = user.settings.read_text()
    older = re.sub(r"hooks/[0-9a-f]+/hook", "hooks/0123456789abcdef/hook", once)
    assert older != once
    user.settings.write_text(older)
    user.hivepipe("init")
    assert json.loads(user.settings.read_text()) == json.loads(once)


def test_a_line_of_all_projects_is_still_shown(user: User) -> None:
    user_settings = user.home / ".claude" / "settings.json"
    user_settings.parent.mkdir()
    user_settings.write_text(json.dumps({"statusLine": OTHER_LINE}))
    user.own(user.home)
    before = user.files()
    user.hivepipe("init", "--statusline")
    assert shown(user).startswith("mine ")
    user.hivepipe("uninstall")
    assert changed(before, user.files()) == {}


def test_invalid_settings_of_all_projects_do_not_prevent_the_line(user: User) -> None:
    user_settings = user.home / ".claude" / "settings.json"
    user_settings.parent.mkdir()
    for other in ("{", "[]", '{"statusLine": "none"}', "\ufeff{}", "\x00"):
        user_settings.unlink(missing_ok=True)
        user_settings.write_text(other)
        user_settings.chmod(0o400)
        user.own(user.home)
        user.hivepipe("init", "--statusline")
        assert shown(user, cost={"total_cost_usd": 2}) == "$2.00 session\n", other


def test_an_entry_of_another_kind_is_refused_and_not_changed(user: User) -> None:
    user.settings.parent.mkdir()
    user.settings.write_text('{"statusLine": "none"}')
    user.own(user.project)
    before = user.files()
    output = user.hivepipe("init", "--statusline", expect=1)
    assert "has a status line that is not a command" in output
    assert changed(before, user.files()) == {}


def test_the_line_shows_recorded_costs(user: User) -> None:
    user.hivepipe("init", "--statusline")
    user.hivepipe("up", "-d")
    path = user.home / ".claude" / "projects" / "-shop" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(TRANSCRIPT.read_bytes())
    user.own(user.home / ".claude")
    named = {"session_id": SESSION, "transcript_path": str(path)}
    user.fire("SessionStart", source="startup", **named)
    user.fire("Stop", stop_hook_active=False, **named)

    def costs() -> float | None:
        done = user.do("hivepipe", "costs", "--json")
        if done.returncode:  # the database is not created yet
            return None
        return json.loads(done.stdout)["total"]["cost_usd"] or None

    until(lambda: costs() is not None, "no message was counted")
    wanted = f"${costs():.2f} session"
    until(lambda: wanted in shown(user, session_id=SESSION), "the status line does not follow")
    assert "today" in user.do("hivepipe", "statusline", data="{}").stdout
    user.hivepipe("down")
    assert wanted in shown(user, session_id=SESSION)


def test_init_reports_the_line_and_only_new_hooks(user: User) -> None:
    user.hivepipe("init")
    output = user.hivepipe("init", "--statusline")
    assert "line     the status line was added to .claude/settings.local.json" in output
    assert "hooks    are already in .claude/settings.local.json" in output
