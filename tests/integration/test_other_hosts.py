"""Codex and other programs: their hooks, and sessions with the name of the program."""

import json
from pathlib import Path

from tests.conftest import Home, Server, Writer, fire_all, is_drained, until
from tests.host_payloads import CODEX, COPILOT
from tests.installed import User
from tests.payloads import SESSION, SESSION_START


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


def test_a_session_is_shown_with_the_name_of_its_host(
    private_home: Home, redis_server: Server, writer: Writer
) -> None:
    fire_all([SESSION_START, *CODEX, *COPILOT], private_home.env)
    writer.start()
    until(lambda: is_drained(private_home, redis_server, writer), "not drained")
    shown = json.loads(private_home.command("sessions", "--all", "--json"))["sessions"]
    clients = {each["id"]: each["client"] for each in shown}
    codex, copilot = CODEX[0]["session_id"], COPILOT[0]["session_id"]
    assert clients == {SESSION: "claude-code", codex: "codex", copilot: "copilot"}
    by_id = {each["id"]: each for each in shown}
    assert by_id[codex]["status"] == "ended"
    assert by_id[codex]["model"] == "gpt-5.5"
    assert by_id[copilot]["failed"] == 1
    assert "copilot" in private_home.command("sessions", "--all")
    assert "codex" in private_home.command("session", "show", codex)
    assert "claude-code" not in private_home.command("session", "show", SESSION)
