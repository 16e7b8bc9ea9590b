"""What Claude Code is told to run."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from hivepipe.install.claude_code import takes_exec_form
from hivepipe.install.hook_entries import (
    EVENTS,
    HINT,
    MARK,
    START,
    Event,
    Form,
    entry,
    plugin_hooks,
)

ROOT = Path(__file__).resolve().parents[2]


def test_every_executable_has_an_event_and_every_event_an_executable() -> None:
    assert {event.script for event in EVENTS} == {path.stem for path in ROOT.glob("hooks/*.py")}


@pytest.mark.parametrize("event", EVENTS)
def test_a_hook_starts_without_a_shell(event: Event) -> None:
    script = re.sub(r"(?<!^)([A-Z])", r"_\1", event.name).lower()
    made = entry(event, Form.EXEC, "/py", "/hooks")
    assert made.get("matcher") == ("*" if event.name in ("PreToolUse", "PostToolUse") else None)
    assert made["hooks"] == [
        {
            "type": "command",
            "command": "/py",
            "args": ["-I", "-S", "-c", START, f"/hooks/{script}.py", HINT],
            "timeout": 2 if event.name == "SessionEnd" else 5,
        }
    ]


def test_the_shell_form_survives_any_path() -> None:
    made = entry(EVENTS[0], Form.SHELL, "/my py/$x", "/it's; here")["hooks"][0]
    words = shlex.split(made["command"], comments=True)
    python, script = "/my py/$x", "/it's; here/session_start.py"
    tests = ["[", "-x", python, "]", "&&", "[", "-r", script, "]", "&&"]
    assert words == [*tests, "exec", python, "-I", "-S", script, "||", "exit", "0"]
    assert made["command"].endswith(HINT)


def run(handler: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """Run a handler as Claude Code does."""
    words = [handler["command"], *handler.get("args", [])]
    if "args" not in handler:
        words = ["sh", "-c", handler["command"]]
    env = {"PATH": "/usr/bin:/bin", "HIVEPIPE_DISABLED": "1"}
    return subprocess.run(words, input="{}", env=env, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("form", [Form.EXEC, Form.SHELL])
def test_a_hook_that_is_gone_blocks_nothing_and_says_nothing(form: Form, tmp_path: Path) -> None:
    hooks = tmp_path / "it's; here"
    handler = entry(EVENTS[3], form, sys.executable, str(hooks))["hooks"][0]
    done = run(handler)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    shutil.copytree(ROOT / "hooks", hooks / "hooks")
    handler = entry(EVENTS[3], form, sys.executable, str(hooks / "hooks"))["hooks"][0]
    done = run(handler)
    assert (done.returncode, done.stdout, done.stderr) == (0, '{"continue": true}\n', "")


@pytest.mark.parametrize("form", [Form.EXEC, Form.SHELL])
def test_every_entry_runs_its_hook(form: Form) -> None:
    for event in EVENTS:
        done = run(entry(event, form, sys.executable, str(ROOT / "hooks"))["hooks"][0])
        assert (done.returncode, done.stdout, done.stderr) == (0, '{"continue": true}\n', "")


def test_an_interpreter_that_is_gone_is_silent_behind_a_shell() -> None:
    done = run(entry(EVENTS[3], Form.SHELL, "/no py", str(ROOT / "hooks"))["hooks"][0])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_shared_form_names_no_path() -> None:
    made = entry(EVENTS[0], Form.SHARED, "/py", "/hooks")["hooks"][0]
    assert made["command"] == (
        f'h=$(command -v hivepipe-hook) && exec "$h" session_start; exit 0 {MARK}'
    )


def test_claude_code_takes_arguments_from_2_1_139_on() -> None:
    assert [takes_exec_form(v) for v in ((2, 1, 138), (2, 1, 139), (2, 2, 0), (3, 0, 0), None)] == [
        False,
        True,
        True,
        True,
        True,
    ]
    assert not takes_exec_form((1, 9, 999))


def test_the_script_of_the_shared_form_is_executable_as_a_wheel_takes_it_over() -> None:
    assert os.access(ROOT / "hivepipe" / "cli" / "hook.sh", os.X_OK)


# ---- the plugin


def test_the_plugin_has_the_hooks_of_the_same_table() -> None:
    """`python -c 'import json; from hivepipe.install.hook_entries import plugin_hooks; ...'`."""
    text = (ROOT / "hooks" / "hooks.json").read_text()
    assert text == json.dumps(plugin_hooks(), indent=2) + "\n"


def test_the_plugin_is_of_the_version_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    manifest = json.loads((ROOT / ".claude-plugin" / "plugin.json").read_text())
    assert manifest["version"] == project["version"]
    assert "hooks" not in manifest  # hooks/hooks.json is found by itself; named too, it is an error


def test_the_repository_is_its_own_marketplace() -> None:
    manifest = json.loads((ROOT / ".claude-plugin" / "plugin.json").read_text())
    market = json.loads((ROOT / ".claude-plugin" / "marketplace.json").read_text())
    (offered,) = market["plugins"]
    assert (market["name"], offered["name"], manifest["name"]) == ("hivepipe",) * 3
    assert (ROOT / offered["source"] / ".claude-plugin" / "plugin.json").exists()
    assert market["owner"]["name"]
