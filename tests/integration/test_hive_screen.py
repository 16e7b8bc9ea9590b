"""The output of `hivepipe hive check` in a terminal; docs/hive-check.png shows this screen."""

import json
import os
import shutil
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from hivepipe.hook.alive import start_time
from hivepipe.orchestrator.recorded_process import machine
from hivepipe.orchestrator.worker_state import ORDER
from tests.conftest import Home
from tests.hive_scene import Scene, on_terminal

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux")
MINUTE_NS = 60 * 10**9
ENDED: dict[str, Any] = {"ended_at": "2026-11-21T08:10:00.000Z", "exit_code": 0, "pid": 1}
KILLED = ENDED | {"exit_code": -9}
RUNNING: dict[str, Any] = {"pid": os.getpid(), "pid_started": start_time(os.getpid())}
NOT_STARTED = {"pid": 0, "trouble": "claude: No such file or directory"}
OK = {"committed": True, "parked": True}


def status_of(word: str, **fields: object) -> dict[str, object]:
    return {"status": word, **fields}


# project, minutes since the last activity, run (None: hivepipe started none), status
WORKERS: list[tuple[str, int, dict[str, Any] | None, object]] = [
    (
        "shop",
        4,
        ENDED,
        status_of("need_input", question="5 or 30 minutes by default?", options=["5"]),
    ),
    ("shop-front", 2, ENDED, status_of("need_input", question="May I drop support for IE?")),
    ("infra", 21, ENDED, status_of("error", error="Cannot find auth.py", suggestion="Name it")),
    ("infra", 33, ENDED, status_of("error", error="terraform plan needs a login")),
    ("shop", 12, KILLED, None),
    ("notes", 48, ENDED, status_of("working", progress="Sorted the first half")),
    ("shop-front", 95, RUNNING, status_of("working", progress="Runs the browser tests")),
    ("infra", 140, RUNNING, None),
    ("shop", 7, ENDED, status_of("context_full", remaining="Rate limit tests and documentation")),
    ("notes", 15, ENDED, "I am done!"),
    ("shop", 61, NOT_STARTED, None),
    ("shop", 1, RUNNING, status_of("working", progress="Reads the auth flow")),
    ("shop-front", 0, RUNNING, status_of("working", progress="Half of the buttons are new")),
    ("notes", 3, RUNNING, None),
    ("infra", 5, RUNNING | {"kind": "park"}, status_of("done", result="Moved the state", **OK)),
    ("shop", 25, ENDED, status_of("done", result="Session timeout is configurable", **OK)),
    (
        "shop",
        80,
        ENDED,
        status_of("done", result="Dead code is gone", committed=False, parked=True),
    ),
    ("shop-front", 44, ENDED, status_of("done", result="Icons are SVG", **OK)),
    ("notes", 200, ENDED, status_of("done", result="Tagged 412 notes", **OK)),
    ("notes", 9, None, None),
    ("notes", 11, ENDED | {"outcome": "success", "words": "I am here."}, None),
    ("shop", 13, ENDED, None),
]
CANCELLED = WORKERS[-1]
SHOWN = {
    "need_input": (2, "waiting for an answer"),
    "error": (2, "with an error"),
    "died": (2, "ended without a result"),
    "ended": (1, "ended without a status.json"),
    "stale": (2, "silent"),
    "context_full": (1, "out of context"),
    "broken": (1, "with an unreadable status.json"),
    "not started": (1, "never started"),
    "working": (3, "working"),
    "parking": (1, "writing down what was learned"),
    "cancelled": (1, "cancelled"),
    "done": (4, "done"),
    "unknown": (1, "unknown"),
}


@pytest.fixture
def scene(private_home: Home) -> Iterator[Scene]:
    made = Scene(private_home)
    made.run("init")
    for number, worker in enumerate(WORKERS, 1):
        session = str(uuid.uuid5(uuid.NAMESPACE_OID, str(number)))
        write_worker(made, session, *worker)
        if worker is CANCELLED:
            cancel(made, session, worker[0])
    try:
        yield made
    finally:
        made.end()


def write_worker(
    scene: Scene, session: str, project: str, minutes: int, run: dict[str, Any] | None, word: object
) -> None:
    """Write the files of a worker whose last activity was that many minutes ago."""
    id = f"{project}-{session}"
    folder, heard_ns = scene.folder(id), time.time_ns() - minutes * MINUTE_NS
    folder.mkdir()
    (folder / "session-id").write_text(f"{session}\n")
    (folder / "task.md").write_text("A task.\n")
    if word is not None:
        text = word if isinstance(word, str) else json.dumps(word)
        (folder / "status.json").write_text(text)
        os.utime(folder / "status.json", ns=(heard_ns, heard_ns))
    if run is None:
        return
    plan = {"number": 1, "kind": "spawn", "command": ["claude"], "cwd": "/", "machine": machine()}
    started_ns = heard_ns if word is None else heard_ns - MINUTE_NS
    cost = {"cost_usd": "0.07"} if "ended_at" in run else {}
    (scene.state(id) / "runs").mkdir(parents=True)
    written = json.dumps(plan | {"started_ns": started_ns} | cost | run)
    (scene.state(id) / "runs" / "1.json").write_text(written)


def cancel(scene: Scene, session: str, project: str) -> None:
    card = {"session": session, "task_id": "unwanted", "project": project}
    (scene.state(f"{project}-{session}") / "worker.json").write_text(json.dumps(card))
    scene.hivepipe("task", "cancel", "unwanted", "--reason", "Too late", "--unknown")


def test_workers_in_all_states_fit_on_one_screen(scene: Scene) -> None:
    lines = on_terminal(scene, "hive", "check", columns=100, lines=40)
    assert lines[0] == f"{len(WORKERS)} workers"
    heads = [tuple(line.split(maxsplit=1)) for line in lines[1 : 1 + len(SHOWN)]]
    assert heads == [(str(number), meaning) for number, meaning in SHOWN.values()]
    assert tuple(SHOWN) == ORDER  # every state is shown
    rows = lines[2 + len(SHOWN) :]
    counted = Counter(next(state for state in ORDER if row.startswith(state)) for row in rows)
    assert counted == {state: number for state, (number, _) in SHOWN.items()}
    assert [row.split()[0] for row in rows[:4]] == ["need_input"] * 2 + ["error"] * 2
    screen = "\n".join(rows)
    for words in (
        "5 or 30 minutes by default?",
        "was killed by signal 9",
        "silent, its process runs",
        "status.json is half written, or not JSON",
        "claude: No such file or directory",
        "Dead code is gone; done without a commit",
        "No status yet",
        "it wrote no status.json; its last words: I am here.",
        "its task was cancelled: Too late",
    ):
        assert words in screen
    assert max(map(len, lines)) <= 100


def test_a_list_that_is_too_long_ends_with_the_number_of_the_others(scene: Scene) -> None:
    for lines in (
        scene.run("check").splitlines(),
        on_terminal(scene, "hive", "check", columns=100, lines=24),
    ):
        assert lines[0] == f"{len(WORKERS)} workers"  # nothing scrolled out of view
        assert len(lines) <= 24
        others = len(WORKERS) - len(lines) + len(SHOWN) + 3
        assert lines[-1] == f"... and {others} more: hivepipe hive check --all"
    assert len(scene.run("check", "--all").splitlines()) > len(WORKERS)
    assert len(json.loads(scene.run("check", "--json"))["workers"]) == len(WORKERS)
