"""Trusted state of a worker is where it cannot write, even if its project contains `.hive`."""

import errno
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hivepipe.errors import HiveError
from hivepipe.files.typed_file import write_typed
from hivepipe.home import short_hash
from hivepipe.orchestrator import folder as layout
from hivepipe.orchestrator import trusted_state
from hivepipe.orchestrator.folder import Hive
from hivepipe.orchestrator.trusted_state import Identity
from hivepipe.stack.lock import acquire_lock
from tests.conftest import Home, until
from tests.hive_scene import DONE, Scene, script, tick

SKIP = "--dangerously-skip-permissions"
ASKING = 'status {"status": "need_input", "question": "Which?", "options": ["a", "b"]}'
SHORT_TIMES = {"STALE_SECS": "0.1", "GRACE_SECS": "0.1"}


@pytest.fixture
def scene(private_home: Home) -> Iterator[Scene]:
    """A hive whose list contains the project that holds it."""
    scene = Scene(private_home)
    scene.begin()
    scene.run("projects", "add", "self", ".")
    try:
        yield scene
    finally:
        scene.end()


def state_files(scene: Scene, worker: str) -> Iterator[Path]:
    """Yield each path below its project where a worker's state is or was looked for."""
    for folder in ("state", "workers", "archive"):
        for part in ("", "state"):
            yield scene.hive / folder / worker / part / "worker.json"


def forge_state(scene: Scene, worker: str, elsewhere: Path) -> None:
    """Write every file below its cwd by which a worker might gain rights or move elsewhere."""
    card = json.loads((scene.state(worker) / "worker.json").read_text())
    more = card | {"flags": [SKIP], "path": str(elsewhere), "respawns": -9}
    run = json.loads((scene.state(worker) / "runs" / "1.json").read_text())
    victim = run | {"number": 2, "pid": os.getpid(), "ended_at": "", "cost_usd": "-5"}
    for path in state_files(scene, worker):
        (path.parent / "runs").mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(more))
        (path.parent / "runs" / "2.json").write_text(json.dumps(victim))
        (path.parent / "settings.json").write_text('{"hooks": {"Stop": []}}')
    names = dict.fromkeys(("self", "project-a"), str(elsewhere))
    (scene.hive / "projects.json").write_text(json.dumps(names))
    (scene.hive / "hive").write_text("{}")


def test_a_worker_that_forges_state_gains_no_rights(scene: Scene) -> None:
    elsewhere = scene.home.root / "elsewhere"
    elsewhere.mkdir()
    worker = scene.spawn(script([ASKING], ["crash"], [DONE]), "self")
    scene.wait_for_state(worker, "need_input")
    forge_state(scene, worker, elsewhere)
    scene.run("answer", worker, "--option", "1")
    scene.wait_for_state(worker, "died")
    forge_state(scene, worker, elsewhere)
    scene.run("resume", worker, "Go on.")
    scene.wait_for_state(worker, "done")
    played = scene.played()
    assert len(played) == 3
    for run in played:
        assert SKIP not in run["arguments"]
        assert run["cwd"] == str(scene.home.project)
    assert "total 0.00 USD" in scene.run("costs")


def test_a_respawned_worker_gains_no_rights_from_forged_state(scene: Scene) -> None:
    elsewhere = scene.home.root / "elsewhere"
    elsewhere.mkdir()
    worker = scene.spawn(script(["ignore", "hang"], ["hang"], ["cost 0.01"]), "self")
    until(lambda: (scene.state(worker) / "runs" / "1.json").exists(), "it did not begin")

    def fresh() -> list[str]:
        forge_state(scene, worker, elsewhere)
        tick(scene, POLICY="respawn", **SHORT_TIMES)
        return [each["id"] for each in scene.check() if each["id"] != worker]

    (successor,) = until(fresh, "no respawn")
    assert json.loads((scene.state(successor) / "worker.json").read_text())["path"] == str(
        scene.home.project
    )
    for run in scene.played():
        assert SKIP not in run["arguments"]
        assert run["cwd"] == str(scene.home.project)


@pytest.mark.parametrize("above", [".", "state", ".config/hivepipe"])
def test_a_project_that_contains_the_trusted_files_is_refused(scene: Scene, above: str) -> None:
    folder = scene.home.root / above
    output = scene.result("projects", "add", "all", str(folder), expect=1).stderr
    assert "sets what workers may do" in output


# ---- state that 1.0.0 left
def move_to_old_place(
    scene: Scene, workers: list[str], is_running: bool = False, **card: Any
) -> None:
    """Move the state back to where 1.0.0 had it."""
    for worker in workers:
        if not is_running:  # a process that ends releases its lock after its environment
            os.close(acquire_lock(str(scene.state(worker) / "run.lock"), 60))
        old = scene.hive / "state" / worker
        old.parent.mkdir(exist_ok=True)
        scene.state(worker).rename(old)
        found = json.loads((old / "worker.json").read_text())
        (old / "worker.json").write_text(json.dumps(found | card))
    shutil.rmtree(scene.records)


def test_state_in_the_hive_is_migrated_once(scene: Scene) -> None:
    workers = [scene.spawn(script([ASKING], [DONE])) for _ in range(2)]
    for worker in workers:
        scene.wait_for_state(worker, "need_input")
    move_to_old_place(scene, workers)
    assert len(scene.check()) == 2
    assert not (scene.hive / "state").exists()
    assert json.loads((scene.records / "projects.json").read_text())["self"]
    card = json.loads((scene.state(workers[0]) / "worker.json").read_text())
    planted = scene.hive / "state" / workers[0]
    planted.mkdir(parents=True)
    (planted / "worker.json").write_text(json.dumps(card | {"flags": [SKIP]}))
    scene.run("answer", workers[0], "--option", "1")
    scene.wait_for_state(workers[0], "done")
    assert SKIP not in scene.played()[-1]["arguments"]
    assert scene.played()[-1]["session"] == card["session"]


def test_rights_that_the_user_did_not_choose_are_not_migrated(scene: Scene) -> None:
    worker = scene.spawn(script([ASKING], [DONE]))
    scene.wait_for_state(worker, "need_input")
    move_to_old_place(scene, [worker], flags=[SKIP])
    outside = scene.home.root / "outside"
    outside.write_text("mine")
    old = scene.hive / "state" / worker
    (old / "steps.jsonl").unlink(missing_ok=True)
    (old / "steps.jsonl").symlink_to(outside)
    os.mkfifo(old / "pipe")
    run = json.loads((old / "runs" / "1.json").read_text())
    stat = Path(f"/proc/{os.getpid()}/stat").read_text()
    victim = {"number": 2, "pid": os.getpid(), "ended_at": "", "exit_code": None}
    started = stat.rpartition(")")[2].split()[19]
    (old / "runs" / "2.json").write_text(json.dumps(run | victim | {"pid_started": started}))
    assert "other rights than you chose" in scene.result("check", worker).stderr
    assert not (scene.state(worker) / "steps.jsonl").exists()
    assert json.loads((scene.state(worker) / "runs" / "2.json").read_text())["is_lost"]
    scene.run("resume", worker, "Go on.")
    scene.wait_for_state(worker, "done")
    assert SKIP not in scene.played()[-1]["arguments"]
    assert outside.read_text() == "mine"


def test_a_migration_killed_at_any_step_is_completed_later(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = [scene.spawn(script([DONE])) for _ in range(2)]
    for worker in workers:
        scene.wait_for_state(worker, "done")
    before = {worker: (scene.state(worker) / "worker.json").read_bytes() for worker in workers}
    move_to_old_place(scene, workers, flags=[SKIP])
    kept = scene.home.root / "kept"
    shutil.copytree(scene.hive, kept)
    steps = ("_copy", "_replace_forged", "_remove_old", "_identity", "write_small")
    for name in steps:
        for number in (1, 2):
            shutil.rmtree(scene.hive)
            shutil.rmtree(scene.records, ignore_errors=True)
            shutil.copytree(kept, scene.hive)
            left = [number]
            real = getattr(trusted_state, name)

            def dying(*arguments: Any, real: Any = real, left: list[int] = left) -> Any:
                left[0] -= 1
                if not left[0]:
                    raise OSError("killed")
                return real(*arguments)

            with scene.use_environment({}):
                with monkeypatch.context() as patch:
                    patch.setattr(trusted_state, name, dying)
                    try:
                        Hive(scene.hive, str(scene.home.path)).migrated()
                    except HiveError:
                        assert left == [0]
                hive = Hive(scene.hive, str(scene.home.path)).migrated()
                found = {
                    each.id: (each.state / "worker.json").read_bytes()
                    for each in hive.without_folder()
                }
                found |= {
                    each.id: (each.state / "worker.json").read_bytes() for each in hive.workers()
                }
            assert {id: json.loads(text) for id, text in found.items()} == {
                id: json.loads(text) for id, text in before.items()
            }
            assert not (scene.hive / "state").exists()


def test_a_running_worker_of_1_0_0_continues(scene: Scene) -> None:
    worker = scene.spawn(script(["hang"]))
    scene.wait_for_state(worker, "working")
    old = scene.hive / "state" / worker
    move_to_old_place(scene, [worker], is_running=True)
    found = scene.row(worker)
    assert found["lives"]
    assert old.resolve() == scene.state(worker)  # its runner records its end there
    assert "has a process" in scene.result("resume", worker, "x", expect=1).stderr


def test_a_hive_that_was_moved_finds_its_state(scene: Scene) -> None:
    worker = scene.spawn(script([ASKING], [DONE]))
    scene.wait_for_state(worker, "need_input")
    flags = json.loads((scene.state(worker) / "worker.json").read_text())["flags"]
    moved = scene.home.root / "moved"
    moved.mkdir()
    scene.hive.rename(moved / ".hive")
    scene.hive = moved / ".hive"
    scene.result("init", "--adopt", cwd=moved)
    assert json.loads((scene.state(worker) / "worker.json").read_text())["flags"] == flags
    scene.result("answer", worker, "--option", "1", cwd=moved)


def with_equal_inodes(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every hive the same inode, as if each was made after the deletion of the last one."""

    def reused(root: Path) -> Identity:
        return Identity(str(root), 1, 1)

    write_typed(scene.records / "hive", reused(scene.hive))
    monkeypatch.setattr(trusted_state, "_identity", reused)


def folder_sorted_after(scene: Scene) -> Path:
    """Return a new folder whose `.hive` has a greater hash than the hive of the scene."""
    names = (scene.home.root / f"other-{number}" for number in range(1000))
    found = next(name for name in names if short_hash(f"{name}/.hive") > scene.records.name)
    found.mkdir()
    return found


def test_a_new_hive_with_the_inode_of_a_deleted_one_does_not_take_its_state(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_equal_inodes(scene, monkeypatch)
    worker = scene.finish()
    shutil.rmtree(scene.hive)
    other, moved = folder_sorted_after(scene), scene.home.root / "moved"
    scene.run("init", cwd=other)
    assert "project-a" not in scene.run("projects", cwd=other)
    scene.run("projects", "add", "of-other", str(scene.projects["project-a-b"]), cwd=other)
    other.rename(moved)
    scene.run("init", "--adopt", cwd=moved)
    assert "of-other" in scene.run("projects", cwd=moved)
    assert (scene.state(worker) / "worker.json").exists()


def test_of_equal_marks_of_an_earlier_version_the_newest_is_followed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_equal_inodes(scene, monkeypatch)
    other, moved = folder_sorted_after(scene), scene.home.root / "moved"
    scene.run("init", cwd=other)
    scene.run("projects", "add", "of-other", str(scene.projects["project-a-b"]), cwd=other)
    shutil.rmtree(scene.hive)
    os.utime(scene.records / "hive", (1, 1))
    other.rename(moved)
    scene.run("init", "--adopt", cwd=moved)
    assert "of-other" in scene.run("projects", cwd=moved)


def test_a_new_hive_in_place_of_a_deleted_one_begins_without_projects(scene: Scene) -> None:
    worker = scene.finish()
    shutil.rmtree(scene.hive)
    (scene.home.root / "takes-the-inode").mkdir()
    scene.run("init")
    assert "project-a" not in scene.run("projects")
    mark = json.loads((scene.records / "hive").read_text())
    assert mark["number"] == scene.hive.stat().st_ino
    assert (scene.state(worker) / "worker.json").exists()


@pytest.mark.parametrize("at_the_same_path", [True, False])
def test_a_hive_whose_init_was_interrupted_takes_no_state_of_a_deleted_one(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, at_the_same_path: bool
) -> None:
    with_equal_inodes(scene, monkeypatch)
    worker = scene.finish()
    shutil.rmtree(scene.hive)
    parent = scene.hive.parent if at_the_same_path else folder_sorted_after(scene)

    def fail(*_any: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full:
        full.setattr(layout, "_write_new", fail)
        assert "No space" in scene.result("init", cwd=parent, expect=1).output
    assert (parent / ".hive").is_dir()
    scene.run("init", "--adopt", cwd=parent)
    assert "project-a" not in scene.run("projects", cwd=parent)
    assert (scene.state(worker) / "worker.json").exists()


def test_a_hive_that_was_deleted_while_a_worker_runs_keeps_its_projects(scene: Scene) -> None:
    worker = scene.spawn(script(["hang"]))
    scene.wait_for_state(worker, "working")
    shutil.rmtree(scene.hive)
    scene.run("init")
    assert "project-a" in scene.run("projects")
