"""The status line below Claude Code's prompt, for any input and any file of the stack."""

import json
import subprocess
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hivepipe.hook.status_line import FILE, line
from hivepipe.stack import hook_copy
from tests.conftest import Home
from tests.outcome import outcome_of

INPUT = {"session_id": "s1", "cost": {"total_cost_usd": 1.234}}


@pytest.fixture
def home(private_home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    private_home.use_environment(monkeypatch)
    private_home.path.mkdir(mode=0o700, exist_ok=True)
    return private_home


def shown(home: Home, fields: dict[str, Any], **kept: Any) -> str:
    """Return the line. `kept` holds the values of the stack's file."""
    if kept:
        (home.path / FILE).write_text(
            json.dumps({"v": 1, "day": time.strftime("%Y-%m-%d"), **kept})
        )
    return line(json.dumps({"cwd": str(home.project), **fields}).encode())


def test_the_line_with_all_parts(home: Home) -> None:
    session = {"usd": 9, "tokens": 50_000, "window": 200_000, "cache_until": time.time() + 100}
    others = {"s2": {"waits": True}, "s3": {"waits": False}, "s4": {"waits": True}}
    found = shown(home, INPUT, today_usd=4.5, alerts=1, sessions={"s1": session, **others})
    assert found.startswith("$1.23 session · $4.50 today · 25 % context · cache 1:")
    assert found.endswith(" · 2 sessions wait · 1 alert: hivepipe status\n")


def test_values_of_claude_code_take_precedence(home: Home) -> None:
    session = {"usd": 9, "tokens": 50_000, "window": 200_000, "waits": True}
    fields = INPUT | {"context_window": {"used_percentage": 41.6}}
    assert shown(home, fields, sessions={"s1": session}) == "$1.23 session · 42 % context\n"
    assert shown(home, {"session_id": "s1"}) == "$9.00 session · 25 % context\n"


def test_parts_without_a_value_are_left_out(home: Home) -> None:
    assert shown(home, INPUT) == "$1.23 session\n"
    assert shown(home, {}) == ""
    # The costs of another day are not today's.
    assert shown(home, INPUT, day="2026-01-01", today_usd=4.5) == "$1.23 session\n"
    expired = {"s1": {"cache_until": 5}}
    assert shown(home, {"session_id": "s1"}, sessions=expired) == "cache over\n"
    (home.path / FILE).unlink()
    home.path.rmdir()
    assert shown(home, INPUT) == ""


_NAMES = st.sampled_from(
    ["session_id", "cost", "total_cost_usd", "context_window", "used_percentage", "workspace",
     "project_dir", "sessions", "s1", "usd", "tokens", "window", "cache_until", "waits", "alerts",
     "today_usd"]
)  # fmt: skip
_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=12,
)


@given(fields=_JSON, kept=_JSON)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=75)
def test_any_values_give_one_line_of_plain_text(home: Home, fields: Any, kept: Any) -> None:
    (home.path / FILE).write_text(json.dumps(kept))
    found = line(json.dumps(fields).encode())
    assert found.count("\n") <= 1
    assert found.removesuffix("\n").isprintable()


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b"null", b"[1]", b"{" * 100_000])
def test_malformed_input_gives_an_empty_line(home: Home, data: bytes) -> None:
    (home.path / FILE).write_bytes(data)
    assert line(data) == ""


def test_the_output_of_the_previous_command_is_printed_first(home: Home) -> None:
    hook_copy.write()
    fields = json.dumps({"cwd": str(home.project), **INPUT, "long": "x" * 200_000})

    def run(*words: str) -> str:
        return outcome_of(
            [hook_copy.launcher(), "statusline", *words], home.env, input=fields, check=True
        ).stdout

    assert run() == "$1.23 session\n"
    assert run("wc -c | tr -d ' \\n'; echo a line") == f"{len(fields)}a line\n$1.23 session\n"
    assert run("printf half") == "half\n$1.23 session\n", (
        "a command may ignore its input and leave its line open"
    )
    assert run("exit 3", "elsewhere") == "$1.23 session\n"


@pytest.mark.parametrize("folder", ["/\ud800", "/" + "a/" * 50_000])
def test_a_folder_that_cannot_exist_takes_no_time(home: Home, folder: str) -> None:
    began = time.thread_time()
    assert shown(home, {**INPUT, "cwd": folder}) in ("", "$1.23 session\n")
    assert time.thread_time() - began < 1


def test_the_previous_command_runs_in_a_deleted_folder(home: Home) -> None:
    hook_copy.write()
    gone = home.root / "gone"
    gone.mkdir()
    shown = subprocess.run(
        ["sh", "-c", 'rmdir "$PWD" && exec "$0" statusline "echo mine"', hook_copy.launcher()],
        input=b"", env=home.env, cwd=gone, check=True, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert shown.stdout == b"mine\n"
