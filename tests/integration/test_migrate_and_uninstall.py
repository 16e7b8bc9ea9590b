"""A predecessor's project through `migrate`, a day of work, and `uninstall --purge`.

At the end all old files are the same bytes as before, and every row was imported once.
"""

import json
import sqlite3
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.conftest import until
from tests.installed import User
from tests.old_project import SESSION, OldProject, states

ASIDE = ".hive-mind.before-hivepipe"
OLD_ROWS = {"swarms": 1, "sessions": 1, "agents": 5, "instance_sessions": 1, "session_logs": 2}


def rows(user: User, sql: str) -> list[Any]:
    with closing(sqlite3.connect(user.recorded / "hive.db")) as db:
        return db.execute(sql).fetchall()


def old_rows(user: User) -> dict[str, int]:
    """Count the rows that came from the predecessor."""
    found = {
        "swarms": "id = 'swarm-1'",
        "sessions": f"id = '{SESSION}'",
        "agents": f"session_id = '{SESSION}'",
        "instance_sessions": f"session_id = '{SESSION}'",
        "session_logs": f"session_id = '{SESSION}'",
    }
    return {
        table: rows(user, f"SELECT count(*) FROM {table} WHERE {which}")[0][0]
        for table, which in found.items()
    }


def fire_events_of_a_day(user: User) -> None:
    """Fire the events of a session with a prompt, an edit, a skill and an agent."""
    transcript = user.home / ".claude" / "projects" / "shop" / "s1.jsonl"
    transcript.parent.mkdir(parents=True, exist_ok=True)
    message = {"type": "user", "sessionId": "s1", "message": {"role": "user", "content": "neword"}}
    transcript.write_text(json.dumps({**message, "uuid": str(uuid.uuid4())}) + "\n")
    user.own(user.home / ".claude")
    at = {"transcript_path": str(transcript)}
    user.fire("SessionStart", source="startup", **at)
    user.fire("UserPromptSubmit", prompt="build the shop", prompt_id="p1", **at)
    for number, (tool, given) in enumerate(
        (
            ("Edit", {"file_path": "/a.py"}),
            ("Skill", {"skill": "systematic-debugging", "args": "again"}),
            ("Agent", {"subagent_type": "Explore", "description": "look", "prompt": "look"}),
        )
    ):
        call = {"tool_name": tool, "tool_use_id": f"t{number}", "tool_input": given}
        user.fire("PreToolUse", **call, **at)
        user.fire("PostToolUse", **call, tool_response={"agentId": "a1"}, **at)
    user.fire("Stop", stop_hook_active=False, **at)
    user.fire("SessionEnd", reason="other", **at)


def test_a_project_is_migrated_used_and_restored(user: User) -> None:
    old = OldProject(user.project).whole("claude-flow")
    user.own(user.project)
    before = states(user.project)
    home = states(old.home)
    user.hivepipe("migrate", "--yes")
    assert old_rows(user) == OLD_ROWS
    assert user.hivepipe("search", "oldword").count("oldword") == 1
    assert "42" in user.hivepipe("skills")
    user.hivepipe("up", "-d")
    fire_events_of_a_day(user)
    until(
        lambda: rows(user, "SELECT 1 FROM sessions WHERE id = 's1' AND status = 'ended'"),
        "the day's session was not recorded",
    )
    until(
        lambda: rows(user, "SELECT 1 FROM skill_uses WHERE session_id = 's1'"),
        "the day's skill was not recorded",
    )
    until(lambda: "neword" in user.do("hivepipe", "search", "neword").stdout, "not archived")
    assert "nothing new" in user.hivepipe("migrate", "--yes")
    assert old_rows(user) == OLD_ROWS
    assert user.hivepipe("search", "oldword").count("oldword") == 1
    assert states(user.project / ASIDE) == home
    user.hivepipe("uninstall", "--purge", "--yes")
    assert states(user.project) == before
    assert user.processes() == []
    assert [*Path(user.home, ".local").rglob("*")] == []
