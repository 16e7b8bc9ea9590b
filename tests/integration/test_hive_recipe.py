"""The manual recipes of the written protocol work together with hivepipe."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from hivepipe.monitor.snapshot import hive_states
from hivepipe.orchestrator.folder import running_workers
from tests.conftest import Home, until
from tests.hive_scene import DONE, Scene, belongs_here, script

SESSION = "0b6a3c1e-6f2b-4c55-9a3e-0d5d5f0f8a11"
WORKER = f"project-a-{SESSION}"
# as in the protocol's text, without the flag that Claude Code refuses for root
SPAWN = """
PROJECT="project-a"
PROJECT_PATH=$(jq -r ".[\\"$PROJECT\\"]" .hive/projects.json)
WORKER_ID="${PROJECT}-${WORKER_UUID}"
WORKER_DIR="$PWD/.hive/workers/$WORKER_ID"
mkdir -p "$WORKER_DIR"
echo "$WORKER_UUID" > "$WORKER_DIR/session-id"
echo "Task description here" > "$WORKER_DIR/task.md"
cd "$PROJECT_PATH" && \\
claude \\
  -p "$PROMPT" \\
  --session-id "$WORKER_UUID" \\
  --print \\
  --output-format stream-json \\
  --verbose \\
  --add-dir "$WORKER_DIR" \\
  2>&1 > "$WORKER_DIR/transcript.jsonl" &
"""
CHECK = """
for status_file in .hive/workers/*/status.json; do
  worker_dir=$(dirname "$status_file")
  worker_id=$(basename "$worker_dir")
  echo "=== $worker_id ==="
  cat "$status_file" 2>/dev/null || echo "No status yet"
done
"""

pytestmark = pytest.mark.skipif(shutil.which("jq") is None, reason="no jq")


@pytest.fixture
def scene(private_home: Home) -> Iterator[Scene]:
    made = Scene(private_home)
    made.begin()
    try:
        yield made
    finally:
        for pid in made.processes():
            if belongs_here(pid, str(made.home.root)):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        made.end()


def run_recipe(scene: Scene, recipe: str, **variables: str) -> str:
    """Run a recipe in the orchestrator's project, as a user types it."""
    output = scene.home.root / "output"
    # a pipe would stay open as long as the recipe's background processes
    with output.open("w") as file:
        subprocess.run(
            ["bash", "-c", recipe],
            cwd=scene.home.project,
            env=scene.env | variables,
            stdout=file,
            check=True,
        )
    return output.read_text()


def spawn_by_hand(scene: Scene, *runs: list[str]) -> None:
    run_recipe(scene, SPAWN, WORKER_UUID=SESSION, PROMPT=script(*runs))
    until(lambda: (scene.folder(WORKER) / "status.json").exists(), "no status was written")


def waiting(scene: Scene) -> tuple[str, Any]:
    """Return an action that waits for a file, and a function that creates the file."""
    path = scene.home.root / "go"
    return f"wait {path}", path.touch


WORKING = 'status {"status": "working", "progress": "half"}'
ASKING = 'status {"status": "need_input", "question": "Which?", "options": ["a", "b"]}'


def test_a_manually_started_process_is_shown_and_not_controlled(scene: Scene) -> None:
    wait, go = waiting(scene)
    spawn_by_hand(scene, [WORKING, wait, "cost 0.07", ASKING], ["cost 0.05", DONE])
    found = scene.row(WORKER)
    assert (found["state"], found["lives"]) == ("working", True)
    assert "not started by hivepipe" in found["note"]
    for command in (("resume", WORKER, "x"), ("park", WORKER), ("archive", WORKER)):
        assert "not started by hivepipe" in scene.result(*command, expect=1).stderr
    scene.result("delete", WORKER, "--yes", expect=1)
    assert scene.violations == ""
    go()
    until(lambda: not scene.processes(), "a process still runs")
    assert scene.row(WORKER)["state"] == "need_input"
    scene.run("answer", WORKER, "--option", "2")
    scene.wait_for_state(WORKER, "done")
    until(lambda: scene.row(WORKER)["cost_usd"] == "0.12", "costs differ")
    assert len(scene.played()) == 2
    assert scene.violations == ""
    until(lambda: not scene.processes(), "a process still runs")
    scene.run("archive", WORKER)  # costs of runs that others started are also kept
    assert json.loads(scene.run("cost", "--json"))["total_usd"] == "0.12"


def test_a_session_that_a_user_resumed_is_not_resumed_by_hivepipe(scene: Scene) -> None:
    """While a user resumes a worker's session in a terminal, nobody else may resume it."""
    wait, go = waiting(scene)
    worker = scene.spawn(script([ASKING], [wait, DONE]))
    scene.wait_for_state(worker, "need_input")
    until(lambda: not scene.processes(), "a process still runs")
    session = scene.played()[0]["session"]
    command = ["claude", "--resume", session, "-p", "let me see", "--add-dir", scene.folder(worker)]
    person = subprocess.Popen(
        command, env=scene.env, cwd=scene.projects["project-a"], stdout=subprocess.DEVNULL
    )
    until(lambda: len(scene.played()) == 2, "it did not begin")
    assert "not started by hivepipe" in scene.result("answer", worker, "a", expect=1).stderr
    go()
    assert person.wait(30) == 0
    assert scene.violations == ""


def test_workers_moved_or_removed_by_hand_are_noticed(scene: Scene) -> None:
    workers = [scene.finish("cost 0.07") for _ in range(2)]
    with scene.use_environment({}):
        assert hive_states(str(scene.home.path)) == {"done": 2}
    run_recipe(scene, 'mv ".hive/workers/$ID" ".hive/archive/"', ID=workers[0])
    run_recipe(scene, 'rm -rf ".hive/workers/$ID"', ID=workers[1])
    assert scene.check() == []
    with scene.use_environment({}):
        assert hive_states(str(scene.home.path)) == {}
    assert not any(scene.state(worker).exists() for worker in workers)
    assert "success" in scene.run("transcript", workers[0])
    found = json.loads(scene.run("cost", "--json"))
    assert found["total_usd"] == "0.14"


def test_a_process_whose_folder_was_removed_is_listed_until_it_ends(scene: Scene) -> None:
    wait, go = waiting(scene)
    worker = scene.spawn(script([wait]))
    until(lambda: scene.played(), "it did not begin")
    run_recipe(scene, 'rm -rf ".hive/workers/$ID"', ID=worker)
    (found,) = scene.check()
    assert (found["id"], found["lives"], found["state"]) == (worker, True, "error")
    assert f"its process {found['pid']} still runs" in found["note"]
    with scene.use_environment({}):
        assert [each.id for each in running_workers(str(scene.home.path))] == [worker]
    go()
    until(
        lambda: scene.check() == [] and not scene.state(worker).exists(),
        "the removal is not noticed",
    )
    (row,) = scene.home.rows("SELECT deleted_at FROM hive_workers")
    assert row["deleted_at"]


def test_an_unmounted_disk_removes_no_worker(scene: Scene) -> None:
    worker = scene.finish()
    workers = scene.hive / "workers"
    workers.rename(scene.home.root / "elsewhere")
    assert scene.check() == []
    (scene.home.root / "elsewhere").rename(workers)
    assert scene.row(worker)["state"] == "done"
    assert scene.home.rows("SELECT id, deleted_at FROM hive_workers") == [
        {"id": worker, "deleted_at": None}
    ]


def test_the_recipes_read_files_of_hivepipe(scene: Scene) -> None:
    worker = scene.finish("cost 0.07")
    folder = f".hive/workers/{worker}"
    assert f"=== {worker} ===" in run_recipe(scene, CHECK)
    assert '"did it"' in run_recipe(scene, f"jq .result {folder}/status.json")
    last = run_recipe(scene, f"tail -1 {folder}/transcript.jsonl | jq .total_cost_usd")
    assert last == "0.07\n"
    session = run_recipe(scene, f"cat {folder}/session-id").strip()
    assert worker == f"project-a-{session}"
