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


CHECKPOINT = ".claude/hooks/auto-checkpoint.sh"
COMMANDS = {
    OLD: [
        *(CHECKPOINT, f"./{CHECKPOINT}", f"bash {CHECKPOINT}", f"/bin/bash -e {CHECKPOINT} post"),
        *(f"bash -c '{CHECKPOINT}'", f'"$CLAUDE_PROJECT_DIR"/{CHECKPOINT}'),
        f"${{CLAUDE_PROJECT_DIR}}/{CHECKPOINT} >/dev/null 2>&1",
        f"$(git rev-parse --show-toplevel)/{CHECKPOINT}",
        f"cd $CLAUDE_PROJECT_DIR && {CHECKPOINT} || true",
        "cat | .claude/hooks/task-agent-tracker.sh 2>/dev/null; exit 0",
        "USE_QUEUE=true .claude/hooks/task-agent-tracker.sh",
        *("[ -x .claude/hooks/stop ] && .claude/hooks/stop", "python3 .claude/hooks/stop"),
        # run by something else
        *(f"timeout 5 {CHECKPOINT}", f"timeout -k 2 -s KILL 5s bash {CHECKPOINT}"),
        *(f"nohup {CHECKPOINT} >/dev/null 2>&1 &", f"setsid nice -n 19 bash {CHECKPOINT}"),
        *(f"time {CHECKPOINT}", f"bash -o pipefail -e {CHECKPOINT}", f"source {CHECKPOINT}"),
        *(f". {CHECKPOINT}", f"eval {CHECKPOINT}", "/usr/bin/python3.11 -u .claude/hooks/stop"),
        *("uv run --with rich .claude/hooks/stop", f"timeout 5 bash -lc '{CHECKPOINT}'"),
        *(f"if [ -f x ]; then {CHECKPOINT}; else true; fi", f"{{ ! {CHECKPOINT}; }}"),
    ],
    DOUBTFUL: [
        *(f"sudo -u me {CHECKPOINT}", f"mine/run {CHECKPOINT}"),
        # a command of the user in the same line
        *(
            f"{CHECKPOINT} && npm run lint",
            f"npm run lint; {CHECKPOINT}",
            f"{CHECKPOINT} > notes.txt",
        ),
        # commands that write to the predecessor's database
        *("sqlite3 .hive-mind/hive.db 'DELETE FROM agents'", "mine/tracker.sh"),
        "old/auto-checkpoint.sh",  # a file of a known name that is missing
    ],
    OTHER: [
        *("timeout 5 npm run lint", "if true; then npm run lint; fi", "timeout 5", "uv", "bash"),
        *(f"echo {CHECKPOINT}", "npm run lint", "echo .hive-mind", "echo 'not closed", ""),
        # files of a known name that have nothing of the predecessor
        *("mine/session-start.sh", "mine/stop", "mine/stop.py", "mine/../../../../../dev/zero"),
    ],
}


@pytest.mark.parametrize("expected", COMMANDS)
def test_a_command_is_judged_by_name_and_content(old: OldProject, expected: Verdict) -> None:
    old.write("mine/session-start.sh", "#!/bin/bash\necho hello\n")
    old.write("mine/stop", "#!/bin/bash\nsay done\n")
    old.write("mine/stop.py", "print('done')\n")
    old.write("mine/tracker.sh", "sqlite3 .hive-mind/hive.db 'INSERT ...'\n")
    for command in COMMANDS[expected]:
        found = judge({"type": "command", "command": command}, str(old.folder))
        assert found is expected, command


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
