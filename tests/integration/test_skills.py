"""Each use of a skill counts once, whether by the user or Claude, successful or not."""

import json
from typing import Any

import pytest

from hivepipe.db.database import Database
from hivepipe.db.listings import listings
from hivepipe.db.skills import skill_uses
from tests.conftest import Home

Use = tuple[str, str, str, str, bool]  # skill, kind, session, prompt, success


def add_uses(home: Home, *rows: Use) -> None:
    home.path.mkdir(mode=0o700, exist_ok=True)
    db = Database(home.database)
    sql = """
        INSERT INTO skill_uses
          (skill, kind, session_id, prompt_id, success, arguments, created_at, job_id)
        VALUES (:skill, :kind, :session, :prompt, :success, :arguments, :time, :job)
    """
    before = db.rows("SELECT COUNT(*) AS n FROM skill_uses")[0]["n"]
    for number, (skill, kind, session, prompt, success) in enumerate(rows, before):
        values = {"skill": skill, "kind": kind, "session": session, "prompt": prompt or None}
        time = f"2026-11-20T23:{number:02d}:00.000Z"
        more = {"success": success, "arguments": "v3", "time": time, "job": f"job{number}"}
        db.execute(sql, {**values, **more})
    db.close()


def found(home: Home) -> list[tuple[str, bool, bool]]:
    with listings(home.database) as store:
        return [(use.skill, use.success, use.is_skill) for use in skill_uses(store)]


def test_a_typed_command_counts_as_a_skill_if_claude_calls_one_of_its_name(
    private_home: Home,
) -> None:
    """The call may be earlier or later; a name that is never called as a skill is a command."""
    add_uses(private_home, ("deploy", "command", "s1", "", True))
    assert found(private_home) == [("deploy", True, False)]
    add_uses(
        private_home, ("deploy", "tool", "s2", "", False), ("deploy", "command", "s3", "", True)
    )
    assert found(private_home) == [
        ("deploy", True, True),
        ("deploy", False, True),
        ("deploy", True, True),
    ]


def test_a_plugins_command_is_a_skill(private_home: Home) -> None:
    add_uses(private_home, ("acme:notes", "command", "s1", "", True))
    assert found(private_home) == [("acme:notes", True, True)]


def test_a_command_in_a_folder_of_the_project_is_no_skill(private_home: Home) -> None:
    add_uses(private_home, ("deep:notes", "own_command", "s1", "", True))
    assert found(private_home) == [("deep:notes", True, False)]


def test_a_command_and_a_call_in_one_prompt_count_once(private_home: Home) -> None:
    """The outcome is that of the call. Without the prompt's id both entries count."""
    add_uses(
        private_home,
        ("x", "command", "s1", "p1", True),
        ("x", "tool", "s1", "p1", False),
        ("x", "command", "s1", "p2", True),
        ("x", "tool", "s2", "p2", True),
        ("y", "command", "s1", "", True),
        ("y", "tool", "s1", "", True),
    )
    assert found(private_home) == [
        ("x", False, True),
        ("x", True, True),
        ("x", True, True),
        ("y", True, True),
        ("y", True, True),
    ]


def command(home: Home, *arguments: str, expect: int = 0) -> str:
    return home.command("skills", *arguments, expect=expect, TZ="Asia/Kathmandu")


def listed(home: Home, kind: str, *arguments: str) -> list[dict[str, Any]]:
    content = json.loads(command(home, "--json", *arguments))
    assert content["schema"] == 1
    return list(content[kind])


@pytest.fixture
def used(private_home: Home) -> Home:
    add_uses(
        private_home,
        ("once", "tool", "s1", "", True),
        ("often", "tool", "s1", "", True),
        ("often", "tool", "s2", "", False),
        ("often", "tool", "s2", "", True),
        ("plan", "command", "s1", "", True),
    )
    return private_home


def test_skills_are_listed_with_their_failures(used: Home) -> None:
    first, second = listed(used, "skills")
    assert first == {
        "name": "often",
        "count": 3,
        "failures": 1,
        "success_rate": 0.6667,
        "session_count": 2,
        "last_used": "2026-11-20T23:03:00.000Z",
        "daily": {"2026-11-21": 3},  # in Kathmandu
    }
    assert (second["name"], second["failures"]) == ("once", 0)
    assert listed(used, "skills", "--utc")[0]["daily"] == {"2026-11-20": 3}
    shown = command(used)
    assert "66.7%" in shown
    assert "2026-11-21 04:48:00" in shown
    assert "2026-11-20 23:03:00Z" in command(used, "--utc")


def test_commands_without_a_skill_are_listed_separately(used: Home) -> None:
    (entry,) = listed(used, "commands", "--commands")
    assert (entry["name"], entry["count"]) == ("plan", 1)
    assert "plan" not in command(used)
    assert "often" not in command(used, "--commands")


def test_without_a_database_nothing_is_recorded(private_home: Home) -> None:
    assert "nothing is recorded yet" in command(private_home, expect=1)


def test_a_home_without_skills_names_the_list_of_typed_commands(private_home: Home) -> None:
    add_uses(private_home, ("greet", "command", "s1", "", True))
    assert command(private_home) == "none; --commands lists typed commands\n"
    assert "greet" in command(private_home, "--commands")
