"""No part of a briefing exceeds its maximum length, and each named part is a file."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hivepipe.agents.briefing import words
from hivepipe.agents.briefing.words import Notes
from hivepipe.db.database import Database
from hivepipe.operations.briefing_files import BriefingFiles
from tests import payloads

TIME = "2026-11-21T09:10:00.000Z"
texts = st.text(max_size=5_000) | st.just("x" * 20_000)


def task(text: str, progress: str = "") -> dict[str, Any]:
    return {"id": "t-1", "text": text, "progress": progress, "progress_at": TIME}


@settings(max_examples=20)
@given(texts, texts, texts)
def test_no_part_exceeds_its_maximum(text: str, progress: str, prompt: str) -> None:
    last = {"id": "s-1", "objective": text[:100], "ended_at": TIME, "prompt": prompt, "summary": ""}
    session = {
        "id": "5e551011", "profile": "", "condition": "active", "last_active_at": TIME,
        "task_id": "t-1", "text": text, "progress": progress, "objective": prompt,
    }  # fmt: skip
    agent = {"type": text[:200], "status": "spawned", "name": prompt[:100]}
    assert len(words.task_part(task(text, progress))) <= words.MOST_TASK_CHARS
    assert len(words.goal_part(task(text, progress), prompt)) <= words.MOST_GOAL_CHARS
    notes = [Notes("preferences.md", text), Notes("progress.md", progress)]
    assert len(words.notes_part(notes)) <= words.MOST_NOTES_CHARS
    assert len(words.left_part(task(text, progress))) <= words.MOST_TASK_CHARS
    for summary in ("", text):
        assert len(words.last_part({**last, "summary": summary})) <= words.MOST_LAST_CHARS
    assert len(words.lead_part([session] * 40, [agent] * 40)) <= words.MOST_LEAD_CHARS


def test_the_goal_is_the_task_its_progress_and_the_last_prompt() -> None:
    text = words.goal_part(task("Split checkout.py", "two of three"), "Now the\nthird")
    assert "t-1:\n> Split checkout.py" in text
    assert "(2026-11-21 09:10 UTC):\n> two of three" in text
    assert "> Now the\n> third" in text
    assert words.goal_part(None, "") == ""


def test_a_long_paste_does_not_hide_the_words_after_it() -> None:
    prompt = f"{payloads.pasted('a log ' * 200)}Fix the numbat"
    assert words.goal_part(None, prompt).endswith("> Fix the numbat")


@pytest.mark.parametrize(
    ("type", "name", "expected"),
    [
        ("Explore", None, "- Explore (running)"),
        ("Explore", "Map", "- Explore (running)\n  > Map"),
        (None, None, "- agent (running)"),
    ],
)
def test_a_lead_briefing_shows_the_type_and_name_of_an_agent(
    type: str | None, name: str | None, expected: str
) -> None:
    """An agent that is known from SubagentStart alone has only a type."""
    agent = {"type": type, "status": "running", "name": name}
    assert words.lead_part([], [agent]).split("\n\n")[0].endswith(f":\n{expected}")


def test_a_lead_briefing_lists_lost_sessions_last() -> None:
    def session(number: int, condition: str) -> dict[str, Any]:
        task = {"task_id": f"t-{number}", "text": "x" * 90, "objective": ""}
        seen = {"id": f"s-{number}", "profile": f"p-{number}", "last_active_at": TIME}
        return {**seen, **task, "condition": condition}

    agent = {"type": "Explore", "status": "spawned", "name": "Map callers"}
    many = [session(number, "lost" if number % 2 else "active") for number in range(60)]
    text = words.lead_part(many, [agent])
    work, agents, advice, lost = text.split("\n\n")
    assert work.startswith("Open sessions of this swarm:\n- p-0 (active")
    assert "lost" not in work
    assert "- and " in work
    assert "Map callers" in agents
    assert "duplicate their work" in advice
    assert lost.startswith(
        "Lost sessions (their process has ended, or they show no activity):\n- p-1 (lost"
    )
    shown = sum(line.startswith("- p-") for line in work.splitlines())
    assert f"- and {30 - shown} more" in work
    assert words.lead_part([], []) == ""
    alone = words.lead_part([session(1, "lost")], [])
    assert "duplicate their work" not in alone


@pytest.mark.parametrize("id", ["shop/42", "../../x", "a\0b", "x" * 300])
def test_an_id_that_is_no_file_name_leaves_the_other_parts(
    tmp_path: Path, db: Database, id: str
) -> None:
    for task in (id, "mine"):
        db.execute(
            "INSERT INTO tasks (id, text, status, updated_at) VALUES (:id, 'Mend it', 'open', "
            "'2026-11-26T10:00:00.000Z')",
            {"id": task},
        )
    BriefingFiles(str(tmp_path)).write(tmp_path / "hive.db")
    assert [path.name for path in (tmp_path / "context").glob("task-*")] == ["task-mine.txt"]
