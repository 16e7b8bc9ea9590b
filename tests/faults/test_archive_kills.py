"""kill -9 of an archiver after each call that changes a file: a retry gives the same bytes."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.archive_scene import TOKEN, Scene, line, lines, use_small_chunks
from tests.faults.harness import changing_calls, killed_at


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use_small_chunks(monkeypatch, tmp_path / "live")


def both_jobs(scene: Scene, path: Path | None = None, **said: str) -> Callable[[], object]:
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
