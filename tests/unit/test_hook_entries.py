"""What Claude Code is told to run."""

import os
import re
import shlex
from pathlib import Path

import pytest

from hivepipe.install.claude_code import takes_exec_form
from hivepipe.install.hook_entries import EVENTS, HINT, MARK, Event, Form, entry

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
            "args": ["-I", "-S", f"/hooks/{script}.py", HINT],
            "timeout": 2 if event.name == "SessionEnd" else 5,
        }
    ]


def test_the_shell_form_survives_any_path() -> None:
    made = entry(EVENTS[0], Form.SHELL, "/my py/$x", "/it's; here")["hooks"][0]
    words = shlex.split(made["command"], comments=True)
    assert words == ["/my py/$x", "-I", "-S", "/it's; here/session_start.py"]
    assert made["command"].endswith(HINT)


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
