"""`hivepipe init --codex` registers the hooks of Codex CLI for a project."""

import json
from pathlib import Path

from tests.host_payloads import CODEX
from tests.installed import User


def hooks_file(user: User) -> Path:
    return user.project / ".codex" / "hooks.json"


def with_hooks_file(user: User, text: str) -> Path:
    path = hooks_file(user)
    path.parent.mkdir()
    path.write_text(text)
    user.own(path.parent)
    return path


def test_codex_gets_only_hooks_of_events_that_it_has(user: User) -> None:
    assert "exclude each other" in user.hivepipe("init", "--codex", "--user", expect=64)
    user.git("init", "-q")
    output = user.hivepipe("init", "--codex", "--no-probe")
    hooks = json.loads(hooks_file(user).read_text())["hooks"]
    assert {payload["hook_event_name"] for payload in CODEX} <= {*hooks}
    assert "PostToolUseFailure" not in hooks  # Codex has no such event
    assert all("args" not in group["hooks"][0] for groups in hooks.values() for group in groups)
    assert not (user.project / ".claude").exists()
    assert "trust the hooks" in output
    assert ".codex" not in user.git("status", "--porcelain")


def test_uninstall_leaves_the_hooks_of_others_byte_for_byte(user: User) -> None:
    theirs = '{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"true"}]}]},  "x": 1}'
    path = with_hooks_file(user, theirs)
    user.hivepipe("init", "--codex", "--no-probe")
    assert "true" in path.read_text()
    user.hivepipe("uninstall")
    assert path.read_text() == theirs


def test_claude_code_and_codex_can_be_recorded_together(user: User) -> None:
    user.hivepipe("init", "--no-probe")
    user.hivepipe("init", "--codex", "--no-probe")
    report = json.loads(user.do("hivepipe", "doctor", "--json").stdout)
    found = {finding["check"] for finding in report["findings"]}
    assert not found & {"hooks-twice", "hook-events", "hook-events-unknown"}
    user.hivepipe("uninstall")
    assert not hooks_file(user).exists()
    assert not (user.project / ".claude" / "settings.local.json").exists()


def test_an_invalid_hooks_file_is_not_changed(user: User) -> None:
    path = with_hooks_file(user, "{")
    output = user.hivepipe("init", "--codex", "--no-probe", expect=1)
    assert "nothing was changed" in output
    assert path.read_text() == "{"
