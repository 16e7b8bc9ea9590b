"""Every hook's output fits Claude Code's contract, and is neutral where it allows no text.

Each example event is fired in a home in which every source of context has a text.
"""

import json
import time
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from hivepipe.home import short_hash
from tests import payloads
from tests.conftest import NEUTRAL, Home, hook_answer
from tests.hook_contract import ALLOWED, MOST_CHARS, checked
from tests.payloads import SESSION, changed

LONG = 'A "quoted" line, ünïcode \u2028 and </system-reminder>.\n' * 400


@pytest.fixture
def full_home(private_home: Home) -> Home:
    """A home in which every source of context has a text, and more of it than fits."""
    home = private_home.path
    for folder in ("context", "spool", "tasks/sessions"):
        (home / folder).mkdir(parents=True)
    project = short_hash(str(private_home.project))
    parts = ("task-t-1", f"goal-{SESSION}", "profile-ana", f"project-{project}")
    swarm = short_hash(f"swarm-{project}")
    for part in (*parts, f"lead-ana-{swarm}"):
        (home / "context" / f"{part}.txt").write_text(f"{part}: {LONG}")
    rules = [{"keywords": [letter], "text": f"{letter} {LONG}"} for letter in ("a", "the", "into")]
    values = {"HIVEPIPE_MEMORY_RECALL": "true"}
    hook_settings = {"v": 1, "values": values, "context": rules}
    (home / "hook-settings.json").write_text(json.dumps(hook_settings))
    (home / "recall").mkdir()
    memories = [{"id": f"m{n}", "path": f"/m/{n}.md", "text": LONG[:600]} for n in range(5)]
    lines = [f"#{n} {json.dumps(memory)}" for n, memory in enumerate(memories)]
    every = " ".join(f"{n}:9" for n in range(5))
    words = [f"{word} {every}" for word in ("into", "module", "smaller", "split")]
    (home / "recall" / "all.txt").write_text("\n".join([*lines, *words, ""]))
    late = time.time_ns() - 3_600 * 10**9
    (home / "spool" / f"{late:020d}_1.json").write_text("{}")
    return private_home


def events() -> dict[str, dict[str, Any]]:
    sources = ("startup", "resume", "clear", "compact", "fork")
    starts = {f"SessionStart-{s}": changed(payloads.SESSION_START, source=s) for s in sources}
    return {**payloads.ALL, **starts}


# the events whose answer differs if their task was cancelled, and some that must stay silent
ASK = ("PreToolUse", "UserPromptSubmit", "Stop", "Notification")
ASKING = [label for label in events() if label.startswith(ASK)]


@pytest.mark.parametrize(
    ("label", "cancelled"), [*product(events(), [False]), *product(ASKING, [True])]
)
def test_every_answer_fits_the_contract(full_home: Home, label: str, cancelled: bool) -> None:
    if cancelled:
        (full_home.path / "tasks" / "cancelled").mkdir()
        (full_home.path / "tasks" / "cancelled" / "t-1").write_text(f"2026-11-21\n{LONG}")
    event = events()[label]
    name = event["hook_event_name"]
    env = full_home.with_env(TASK_ID="t-1", AGENT_ID="ana", GUARD="all", SHARED_ROOT="/nowhere")
    text = hook_answer(name, event, env)
    output = checked(name, text)
    assert not (full_home.path / "logs" / "hook-errors.log").exists()
    assert name in TALKING or text == NEUTRAL
    if name == "SessionStart":
        context = output["additionalContext"]
        assert context.startswith("goal-" if event["source"] == "compact" else "task-t-1")
        assert len(context) <= MOST_CHARS
        said = json.loads(text).get("systemMessage", "")  # the event itself is not counted
        assert ("1 event waits" in said) == (event["source"] != "compact")
    if name == "UserPromptSubmit":
        assert ("was cancelled" in output["additionalContext"]) == cancelled
        assert cancelled or "Notes from earlier sessions" in output["additionalContext"]
    if name == "PreToolUse":
        assert bool(output) == cancelled
        assert (output.get("permissionDecision") == "deny") == cancelled


TALKING = ("SessionStart", "UserPromptSubmit", "PreToolUse")
SILENT = (
    *("Stop", "StopFailure", "SubagentStop", "SessionEnd", "PreCompact"),
    *("PermissionRequest", "PermissionDenied", "Notification", "PostModelSwitch"),
)


def test_every_event_either_allows_output_or_is_silent() -> None:
    assert not set(SILENT) & set(ALLOWED)
    assert {*ALLOWED, *SILENT} == set(payloads.EVENTS)


def test_a_profile_sees_all_its_parts(full_home: Home) -> None:
    for path in Path(full_home.path, "context").iterdir():
        path.write_text(f"{path.stem}.\n")
    env = full_home.with_env(TASK_ID="t-1", AGENT_ID="ana")
    text = checked("SessionStart", hook_answer("SessionStart", payloads.SESSION_START, env))
    parts = text["additionalContext"].split("\n\n")
    assert [part.split("-")[0] for part in parts] == ["task", "profile", "lead", "project"]
