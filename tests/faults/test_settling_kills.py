"""kill -9 during the removal of secrets found later: a retry gives the same bytes."""

import random
import shutil
from pathlib import Path

import pytest

from hivepipe.archive import upkeep
from tests.archive_scene import Scene, line, lines, use_small_chunks
from tests.faults.harness import killed_at, watched
from tests.learned_secrets import agent_lines, main_lines, secrets
from tests.rounds import SEED, rounds
from tests.unit.test_found_values import remaining_secrets

ROUNDS = rounds(24)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use_small_chunks(monkeypatch, tmp_path / "live")


def settle(live: Path) -> None:
    """Do the jobs at the end of a session, as a new process does."""
    scene = Scene(live)
    for path in (scene.path, scene.agent_path()):
        scene.extend(path, settled=True)


def test_a_killed_removal_of_later_secrets_is_repeated_exactly(tmp_path: Path) -> None:
    live, prepared = tmp_path / "live", tmp_path / "prepared"
    rng, of = random.Random(f"settling {SEED}"), secrets(SEED)
    scene = Scene(live)
    scene.path.write_bytes(b"".join(main_lines(of)[:8]) + lines(20, 30))
    scene.extend()
    agent = scene.agent_path()
    agent.write_bytes(b"".join(agent_lines(of)))
    scene.extend(agent)
    with scene.path.open("ab") as grows:  # The last archiving finds some of it.
        grows.write(b"".join(main_lines(of)[8:]) + line(60, f"bye {of.queue}"))
    assert remaining_secrets(of, live / "shop")
    shutil.copytree(live, prepared)
    calls = len(watched(lambda: settle(live), lambda _frame: 0))
    assert calls > 200

    def begin() -> None:
        shutil.rmtree(live)
        shutil.copytree(prepared, live)

    begin()
    settle(live)
    wanted = Scene(live).files()
    assert remaining_secrets(of, live / "shop") == []
    killed = 0
    for _ in range(ROUNDS):
        begin()
        at = rng.randrange(1, calls)
        for again in (at, *rng.sample(range(1, calls), rng.choice((0, 0, 1, 2)))):
            killed += killed_at(again, lambda: settle(live))
        settle(live)
        scene = Scene(live)
        assert scene.files() == wanted, f"killed at call {at} of {calls}"
        assert remaining_secrets(of, live / "shop") == [], f"killed at call {at} of {calls}"
        assert [trouble for _, trouble in upkeep.verify(scene.archives) if trouble] == []
    assert killed >= ROUNDS
    print(f"{killed} kills, {calls} calls")
