"""kill -9 of an archiver after each call that changes a file: a retry gives the same bytes."""

import os
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tests.archive_scene import TOKEN, Scene, line, lines, use_small_chunks
from tests.faults.harness import killed_at, watched


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use_small_chunks(monkeypatch, tmp_path / "live")


def both_jobs(scene: Scene, path: Path | None = None, **said: str) -> Callable[[], object]:
    """Return the work of both archiving jobs of a turn."""
    return lambda: (scene.extend(path, **said), scene.extend(path, settled=True, **said))


def first_time(scene: Scene) -> Callable[[], object]:
    scene.path.write_bytes(lines(12) + line(12, f"key {TOKEN}") + lines(3, 13)[:-1])
    return both_jobs(scene)


def another_turn(scene: Scene) -> Callable[[], object]:
    scene.path.write_bytes(lines(10))
    scene.extend()
    scene.path.write_bytes(lines(20))
    return both_jobs(scene)


def replaced(scene: Scene) -> Callable[[], object]:
    scene.path.write_bytes(lines(10))
    scene.extend()
    scene.path.write_bytes(lines(6, 4) + lines(10, 30))
    return both_jobs(scene)


def shrunk(scene: Scene) -> Callable[[], object]:
    scene.path.write_bytes(lines(10))
    scene.extend()
    scene.path.write_bytes(lines(4))
    return both_jobs(scene)


def back_again(scene: Scene) -> Callable[[], object]:
    shrunk(scene)()
    scene.path.write_bytes(lines(12))
    return both_jobs(scene)


def a_subagent(scene: Scene) -> Callable[[], object]:
    scene.path.write_bytes(lines(3))
    scene.extend()
    path = scene.agent_path()
    path.write_bytes(lines(6, 50))
    return both_jobs(scene, path, agent_type="Explore")


def state(folder: Path) -> int:
    """Return a number that differs after a change of any file."""
    paths = [f"{inner}/{name}" for inner, _, names in os.walk(folder) for name in (".", *names)]
    found = [(path, os.lstat(path)) for path in paths]
    return hash(tuple((path, s.st_ino, s.st_mode, s.st_size, s.st_mtime_ns) for path, s in found))


def changing_calls(folder: Path, work: Callable[[], object]) -> list[int]:
    """Return the calls at which files differ from those at the call before."""
    states = watched(work, lambda _frame: state(folder))
    return [call for call, (before, now) in enumerate(pairwise(states), 2) if before != now]


@pytest.mark.parametrize(
    "prepare", [first_time, another_turn, replaced, shrunk, back_again, a_subagent]
)
def test_an_archiver_killed_at_any_call_is_repeated_exactly(
    tmp_path: Path, prepare: Callable[[Scene], Callable[[], object]]
) -> None:
    live, before = tmp_path / "live", tmp_path / "before"
    prepare(Scene(live))
    shutil.copytree(live, before)

    def again() -> Callable[[], object]:
        """Restore the folders and return the work of a new process."""
        shutil.rmtree(live)
        shutil.copytree(before, live)
        return fresh_work()

    def fresh_work() -> Callable[[], object]:
        scene = Scene(live)
        if prepare is a_subagent:
            return both_jobs(scene, scene.agent_path(), agent_type="Explore")
        return both_jobs(scene)

    again()()
    wanted, messages = Scene(live).files(), set(Scene(live).reported())
    assert messages
    calls = changing_calls(live, again())
    assert calls
    for call in calls:
        assert killed_at(call, again())
        fresh_work()()
        assert Scene(live).files() == wanted, f"killed at call {call}"
        assert set(Scene(live).reported()) == messages, f"killed at call {call}"
    print(f"{prepare.__name__}: {len(calls)} kills")
