"""The rights of workers: chosen once by the user, granted, and named in the prompt."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hivepipe.orchestrator.prompts import DEFAULTS
from tests.conftest import until
from tests.hive_scene import DONE, Scene, script

UNCOMMITTED = 'status {"status": "done", "result": "so", "committed": false, "parked": true}'
# prompts/worker.md as version 1.0.0 wrote it
FORMER = Path(__file__).parent / "data" / "hive-worker-1.0.0.md"


def repository(scene: Scene) -> Path:
    """Make a worker's project a repository with an author and a change."""
    folder = scene.projects["project-a"]
    subprocess.run(["git", "init", "-q", folder], check=True)
    for name, value in (("user.name", "A"), ("user.email", "a@example.org")):
        subprocess.run(["git", "-C", folder, "config", name, value], check=True)
    (folder / "a.txt").write_text("a\n")
    return folder


def subjects(folder: Path) -> str:
    done = subprocess.run(
        ["git", "-C", folder, "log", "--format=%s"], capture_output=True, text=True, check=False
    )
    return done.stdout


@pytest.mark.parametrize(("rights", "committed"), [("edits", ""), ("commits", "Why\n")])
def test_a_worker_has_the_rights_that_its_prompt_names(
    scene: Scene, rights: str, committed: str
) -> None:
    folder = repository(scene)
    scene.config.write_text(f'hive_rights = "{rights}"\n')
    worker = scene.spawn(script(["run git add a.txt", "run git commit -m Why", DONE]))
    scene.wait_for_state(worker, "done")
    assert subjects(folder) == committed
    (run,) = scene.played()
    prompt = run["prompt"]
    assert ("Commit your changes" in prompt) == bool(committed)
    assert ("You may not run git" in prompt) != bool(committed)
    assert ("uncommitted" in prompt) != bool(committed)
    assert f'"committed": {"true" if committed else "false"}' in prompt
    assert "$" not in prompt
    arguments = run["arguments"]
    assert arguments[arguments.index("--permission-mode") + 1] == "acceptEdits"
    rules = arguments[arguments.index("--allowedTools") + 1 :]
    git = ["Bash(git add:*)", "Bash(git commit:*)"] if committed else []
    assert rules == ["Skill(session:park)", *git]


def test_with_all_rights_claude_skips_permissions(scene: Scene) -> None:
    scene.config.write_text('hive_rights = "all"\n')
    worker = scene.spawn(script([DONE]))
    run = json.loads((scene.state(worker) / "runs" / "1.json").read_text())
    assert run["command"][-1] == "--dangerously-skip-permissions"
    assert "Commit your changes" in (scene.state(worker) / "runs" / "1.prompt.md").read_text()


def test_the_users_own_flags_set_rights_too(scene: Scene) -> None:
    flags = "--permission-mode acceptEdits --allowedTools 'Bash(git *)'"
    scene.config.write_text(f'hive_flags = "{flags}"\n')
    worker = scene.spawn(script([DONE]))
    scene.wait_for_state(worker, "done")
    (run,) = scene.played()
    assert run["arguments"][-4:] == [*flags.split()[:3], "Bash(git *)"]
    assert "Commit your changes" in run["prompt"]


@pytest.mark.parametrize("flags", ["", 'hive_flags = "--model opus"\n'])
def test_rights_are_only_chosen_by_the_user(scene: Scene, flags: str) -> None:
    """The project's file, the environment or a command without a terminal cannot set rights."""
    scene.config.write_text(flags)
    (scene.home.path / "config.toml").write_text('hive_rights = "all"\n')
    output = scene.result("spawn", "project-a", "Do it.", expect=1).stderr
    for words in ("hivepipe hive rights", str(scene.config), '"edits"', '"commits"', '"all"'):
        assert words in output
    for name, value in (("HIVE_RIGHTS", "all"), ("HIVE_FLAGS", "--permission-mode acceptEdits")):
        env = {f"HIVEPIPE_{name}": value}
        output = scene.result("spawn", "project-a", "Do it.", expect=1, env=env).stderr
        assert f"{name} is set in the environment" in output
        shown = json.loads(scene.hivepipe("config", "--json", expect=1, env=env).stdout)["values"]
        (setting,) = [each for each in shown if each["name"] == name.lower()]
        assert setting["source"] != "environment"
    output = scene.result("rights", "all", expect=1).stderr
    assert "in a terminal" in output
    assert scene.config.read_text() == flags
    assert scene.check() == []


def answered_on_terminal(scene: Scene, answer: str, *arguments: str) -> str:
    """Run a command on a new terminal, type the answer, and return the output."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-I", "-m", "hivepipe.cli.main", *arguments],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=scene.env,
        cwd=scene.home.project,
        start_new_session=True,
    )
    os.close(terminal)
    os.write(controller, answer.encode())
    shown, deadline = b"", time.monotonic() + 60
    while time.monotonic() < deadline:
        if not select.select([controller], [], [], 0.1)[0]:
            continue
        try:
            shown += os.read(controller, 4096)
        except OSError:  # the process has ended and its output is read
            break
    os.close(controller)
    assert process.wait(30) == 0, shown.decode()
    return shown.decode()


def test_the_user_is_asked_for_rights_once(scene: Scene) -> None:
    """The answer is stored in the user's own file; its other lines, mode and link stay."""
    before = "# mine\nidle_secs = 60\n\n[retention]\nworkers = 10\n"
    own = scene.home.root / "dotfiles.toml"
    own.write_text(before)
    own.chmod(0o640)
    scene.config.unlink()
    scene.config.symlink_to(own)
    shown = answered_on_terminal(scene, "commits\n", "hive", "spawn", "project-a", script([DONE]))
    assert "What may a worker do without asking?" in shown
    assert "dangerously-skip-permissions" in shown
    (worker,) = [each["id"] for each in scene.check()]
    assert worker in shown
    assert own.read_text() == f'hive_rights = "commits"\n{before}'
    assert own.stat().st_mode & 0o777 == 0o640
    assert scene.config.is_symlink()
    shown = answered_on_terminal(scene, "", "hive", "spawn", "project-a", script([DONE]))
    assert "What may" not in shown
    until(lambda: len(scene.played()) == 2, "not both have begun")
    assert scene.run("rights").startswith("commits: a worker may change files")


def test_a_changed_choice_replaces_the_line(scene: Scene) -> None:
    scene.config.write_text('idle_secs = 60\nhive_rights = "commits" # for now\n[retention]\n')
    shown = answered_on_terminal(scene, "", "hive", "rights", "edits")
    assert "edits: a worker may change files in its project, and run no git" in shown
    assert scene.config.read_text() == 'idle_secs = 60\nhive_rights = "edits"\n[retention]\n'
    scene.config.unlink()
    answered_on_terminal(scene, "edits\n", "hive", "rights")
    assert scene.config.read_text() == 'hive_rights = "edits"\n'
    assert scene.config.stat().st_mode & 0o777 == 0o600


def test_a_worker_without_the_right_to_commit_has_no_problem_of_it(scene: Scene) -> None:
    for rights, problems in (("edits", []), ("commits", ["done without a commit"])):
        scene.config.write_text(f'hive_rights = "{rights}"\n')
        worker = scene.spawn(script([UNCOMMITTED]))
        found = scene.wait_for_state(worker, "done")
        assert found["fields"]["problems"] == problems


def test_a_default_prompt_of_1_0_0_is_replaced_and_the_users_own_is_kept(scene: Scene) -> None:
    template = scene.hive / "prompts" / "worker.md"
    assert template.read_text() == DEFAULTS["worker"]
    template.write_text(FORMER.read_text())
    scene.wait_for_state(scene.spawn(script([DONE])), "done")
    template.write_text(FORMER.read_text() + "Mind the cat.\n")
    scene.wait_for_state(scene.spawn(script([DONE])), "done")
    first, second = (run["prompt"] for run in scene.played())
    assert "You may not run git" in first
    assert "You may not run git" not in second
    assert "Mind the cat." in second
