"""Sessions without hooks are archived by the sweep and are listed like others."""

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from tests.archive_scene import AGENT, SESSION, line
from tests.conftest import Home
from tests.integration.test_cli_listings import command

WORKFLOW = "wf_0215faa2-2b8"


@pytest.fixture
def folder(private_home: Home) -> Path:
    """Claude's folder of the project with a session, a subagent and a workflow's journal."""
    command(private_home, "init", "--local", "--no-probe")
    folder = private_home.root / ".claude" / "projects" / "-shop"
    beside = folder / SESSION / "subagents"
    (beside / "workflows" / WORKFLOW).mkdir(parents=True)
    cwd = str(private_home.project)
    call = {"type": "tool_use", "id": "toolu_1", "name": "Task"}
    call["input"] = {"subagent_type": "Explore", "prompt": "look"}  # type: ignore[assignment]
    asked = json.loads(line(1, cwd=cwd))
    asked["message"]["content"].append(call)
    answered_call = {
        **json.loads(line(2, cwd=cwd)),
        "type": "user",
        "message": {"content": [{"type": "tool_result", "tool_use_id": "toolu_1"}]},
        "toolUseResult": {"agentId": AGENT},
    }
    (folder / f"{SESSION}.jsonl").write_bytes(
        json.dumps(asked).encode() + b"\n" + json.dumps(answered_call).encode() + b"\n"
    )
    (beside / f"agent-{AGENT}.jsonl").write_bytes(line(3, "found it", cwd=cwd, agentId=AGENT))
    journal = {"type": "result", "key": "k", "agentId": AGENT, "result": "verdict: journal-only"}
    (beside / "workflows" / WORKFLOW / "journal.jsonl").write_text(json.dumps(journal) + "\n")
    an_hour_ago = time.time() - 7200
    for path in folder.rglob("*.jsonl"):
        os.utime(path, (an_hour_ago, an_hour_ago))
    return folder


def archives(home: Home) -> dict[str, dict[str, Any]]:
    listed = json.loads(command(home, "archive", "list", "--agents", "--json"))["archives"]
    return {each["agent_id"] or each["session_id"]: each for each in listed}


def test_swept_subagents_have_a_type_and_journals_are_archived(
    private_home: Home, folder: Path
) -> None:
    report = json.loads(command(private_home, "archive", "sweep", "--json"))
    assert (report["taken"], report["foreign"]) == (3, 0)
    found = archives(private_home)
    assert found[AGENT]["agent_type"] == "Explore"
    assert found[WORKFLOW]["agent_type"] == "workflow"
    assert "journal-only" in command(private_home, "archive", "show", WORKFLOW, "--lines")
    again = json.loads(command(private_home, "archive", "sweep", "--json"))
    assert (again["taken"], again["unchanged"], again["foreign"]) == (0, 3, 0)


def test_expired_transcripts_are_reported(private_home: Home, folder: Path) -> None:
    long_ago = time.time() - 366 * 86_400
    os.utime(folder / f"{SESSION}.jsonl", (long_ago, long_ago))
    assert json.loads(command(private_home, "archive", "sweep", "--json"))["expired"] == 1
    assert "1 transcript is older than the retention of archives: not archived" in command(
        private_home, "archive", "sweep"
    )


def test_every_command_accepts_a_swept_session(private_home: Home, folder: Path) -> None:
    command(private_home, "archive", "sweep")
    shown = command(private_home, "session", "show", SESSION[:8])
    assert shown.startswith(SESSION)
    assert "archived" in shown
    assert "1 message, 1 tool call" in shown
    assert json.loads(command(private_home, "session", "show", "last", "--json"))["id"] == SESSION
    assert "from metadata" in command(private_home, "summaries", "run", SESSION[:8])
    assert SESSION in command(private_home, "summaries", "show", SESSION[:8])
    (cost,) = json.loads(command(private_home, "costs", "--by", "session", "--json"))["costs"]
    assert cost["session"] == SESSION
    assert f'"{SESSION}"' in command(private_home, "export", "--jsonl", "--session", SESSION[:4])
    assert "no session has the id 00" in command(private_home, "session", "show", "00", expect=1)


def test_transcripts_of_a_deleted_folder_are_archived(private_home: Home, folder: Path) -> None:
    gone = private_home.root / "worktree"
    gone.mkdir()
    other = "ffffffff-0000-4000-8000-000000000000"
    path = folder / f"{other}.jsonl"
    path.write_bytes(line(1, "in a worktree", sessionId=other, cwd=str(gone)))
    shutil.rmtree(gone)
    command(private_home, "archive", "sweep")
    assert other not in archives(private_home)
    command(private_home, "archive", "follow", str(gone))
    command(private_home, "archive", "sweep")
    assert other in archives(private_home)
