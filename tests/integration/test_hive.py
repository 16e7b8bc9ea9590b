"""Workers of the orchestrator in real processes: started, checked, and their costs recorded."""

import json
import os
import re
import shlex

from hivepipe.cli.hive.commands import hive
from tests.conftest import ROOT, until
from tests.hive_scene import DONE, Scene, script


def test_a_spawned_worker_runs_its_task_to_the_end_and_is_stored(scene: Scene) -> None:
    task = script(["say on it", "call Edit a.py", "cost 0.05", "cost 0.07", DONE])
    env = {"CLAUDECODE": "1", "HIVEPIPE_NESTED": "1", "ANTHROPIC_API_KEY": "k", "AWS_SECRET": "s"}
    worker = scene.run("spawn", "project-a", task, env=env).strip()
    found = scene.wait_for_state(worker, "done")
    assert found["cost_usd"] == "0.07"
    folder = scene.folder(worker)
    session = (folder / "session-id").read_text().strip()
    assert worker == f"project-a-{session}"
    assert (folder / "task.md").read_text() == f"{task}\n"
    (played,) = scene.played()
    assert played["session"] == session
    assert played["cwd"] == str(scene.projects["project-a"])
    assert played["worker"] == worker
    assert played["home"] == str(scene.home.path)
    assert task in played["prompt"]
    assert not set(env) & set(played["variables"]), "of a nested orchestrator"
    assert "SessionStart" in played["hooks"]  # the hooks of the user apply: the project has none
    kinds = [line["type"] for line in scene.lines(worker)]
    assert kinds[0] == "system"
    assert kinds[-1] == "result"
    (row,) = scene.home.rows("SELECT * FROM hive_workers")
    assert (row["id"], row["project"], row["status"]) == (worker, "project-a", "done")
    (stored,) = scene.home.rows("SELECT * FROM hive_runs")
    assert (stored["kind"], stored["is_lost"]) == ("spawn", 0)
    assert scene.home.rows("SELECT status FROM hive_statuses") == [{"status": "done"}]
    assert scene.home.rows("SELECT id, status FROM tasks") == [{"id": worker, "status": "done"}]


def test_a_task_comes_from_a_file_or_from_stdin(scene: Scene) -> None:
    path = scene.home.root / "task.txt"
    path.write_text(script([DONE], words="Of a file."))
    by_file = scene.run("spawn", "project-a", "--file", str(path)).strip()
    by_stdin = scene.run("spawn", "project-a", input=script([DONE], words="Of stdin.")).strip()
    for worker, words in ((by_file, "Of a file."), (by_stdin, "Of stdin.")):
        scene.wait_for_state(worker, "done")
        assert (scene.folder(worker) / "task.md").read_text().startswith(words)
    scene.result("spawn", "project-a", "both", "--file", str(path), expect=64)


def test_a_task_of_a_megabyte_is_passed_unchanged(scene: Scene) -> None:
    text = script([DONE]) + "\n" + "y" * 1_000_000 + " the end"
    worker = scene.run("spawn", "project-a", "--file", "-", input=text).strip()
    scene.wait_for_state(worker, "done")
    (played,) = scene.played()
    assert text in played["prompt"]


def test_the_commands_of_the_documentation_work(scene: Scene) -> None:
    """Run every line of docs/hive.md in its order, on one worker that asks first."""
    asking = 'status {"status": "need_input", "question": "Which?", "options": ["5", "30"]}'
    task = script([asking], [DONE], ["say tests"], ["report parked"])
    commands = re.findall(r"^    (hivepipe hive .*)$", (ROOT / "docs/hive.md").read_text(), re.M)
    lines = [shlex.split(line, comments=True)[2:] for line in commands]
    assert {line[0] for line in lines} == {*hive.commands} - {"delete"}
    scene.run("projects", "remove", "project-a")
    (scene.hive / "learnings" / "shop-insights.md").write_text("Tests need Redis.\n")
    folder, worker = str(scene.projects["project-a"]), ""
    for number, line in enumerate(lines):
        words = [worker if word == "ID" else word for word in line]
        words = [folder if word == "~/src/shop" else word for word in words]
        if words[0] == "spawn":
            worker = scene.run(*words[:-1], task).strip()
            scene.wait_for_state(worker, "need_input")
        else:
            scene.run(*words)
        until(lambda: not scene.processes(), f"line {number} goes on")
    assert [run["prompt"].splitlines()[-1] for run in scene.played()[1:3]] == [
        "Orchestrator response: 30",
        "Orchestrator response: Now the tests.",
    ]
    assert scene.check() == []


def test_unknown_projects_and_empty_tasks_are_refused(scene: Scene) -> None:
    done = scene.result("spawn", "project-x", "Do it.", expect=1)
    assert "project-a, project-a-b" in done.stderr
    assert "empty" in scene.result("spawn", "project-a", "--file", os.devnull, expect=1).stderr
    assert scene.check() == []


def test_a_hive_in_a_cloned_repository_is_not_trusted(scene: Scene) -> None:
    foreign = scene.projects["project-a"] / ".hive"
    (foreign / "workers").mkdir(parents=True)
    done = scene.result("check", cwd=foreign.parent, expect=1)
    assert "--adopt" in done.stderr
    assert "--adopt" in scene.result("init", cwd=foreign.parent, expect=1).stderr


def test_a_run_whose_runner_is_executed_is_recorded(scene: Scene) -> None:
    """Other tests fork the runner, but not with a variable that Python reads at its start."""
    task = script(["cost 0.25", DONE])
    worker = scene.run("spawn", "project-a", task, env={"LANG": "C.UTF-8"}).strip()
    until(lambda: scene.is_recorded(worker, 1), "no cost was recorded")
    until(lambda: not scene.processes(), "its runner still runs")
    assert float(json.loads((scene.state(worker) / "runs/1.json").read_text())["cost_usd"]) == 0.25
    assert not (scene.state(worker) / "runner.log").read_text()
