"""`hivepipe init --codex`: Codex CLI's hooks of a project."""

import json
from pathlib import Path

from tests.host_payloads import CODEX
from tests.installed import User


def hooks_file(user: User) -> Path:
    return user.project / ".codex" / "hooks.json"


def test_codex_gets_its_hooks_and_no_other(user: User) -> None:
    said = user.hivepipe("init", "--codex", "--no-probe")
    hooks = json.loads(hooks_file(user).read_text())["hooks"]
    assert {payload["hook_event_name"] for payload in CODEX} <= {*hooks}
    assert "PostToolUseFailure" not in hooks  # Codex has no such event
    assert all("args" not in group["hooks"][0] for groups in hooks.values() for group in groups)
    assert not (user.project / ".claude").exists()
    assert "trust the hooks" in said


def test_uninstall_leaves_the_hooks_of_others_byte_for_byte(user: User) -> None:
    path = hooks_file(user)
    path.parent.mkdir()
    theirs = '{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"true"}]}]},  "x": 1}'
    path.write_text(theirs)
    user.own(path.parent)
    user.hivepipe("init", "--codex", "--no-probe")
    assert "true" in path.read_text()
    user.hivepipe("uninstall")
    assert path.read_text() == theirs


def test_both_programs_can_be_recorded(user: User) -> None:
    user.hivepipe("init", "--no-probe")
    user.hivepipe("init", "--codex", "--no-probe")
    report = json.loads(user.do("hivepipe", "doctor", "--json").stdout)
    found = {finding["check"] for finding in report["findings"]}
    assert not found & {"hooks-twice", "hook-events", "hook-events-unknown"}
    user.hivepipe("uninstall")
    assert not hooks_file(user).exists()
    assert not (user.project / ".claude" / "settings.local.json").exists()


def test_git_leaves_the_file_out(user: User) -> None:
    user.git("init", "-q")
    user.hivepipe("init", "--codex", "--no-probe")
    assert ".codex" not in user.git("status", "--porcelain")


def test_one_of_the_scopes_is_asked_for(user: User) -> None:
    assert "one of" in user.hivepipe("init", "--codex", "--user", expect=64)


def test_a_file_that_is_no_json_is_left_alone(user: User) -> None:
    path = hooks_file(user)
    path.parent.mkdir()
    path.write_text("{")
    user.own(path.parent)
    said = user.hivepipe("init", "--codex", "--no-probe", expect=1)
    assert "nothing was changed" in said
    assert path.read_text() == "{"
