"""Parsing and writing of status.json, and what is derived from it, without any process."""

import json
from pathlib import Path

import pytest

from hivepipe.errors import HiveError
from hivepipe.orchestrator.projects import project_of
from hivepipe.orchestrator.prompts import DEFAULTS, prompt
from hivepipe.orchestrator.rights import rights_of
from hivepipe.orchestrator.status import parse, read_status, write_status

DONE = {"status": "done", "committed": True, "parked": True, "extra": [1, {"deep": None}]}
_PLACES = ("worker_folder", "learnings_folder", "project", "project_path")
WORDS = dict.fromkeys(("worker_id", "task", "rights", "commit", "committed", *_PLACES), "x")


def test_a_truncated_status_is_reported() -> None:
    whole = json.dumps(DONE).encode()
    for cut in range(1, len(whole)):
        status = parse(whole[:cut])
        assert status.problems, whole[:cut]
        assert status.word == ("done" if b'"done"' in whole[:cut] else ""), whole[:cut]


def test_a_complete_status_keeps_unknown_fields_and_no_time_of_tomorrow() -> None:
    future = parse(b'{"status": "working", "timestamp": "2999-01-01T00:00:00Z"}', 5)
    assert future.reported_ns == 5
    status = parse(json.dumps(DONE).encode())
    assert (status.word, status.problems) == ("done", ())
    assert status.fields["extra"] == [1, {"deep": None}]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"status": "done", "committed": True}, "done without having been parked"),
        ({"status": "done", "committed": False, "parked": True}, "done without a commit"),
        ({"status": "need_input"}, "need_input without `question`"),
        ({"status": "error"}, "error without `error`"),
        ({"status": "finished"}, "`status` is 'finished', not one of working"),
        ({"progress": "x"}, "status.json has no `status`"),
        ({"status": "working", "options": "a"}, "`options` is not a list"),
        ({"status": "working", "turn_count": "3"}, "`turn_count` is not a number"),
    ],
)
def test_an_invalid_field_is_reported(fields: dict[str, object], problem: str) -> None:
    assert any(found.startswith(problem) for found in parse(json.dumps(fields).encode()).problems)


def test_a_written_status_can_be_read_and_an_invalid_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    write_status(path, {**DONE, "status": "Done"})
    assert read_status(path).word == "done"
    before = path.read_bytes()
    for wrong in ({"status": "gone"}, {"status": "error", "error": 7}):
        with pytest.raises(HiveError):
            write_status(path, wrong)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["status.json"]


UUID = "0b6a3c1e-6f2b-4c55-9a3e-0d5d5f0f8a11"


@pytest.mark.parametrize(
    ("worker", "project"),
    [
        (f"project-a-{UUID}", "project-a"),
        (f"project-a-b-{UUID}", "project-a-b"),
        (f"unlisted-one-{UUID}", "unlisted-one"),
        ("project-a-abc123", "project-a"),
        ("project-a-b-abc123", "project-a-b"),
    ],
)
def test_projects_with_dashes_are_distinguished(worker: str, project: str) -> None:
    assert project_of(worker, {"project-a": "/a", "project-a-b": "/b", "project": "/c"}) == project


@pytest.mark.parametrize("name", DEFAULTS)
def test_built_in_templates_can_be_filled_and_a_broken_one_is_reported(
    name: str, tmp_path: Path
) -> None:
    assert "$" not in prompt(tmp_path, name, WORDS)
    (tmp_path / f"{name}.md").write_text("costs 5$ of $nothing")
    with pytest.raises(HiveError, match=f"{name}.md"):
        prompt(tmp_path, name, WORDS)


MALFORMED = [
    *(b"", b"null", b"[]", b"\xff\xfe", b"{" * 100_000, b"7"),
    # With these a backtracking regular expression would take hours.
    *(b"```" + b"\n" * 900_000, b"```json\n" * 100_000, b"```\n" + b" \n" * 400_000 + b"```x"),
]


@pytest.mark.parametrize("data", MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_data_has_no_word_and_a_problem(data: bytes) -> None:
    status = parse(data)
    assert status.word == ""
    assert status.problems


@pytest.mark.parametrize("block", ["```json\n{}\n```", "```\n{}```", "\n ```JSON  \n{}\n```\n\n"])
def test_a_code_block_around_the_object_is_accepted(block: str) -> None:
    status = parse(block.replace("{}", '{"status": "Need-Input", "question": "?"}').encode())
    assert (status.word, status.problems) == ("need_input", ())


@pytest.mark.parametrize(
    ("flags", "rights"),
    [
        ((), "edits"),
        (("--permission-mode", "acceptEdits"), "edits"),
        (("--permission-mode=bypassPermissions",), "all"),
        (("--dangerously-skip-permissions",), "all"),
        (("--allowedTools", "Bash(git status:*)", "Read"), "edits"),
        (("--allowedTools", "Bash(npm test)", "Bash(git commit:*)"), "commits"),
        (("--allowedTools", "Edit Bash(git *)"), "commits"),
        (("--allowedTools=Edit,Bash",), "commits"),
        (("--allowed-tools", "Bash(*)"), "commits"),
        (("--disallowedTools", "Bash(git commit:*)"), "edits"),
        (("--allowedTools", "BashOutput"), "edits"),
    ],
)
def test_the_rights_follow_from_the_flags(flags: tuple[str, ...], rights: str) -> None:
    assert rights_of(flags) == rights
