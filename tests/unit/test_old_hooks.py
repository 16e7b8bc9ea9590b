"""The predecessor's hooks are recognized by name and content. The user decides on doubtful ones."""

import itertools
import json
from pathlib import Path

import pytest

from hivepipe.install.hook_entries import EVENTS, Form, entry
from hivepipe.migration.hooks import find_hooks, verdict, with_restored_hooks, without_old
from hivepipe.migration.scripts import Verdict, judge
from tests.old_project import LOCAL_SETTINGS, SHARED_SETTINGS, OldProject

OLD, DOUBTFUL, OTHER = Verdict.OLD, Verdict.DOUBTFUL, Verdict.OTHER


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OldProject:
    monkeypatch.chdir(tmp_path)
    project = OldProject(tmp_path)
    project.hooks()
    return project


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (".claude/hooks/auto-checkpoint.sh", OLD),
        ("./.claude/hooks/auto-checkpoint.sh", OLD),
        ("bash .claude/hooks/auto-checkpoint.sh", OLD),
        ("/bin/bash -e .claude/hooks/auto-checkpoint.sh post", OLD),
        ("bash -c '.claude/hooks/auto-checkpoint.sh'", OLD),
        ('"$CLAUDE_PROJECT_DIR"/.claude/hooks/auto-checkpoint.sh', OLD),
        ("${CLAUDE_PROJECT_DIR}/.claude/hooks/auto-checkpoint.sh >/dev/null 2>&1", OLD),
        ("$(git rev-parse --show-toplevel)/.claude/hooks/auto-checkpoint.sh", OLD),
        ("cd $CLAUDE_PROJECT_DIR && .claude/hooks/auto-checkpoint.sh || true", OLD),
        ("cat | .claude/hooks/task-agent-tracker.sh 2>/dev/null; exit 0", OLD),
        ("USE_QUEUE=true .claude/hooks/task-agent-tracker.sh", OLD),
        ("[ -x .claude/hooks/stop ] && .claude/hooks/stop", OLD),
        ("python3 .claude/hooks/stop", OLD),
        # Run by something else.
        ("timeout 5 .claude/hooks/auto-checkpoint.sh", OLD),
        ("timeout -k 2 -s KILL 5s bash .claude/hooks/auto-checkpoint.sh", OLD),
        ("nohup .claude/hooks/auto-checkpoint.sh >/dev/null 2>&1 &", OLD),
        ("setsid nice -n 19 bash .claude/hooks/auto-checkpoint.sh", OLD),
        ("time .claude/hooks/auto-checkpoint.sh", OLD),
        ("bash -o pipefail -e .claude/hooks/auto-checkpoint.sh", OLD),
        ("source .claude/hooks/auto-checkpoint.sh", OLD),
        (". .claude/hooks/auto-checkpoint.sh", OLD),
        ("eval .claude/hooks/auto-checkpoint.sh", OLD),
        ("/usr/bin/python3.11 -u .claude/hooks/stop", OLD),
        ("uv run --with rich .claude/hooks/stop", OLD),
        ("timeout 5 bash -lc '.claude/hooks/auto-checkpoint.sh'", OLD),
        ("if [ -f x ]; then .claude/hooks/auto-checkpoint.sh; else true; fi", OLD),
        ("{ ! .claude/hooks/auto-checkpoint.sh; }", OLD),
        ("sudo -u me .claude/hooks/auto-checkpoint.sh", DOUBTFUL),
        ("mine/run .claude/hooks/auto-checkpoint.sh", DOUBTFUL),
        ("timeout 5 npm run lint", OTHER),
        ("if true; then npm run lint; fi", OTHER),
        ("timeout 5", OTHER),
        ("uv", OTHER),
        ("bash", OTHER),
        ("echo .claude/hooks/auto-checkpoint.sh", OTHER),
        # A command of the user in the same line.
        (".claude/hooks/auto-checkpoint.sh && npm run lint", DOUBTFUL),
        ("npm run lint; .claude/hooks/auto-checkpoint.sh", DOUBTFUL),
        (".claude/hooks/auto-checkpoint.sh > notes.txt", DOUBTFUL),
        # Commands that write to the predecessor's database.
        ("sqlite3 .hive-mind/hive.db 'DELETE FROM agents'", DOUBTFUL),
        ("mine/tracker.sh", DOUBTFUL),
        # Files of a known name that are missing or have nothing of the predecessor.
        ("old/auto-checkpoint.sh", DOUBTFUL),
        ("mine/session-start.sh", OTHER),
        ("mine/stop", OTHER),
        ("mine/stop.py", OTHER),
        ("npm run lint", OTHER),
        ("echo .hive-mind", OTHER),
        ("echo 'not closed", OTHER),
        ("", OTHER),
        ("mine/../../../../../dev/zero", OTHER),
    ],
)
def test_a_command_is_judged_by_name_and_content(
    old: OldProject, command: str, expected: Verdict
) -> None:
    old.write("mine/session-start.sh", "#!/bin/bash\necho hello\n")
    old.write("mine/stop", "#!/bin/bash\nsay done\n")
    old.write("mine/stop.py", "print('done')\n")
    old.write("mine/tracker.sh", "sqlite3 .hive-mind/hive.db 'INSERT ...'\n")
    assert judge({"type": "command", "command": command}, str(old.folder)) is expected


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        ({"command": "bash", "args": [".claude/hooks/auto-checkpoint.sh"]}, OLD),
        *((it, OTHER) for it in (None, "x", [], {}, {"command": 5}, {"type": "prompt"})),
    ],
)
def test_a_handler_is_judged_by_its_arguments_too(
    old: OldProject, handler: object, expected: Verdict
) -> None:
    assert judge(handler, str(old.folder)) is expected


def test_our_own_hooks_are_not_old_ones(old: OldProject) -> None:
    for event, form in itertools.product(EVENTS, Form):
        made = entry(event, form, "/x/hivepipe/hooks/0123456789abcdef/hook")
        assert verdict(made["hooks"][0], str(old.folder)) is OTHER


@pytest.mark.parametrize("text", [SHARED_SETTINGS, LOCAL_SETTINGS])
def test_only_the_old_hooks_are_removed_and_restored(old: OldProject, text: str) -> None:
    project = str(old.folder)
    (found,) = [each for each in find_hooks(project) if Path(each.path).read_text() == text]
    left = without_old(text, project)
    settings = json.loads(left)
    assert "auto-checkpoint" not in left
    assert "session-checkpoint" not in left
    assert ("npm run lint" in left) == ("npm run lint" in text)
    others = {key: value for key, value in json.loads(text).items() if key != "hooks"}
    assert {key: value for key, value in settings.items() if key != "hooks"} == others
    again = with_restored_hooks(left, found.old)
    assert with_restored_hooks(again, found.old) == again

    def commands(settings_text: str) -> list[str]:
        groups = [
            group for groups in json.loads(settings_text)["hooks"].values() for group in groups
        ]
        return sorted(handler["command"] for group in groups for handler in group["hooks"])

    assert commands(again) == commands(text)


def test_a_settings_file_that_cannot_be_read_is_named(old: OldProject) -> None:
    old.write(".claude/settings.json", "{torn")
    trouble = {Path(found.path).name: found.trouble for found in find_hooks(str(old.folder))}
    assert "is not valid JSON" in trouble["settings.json"]
