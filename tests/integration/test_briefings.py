"""The context of a session's start: prepared by the writer, delivered by the hook."""

import json
import os
import re
import shlex
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hivepipe.cli.main import main
from tests import payloads
from tests.conftest import NEUTRAL, Home, Server, Writer, fire, hook_answer, until
from tests.hook_contract import checked
from tests.payloads import SESSION, changed

COMPACTED = changed(payloads.SESSION_START, source="compact")


def context_of(event: dict[str, Any], env: dict[str, str]) -> str:
    name = event["hook_event_name"]
    return str(checked(name, hook_answer(name, event, env)).get("additionalContext", ""))


@pytest.fixture
def run(private_home: Home, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run a command in the project."""
    monkeypatch.chdir(private_home.project)

    def invoke(*arguments: str, expect: int = 0) -> str:
        result = CliRunner().invoke(main, list(arguments))
        assert result.exit_code == expect, result.output
        return result.stdout

    return invoke


def test_a_goal_survives_a_compaction(
    private_home: Home, redis_server: Server, writer: Writer, run: Callable[..., str]
) -> None:
    env = private_home.with_env(TASK_ID="t-1")
    writer.start()
    run("task", "add", "Split checkout.py", "--id", "t-1")
    run("task", "progress", "t-1", "two of three modules")
    fire("SessionStart", payloads.SESSION_START, env)
    fire("UserPromptSubmit", payloads.USER_PROMPT_SUBMIT, env)
    until(lambda: "two of three" in context_of(payloads.SESSION_START, env), "no task at the start")
    fire("PreCompact", payloads.PRE_COMPACT, env)
    until(lambda: "last prompt" in context_of(COMPACTED, env), "no goal")
    text = context_of(COMPACTED, env)
    assert "task t-1:\n> Split checkout.py\n" in text
    assert "two of three modules" in text
    assert payloads.USER_PROMPT_SUBMIT["prompt"] in text
    until(
        lambda: private_home.rows("SELECT * FROM session_logs WHERE message = 'Compaction: auto'"),
        "the compaction is not noted",
    )
    assert run("context", "--source", "compact", "--session", SESSION)
    (goal,) = (private_home.path / "context").glob("goal-*.txt")
    assert stat.S_IMODE(goal.stat().st_mode) == 0o600
    # The hook needs neither the writer nor Redis to deliver it.
    assert writer.end() == 0
    redis_server.end()
    assert "two of three modules" in context_of(COMPACTED, env)
    assert hook_answer("PreCompact", payloads.PRE_COMPACT, env) == NEUTRAL


def test_a_task_is_in_the_briefing_right_after_it_was_assigned_without_a_stack(
    private_home: Home, run: Callable[..., str]
) -> None:
    env = private_home.with_env(TASK_ID="t-1", AUTOSTART="0")
    run("task", "add", "Split checkout.py", "--id", "t-1")
    assert (
        context_of(payloads.SESSION_START, env)
        == "The task of this session is t-1:\n> Split checkout.py"
    )
    run("task", "done", "t-1")
    assert context_of(payloads.SESSION_START, env) == ""


def test_a_session_without_a_task_is_reminded_of_its_last_prompt(
    private_home: Home, redis_server: Server, writer: Writer
) -> None:
    writer.start()
    fire("SessionStart", payloads.SESSION_START, private_home.env)
    fire("UserPromptSubmit", payloads.USER_PROMPT_SUBMIT, private_home.env)
    until(lambda: context_of(COMPACTED, private_home.env), "no goal")
    assert payloads.USER_PROMPT_SUBMIT["prompt"] in context_of(COMPACTED, private_home.env)
    # No other session gets it.
    assert context_of(changed(COMPACTED, session_id="another"), private_home.env) == ""


def test_the_next_briefing_has_notes_and_the_open_work_of_the_last_session(
    private_home: Home, redis_server: Server, writer: Writer, run: Callable[..., str]
) -> None:
    key = "sk-ant-api03-" + "A1b2C3d4E5f6G7h8" * 6
    notes = private_home.project / ".claude-state"
    notes.mkdir(exist_ok=True)
    (notes / "preferences.md").write_text(f"Tabs, never spaces. Key {key}")
    (notes / "progress.txt").symlink_to("/etc/passwd")
    run("task", "add", "Split checkout.py", "--id", "t-9")
    run("task", "assign", "t-9", SESSION, "--unknown")
    for event in (payloads.SESSION_START, payloads.USER_PROMPT_SUBMIT, payloads.SESSION_END):
        hook_answer(event["hook_event_name"], event, private_home.env)
    writer.start()
    begins = changed(payloads.SESSION_START, session_id="next")
    until(lambda: "The last session here" in context_of(begins, private_home.env), "no context")
    text = context_of(begins, private_home.env)
    assert "An open task that no session works on: t-9:\n> Split checkout.py" in text
    assert payloads.USER_PROMPT_SUBMIT["prompt"] in text
    assert "Tabs" not in text  # the file is not trusted: it might come from anyone
    assert "cannot be trusted" in run("trust", "--yes", expect=1)
    text = context_of(begins, private_home.env)
    assert "From .claude-state/preferences.md, a file of this repository" in text
    assert "\n> Tabs, never spaces" in text
    assert key not in text
    assert "root:" not in text
    assert len(text) <= 9_500
    # A forgotten session is in no briefing.
    writer.end()
    run("forget", SESSION, "--yes")
    assert payloads.USER_PROMPT_SUBMIT["prompt"] not in context_of(begins, private_home.env)


def test_the_briefing_of_a_continued_session_omits_that_session(
    private_home: Home, redis_server: Server, writer: Writer, run: Callable[..., str]
) -> None:
    """The briefing shows neither the session's own end nor its own task as unattended."""
    run("task", "add", "Split checkout.py", "--id", "t-9")
    run("task", "assign", "t-9", SESSION, "--unknown")
    for session, prompt in (("other", "Mend the parser"), (SESSION, "Split it")):
        for event in (payloads.SESSION_START, payloads.USER_PROMPT_SUBMIT, payloads.SESSION_END):
            fields = {"prompt": prompt} if "prompt" in event else {}
            hook_answer(event["hook_event_name"], changed(event, session_id=session, **fields),
                     private_home.env)  # fmt: skip
    writer.start()
    new = changed(payloads.SESSION_START, session_id="new")
    until(lambda: "Split it" in context_of(new, private_home.env), "no context")
    resumed = changed(payloads.SESSION_START, source="resume")
    text = context_of(resumed, private_home.env)
    assert text.startswith("The task of this session is t-9")
    assert "no session works on" not in text
    assert "The last session here, other, ended" in text
    assert "Mend the parser" in text
    assert "Split it" not in text


def test_the_first_briefing_of_a_project_has_the_notes(
    private_home: Home, redis_server: Server, writer: Writer, run: Callable[..., str]
) -> None:
    notes = private_home.project / ".claude-state"
    notes.mkdir(exist_ok=True)
    (notes / "preferences.md").write_text("Tabs, never spaces.")
    run("trust", "--yes")
    writer.start()
    part = private_home.path / "context"
    until(lambda: list(part.glob("project-*.txt")), "nothing is prepared")
    assert "Tabs, never spaces" in context_of(payloads.SESSION_START, private_home.env)


def test_a_prompt_gets_the_texts_of_its_keywords(
    private_home: Home, run: Callable[..., str]
) -> None:
    private_home.path.mkdir()
    (private_home.path / "config.toml").write_text(
        '[[context]]\nkeywords = ["deploy"]\ntext = "Staging first."\n'
    )
    run("config")
    asked = changed(payloads.USER_PROMPT_SUBMIT, prompt="x" * 3_000 + " then Deploy it")
    assert context_of(asked, private_home.env) == "Staging first."
    fire("UserPromptSubmit", payloads.USER_PROMPT_SUBMIT, private_home.env)
    notified = payloads.TASK_NOTIFICATION["prompt"].replace("slow sub", "deploy")
    by_claude = changed(payloads.TASK_NOTIFICATION, prompt=notified)
    fire("UserPromptSubmit", by_claude, private_home.env)
    assert "Staging first." in run("context", "--prompt", "deploy!")


def test_shell_commands_get_the_ids_and_a_nested_claude_keeps_its_own(
    private_home: Home, tmp_path: Path
) -> None:
    variables = tmp_path / "variables.sh"
    variables.write_text("export A=1\n")
    env = private_home.with_env(AGENT_ID="ana", TASK_ID="t-1", INSTANCE_ID="inst-a")
    fire("SessionStart", payloads.SESSION_START, {**env, "CLAUDE_ENV_FILE": str(variables)})
    lines = variables.read_text().splitlines()
    assert lines[0] == "export A=1"
    exported = dict(shlex.split(line.removeprefix("export "))[0].split("=") for line in lines[1:])
    shell = [f". {variables}; printf %s $HIVEPIPE_SESSION_ID"]
    for own in ({}, {"CLAUDE_CODE_SESSION_ID": "the-fork"}):
        done = subprocess.run(["sh", "-c", *shell], env=own, capture_output=True, check=True)
        assert done.stdout.decode() == own.get("CLAUDE_CODE_SESSION_ID", SESSION)
    exported["HIVEPIPE_SESSION_ID"] = SESSION
    assert exported == {
        "HIVEPIPE_SESSION_ID": SESSION,
        "HIVEPIPE_INSTANCE_ID": "inst-a",
        "HIVEPIPE_AGENT_ID": "ana",
        "HIVEPIPE_TASK_ID": "t-1",
        "HIVEPIPE_EXPORTED": "1",
    }
    nested = changed(payloads.USER_PROMPT_SUBMIT, session_id="nested")
    fire("UserPromptSubmit", nested, {**private_home.env, **exported})
    event = json.loads(private_home.spool[-1].read_bytes())
    assert '"session":"nested"' in json.dumps(event, separators=(",", ":")).replace('\\"', '"')
    assert "inst-a" not in json.dumps(event)


HOSTILE_IDS = ("x;touch${IFS}PROOF", "$(touch PROOF)", "x'\n touch PROOF\n'", "`touch PROOF`")


@pytest.mark.parametrize("id", HOSTILE_IDS)
def test_a_hostile_id_in_a_file_of_the_home_is_no_shell_command(
    private_home: Home, tmp_path: Path, id: str
) -> None:
    proof, variables = tmp_path / "proof", tmp_path / "variables.sh"
    hostile = id.replace("PROOF", str(proof))
    env = {**private_home.with_env(TASK_ID=hostile), "CLAUDE_ENV_FILE": str(variables)}
    env.pop("HIVEPIPE_INSTANCE_ID", None)
    fire("SessionStart", payloads.SESSION_START, env)
    for path in (private_home.path / "instances").iterdir():
        text = re.sub(
            r"(?m)^(id|session)=.*", lambda found: f"{found[1]}={hostile}", path.read_text()
        )
        path.write_text(text)
    fire("SessionStart", payloads.SESSION_START, env)
    subprocess.run(["sh", str(variables)], check=True)
    assert not proof.exists()
    assert "HIVEPIPE_INSTANCE_ID='instance-" in variables.read_text()


def test_an_unwritable_file_of_variables_fails_no_hook(private_home: Home) -> None:
    pipe = private_home.root / "pipe"
    os.mkfifo(pipe)  # has no reader, so opening it blocks
    for path in ("/nowhere/variables", str(pipe), str(private_home.root)):
        fire("SessionStart", payloads.SESSION_START, {**private_home.env, "CLAUDE_ENV_FILE": path})
        assert not list(private_home.root.rglob("hook-errors.log")), path
