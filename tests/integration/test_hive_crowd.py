"""Five hundred workers fit on one screen."""

import json
import random
import shutil
import time
import uuid
from collections.abc import Iterator

import pytest

from tests.conftest import made_home
from tests.hive_scene import Scene, on_terminal
from tests.integration.test_hive_screen import ENDED, write_worker
from tests.rounds import SEED

WORKERS = 500
FIELDS = {
    "done": {"result": "Fixed the session timeout", "committed": True, "parked": True},
    "need_input": {"question": "Which timeout should be the default?", "options": ["5", "30"]},
    "error": {"error": "Cannot find auth.py", "suggestion": "Name the module"},
    "context_full": {"remaining": "Tests and documentation"},
    "working": {"progress": "Read the auth flow"},
}
SUCCEEDED = ENDED | {"outcome": "success"}
SHARES = (420, 6, 9, 5, 60)  # the processes of working ones have ended


@pytest.fixture(scope="module")
def crowd() -> Iterator[Scene]:
    with made_home() as home:
        scene = Scene(home)
        scene.begin()
        write_all(scene)
        yield scene
        scene.end()


def write_all(scene: Scene) -> None:
    some = random.Random(SEED)
    for word, share in zip(FIELDS, SHARES, strict=True):
        for _ in range(share):
            session = str(uuid.UUID(int=some.getrandbits(128), version=4))
            status = {"status": word, **FIELDS[word]}
            write_worker(scene, session, some.choice([*scene.projects]), 1, SUCCEEDED, status)


def test_five_hundred_workers_fit_on_one_screen(crowd: Scene) -> None:
    began = time.monotonic()
    screen = crowd.run("check")
    first = time.monotonic() - began
    began = time.monotonic()
    crowd.run("check")
    print(f"\ncheck of {WORKERS} workers: {first:.2f} s at first, then", end=" ")
    print(f"{time.monotonic() - began:.2f} s")
    lines = screen.splitlines()
    assert len(lines) <= 24
    assert lines[0] == "500 workers"
    counted = [tuple(line.split(maxsplit=1)) for line in lines[1:6]]
    assert counted == [
        ("6", "waiting for an answer"),
        ("9", "with an error"),
        ("60", "ended without a status.json"),
        ("5", "out of context"),
        ("420", "done"),
    ]
    shown = lines[7:-1]
    assert [line.split()[0] for line in shown[:6]] == ["need_input"] * 6
    assert "Which timeout should be the default?" in shown[0]
    assert lines[-1] == f"... and {WORKERS - len(shown)} more: hivepipe hive check --all"
    assert len(crowd.run("check", "--all").splitlines()) > WORKERS
    assert len(json.loads(crowd.run("check", "--json"))["workers"]) == WORKERS


@pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux")
def test_the_list_fits_the_terminal(crowd: Scene) -> None:
    lines = on_terminal(crowd, "hive", "check", columns=110, lines=36)
    assert lines[0] == "500 workers"  # nothing scrolled out of view
    assert len(lines) <= 35
    assert max(map(len, lines)) <= 110
