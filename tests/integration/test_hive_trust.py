"""What is believed of a worker lies where it cannot write, even if its project holds `.hive`."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hivepipe.errors import HiveError
from hivepipe.orchestrator import trusted_state
from hivepipe.orchestrator.folder import Hive
from tests.conftest import Home, until
from tests.hive_scene import DONE, Scene, script, tick

SKIP = "--dangerously-skip-permissions"
ASKING = 'status {"status": "need_input", "question": "Which?", "options": ["a", "b"]}'
SOON = {"STALE_SECS": "0.1", "GRACE_SECS": "0.1"}


@pytest.fixture
def scene(private_home: Home) -> Iterator[Scene]:
    """A hive whose list names the very project that holds it."""
    scene = Scene(private_home)
    scene.begin()
    scene.run("projects", "add", "self", ".")
    try:
        yield scene
    finally:
        scene.end()


def cards(scene: Scene, worker: str) -> Iterator[Path]:
    """Yield every place below its project where a worker's state lay, or may be looked for."""
    for folder in ("state", "workers", "archive"):
        for part in ("", "state"):
            yield scene.hive / folder / worker / part / "worker.json"


def grab(scene: Scene, worker: str, elsewhere: Path) -> None:
    """Write whatever a worker can write below its cwd to have more rights, or be elsewhere."""
    card = json.loads((scene.state(worker) / "worker.json").read_text())
    more = card | {"flags": [SKIP], "path": str(elsewhere), "respawns": -9}
    run = json.loads((scene.state(worker) / "runs" / "1.json").read_text())
    victim = run | {"number": 2, "pid": os.getpid(), "ended_at": "", "cost_usd": "-5"}
    for path in cards(scene, worker):
        (path.parent / "runs").mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(more))
        (path.parent / "runs" / "2.json").write_text(json.dumps(victim))
        (path.parent / "settings.json").write_text('{"hooks": {"Stop": []}}')
    names = dict.fromkeys(("self", "project-a"), str(elsewhere))
    (scene.hive / "projects.json").write_text(json.dumps(names))
    (scene.hive / "hive").write_text("{}")


def test_a_worker_that_rewrites_its_project_gains_nothing(scene: Scene) -> None:
    elsewhere = scene.home.root / "elsewhere"
    elsewhere.mkdir()
    worker = scene.spawn(script([ASKING], ["crash"], [DONE]), "self")
    scene.wait_for_state(worker, "need_input")
    grab(scene, worker, elsewhere)
    scene.run("answer", worker, "--option", "1")
    scene.wait_for_state(worker, "died")
    grab(scene, worker, elsewhere)
    scene.run("resume", worker, "Go on.")
    scene.wait_for_state(worker, "done")
    played = scene.played()
    assert len(played) == 3
    for run in played:
        assert SKIP not in run["arguments"]
        assert run["cwd"] == str(scene.home.project)
    assert "total 0.00 USD" in scene.run("costs")


def test_nor_does_one_that_is_respawned(scene: Scene) -> None:
    elsewhere = scene.home.root / "elsewhere"
    elsewhere.mkdir()
    worker = scene.spawn(script(["ignore", "hang"], ["hang"], ["cost 0.01"]), "self")
    until(lambda: (scene.state(worker) / "runs" / "1.json").exists(), "not begun")

    def fresh() -> list[str]:
        grab(scene, worker, elsewhere)
        tick(scene, POLICY="respawn", **SOON)
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
    said = scene.result("projects", "add", "all", str(folder), expect=1).stderr
    assert "sets what workers may do" in said


# ---- what 1.0.0 left


def as_it_was(scene: Scene, workers: list[str], at_work: bool = False, **card: Any) -> None:
    """Put the state back to where 1.0.0 had it."""
    if not at_work:
        until(lambda: not scene.processes(), "a runner is still at it")
    for worker in workers:
        old = scene.hive / "state" / worker
        old.parent.mkdir(exist_ok=True)
        scene.state(worker).rename(old)
        found = json.loads((old / "worker.json").read_text())
        (old / "worker.json").write_text(json.dumps(found | card))
    shutil.rmtree(scene.records)


def test_what_lay_in_the_hive_is_taken_over_once(scene: Scene) -> None:
    workers = [scene.spawn(script([ASKING], [DONE])) for _ in range(2)]
    for worker in workers:
        scene.wait_for_state(worker, "need_input")
    as_it_was(scene, workers)
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


def test_rights_that_nobody_chose_are_not_taken_over(scene: Scene) -> None:
    worker = scene.spawn(script([ASKING], [DONE]))
    scene.wait_for_state(worker, "need_input")
    as_it_was(scene, [worker], flags=[SKIP])
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


def test_killed_at_any_step_it_is_taken_over_in_the_end(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = [scene.spawn(script([DONE])) for _ in range(2)]
    for worker in workers:
        scene.wait_for_state(worker, "done")
    before = {worker: (scene.state(worker) / "worker.json").read_bytes() for worker in workers}
    as_it_was(scene, workers, flags=[SKIP])
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


def test_a_working_worker_of_1_0_0_continues(scene: Scene) -> None:
    worker = scene.spawn(script(["hang"]))
    scene.wait_for_state(worker, "working")
    old = scene.hive / "state" / worker
    as_it_was(scene, [worker], at_work=True)
    found = scene.row(worker)
    assert found["lives"]
    assert old.resolve() == scene.state(worker)  # its runner writes its end there
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
