"""A worker's task ends with the worker, unless another worker has it or the user created it."""

import json
import os
import shutil
import time
from contextlib import closing

import pytest

from hivepipe.db.clock_set_back import move_back
from hivepipe.db.database import Database
from hivepipe.db.location import database_path
from hivepipe.orchestrator.folder import find_hive
from hivepipe.orchestrator.orchestrator import Orchestrator
from tests.conftest import until
from tests.hive_scene import Scene, script

ERROR = 'status {"status": "error", "error": "no such file"}'


def tasks(scene: Scene) -> dict[str, tuple[str, str | None]]:
    found = json.loads(scene.hivepipe("task", "list", "--all", "--json").stdout)["tasks"]
    return {task["id"]: (task["status"], task["reason"]) for task in found}


def failed_worker(scene: Scene, *options: str) -> str:
    """Start a worker that reports an error, wait for its end, and return its id."""
    worker = scene.spawn(script([ERROR]), "project-a", *options)
    scene.wait_for_state(worker, "error")
    until(lambda: not scene.processes(), "its runner still runs")
    return worker


def archive(scene: Scene, worker: str) -> None:
    scene.run("archive", worker)


def delete(scene: Scene, worker: str) -> None:
    output = scene.result("delete", worker, "--yes").stderr
    assert output == f"task {worker} is cancelled: its worker was deleted before it reported done\n"


def move(scene: Scene, worker: str) -> None:
    scene.folder(worker).rename(scene.hive / "archive" / worker)
    scene.check()


def remove(scene: Scene, worker: str) -> None:
    shutil.rmtree(scene.folder(worker))
    scene.check()


def remove_all(scene: Scene, worker: str) -> None:
    shutil.rmtree(scene.state(worker))
    remove(scene, worker)


def forget(scene: Scene, worker: str) -> None:
    scene.hivepipe("forget", worker.removeprefix("project-a-"), "--yes")


ENDS = {
    archive: "archived",
    delete: "deleted",
    move: "archived",
    remove: "deleted",
    remove_all: "deleted",
    forget: "deleted",
}


def test_removing_a_worker_cancels_its_task_unless_it_is_done(scene: Scene) -> None:
    finished = scene.finish()
    workers = [scene.spawn(script([ERROR])) for _ in ENDS]
    for worker in workers:
        scene.wait_for_state(worker, "error")
    until(lambda: not scene.processes(), "a runner still runs")
    for worker, (end, word) in zip(workers, ENDS.items(), strict=True):
        assert tasks(scene)[worker] == ("open", None)
        end(scene, worker)
        reason = f"its worker was {word} before it reported done"
        assert tasks(scene)[worker] == ("cancelled", reason), end
    scene.run("delete", finished, "--yes")
    assert tasks(scene)[finished] == ("done", None)
    assert scene.hivepipe("task", "list").stdout.strip() == "none"
    for worker in workers:
        scene.hivepipe("task", "reopen", worker)
    scene.check()
    assert tasks(scene) == dict.fromkeys(workers, ("open", None)) | {finished: ("done", None)}


@pytest.mark.parametrize("is_stored_before", [True, False])
def test_a_task_can_be_reopened_after_the_clock_was_set_back(
    scene: Scene, is_stored_before: bool
) -> None:
    worker = scene.finish()  # its runner would write rows between two checks
    hour_ns = 3600 * 10**9
    ahead_ns = time.time_ns() + hour_ns - 10**9
    os.utime(scene.folder(worker) / "status.json", ns=(ahead_ns, ahead_ns))
    with closing(Database(database_path(str(scene.home.path)))) as db:
        if is_stored_before:
            at = {"at": ahead_ns}
            db.execute("UPDATE hive_statuses SET changed_ns = :at", at)
            db.execute("UPDATE hive_workers SET status_ns = :at", at)
            db.execute("UPDATE tasks SET state_time_ns = :at, progress_time_ns = :at", at)
        move_back(db, time.time_ns(), hour_ns)
        for _ in range(2):
            scene.check()
            changes = db.version()
            scene.check()
            assert db.version() == changes
            scene.hivepipe("task", "reopen", worker)
            assert tasks(scene)[worker] == ("open", None)
            db.execute("UPDATE hive_workers SET state = NULL", {})  # so that the check writes


def test_a_task_of_a_successor_stays_open_until_it_is_removed(scene: Scene) -> None:
    worker = failed_worker(scene)
    with scene.use_environment({}):
        hive = find_hive(str(scene.home.project), str(scene.home.path))
        fresh = Orchestrator(hive).respawn(hive.worker(worker))
    scene.wait_for_state(fresh.id, "error")
    until(lambda: not scene.processes(), "its runner still runs")
    scene.run("delete", worker, "--yes")
    assert tasks(scene)[worker][0] == "open"
    scene.run("delete", fresh.id, "--yes")
    assert tasks(scene)[worker][0] == "cancelled"


def test_a_task_of_the_user_stays_open_and_is_reported(scene: Scene) -> None:
    scene.hivepipe("task", "add", "Mend it.", "--id", "T-88")
    worker = failed_worker(scene, "--task-id", "T-88")
    output = scene.result("archive", worker).stderr
    assert output == "task T-88 stays open: hivepipe task done T-88 closes it\n"
    assert tasks(scene)["T-88"] == ("open", None)


def test_a_worker_with_a_cancelled_task_is_cancelled_and_not_died(scene: Scene) -> None:
    worker = scene.spawn(script(["ignore", "hang"]))
    until(lambda: scene.played(), "it did not begin")
    scene.hivepipe("task", "cancel", worker, "--reason", "too late")
    assert scene.row(worker)["state"] == "working"
    scene.end_processes()
    found = scene.wait_for_state(worker, "cancelled")
    assert found["note"] == "its task was cancelled: too late"
    scene.hivepipe("task", "reopen", worker)
    assert scene.row(worker)["state"] == "died"


def test_a_worker_without_a_status_is_shown_with_its_last_text(scene: Scene) -> None:
    worker = scene.spawn(script(["cost 0.01"]))
    found = scene.wait_for_state(worker, "ended")
    assert found["note"] == "it wrote no status.json; its last words: said"
    assert "ended without a status.json" in scene.run("check")
