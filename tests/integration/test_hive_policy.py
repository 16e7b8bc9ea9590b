"""What the clock does about silent workers: by default it says so, and each step is taken once."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from hivepipe.jobs import utc
from hivepipe.store.activity import record_activity
from hivepipe.store.database import Database
from tests.conftest import Home, until
from tests.hive_scene import DONE, Scene, script, tick

SOON = {"STALE_SECS": "0.2", "GRACE_SECS": "0.2"}


@pytest.fixture
def scene(private_home: Home) -> Iterator[Scene]:
    made = Scene(private_home)
    made.begin()
    try:
        yield made
    finally:
        made.end()


def steps(scene: Scene, worker: str) -> list[tuple[str, int]]:
    path = scene.state(worker) / "steps.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(step["step"], step["run"]) for step in map(json.loads, lines)]


def runs(scene: Scene) -> int:
    return len(scene.played())


def ticks_until(scene: Scene, worker: str, step: tuple[str, int], **settings: str) -> None:
    """Let the clock look until this is the last step that was taken, and not once more."""

    def is_taken() -> bool:
        tick(scene, **SOON | settings)
        return steps(scene, worker)[-1:] == [step]

    until(is_taken, f"{step} is not taken: {steps(scene, worker)}")


def begun(scene: Scene, task: str) -> str:
    worker = scene.spawn(task)
    before = runs(scene)
    until(lambda: runs(scene) >= max(before, 1), "it never began")
    return worker


def test_by_default_silence_is_said_once_and_nothing_is_done(scene: Scene) -> None:
    worker = begun(scene, script(["hang"]))
    said = until(lambda: tick(scene, **SOON), "nothing was said")
    assert f"{worker}: report" in said
    assert tick(scene, **SOON) == ""
    assert steps(scene, worker) == [("report", 1)]
    assert scene.stand(worker)["lives"]
    assert runs(scene) == 1


def test_half_a_step_spoils_no_other_and_one_in_trouble_keeps_nobody_waiting(
    scene: Scene,
) -> None:
    workers = sorted(scene.spawn(script(["hang"])) for _ in range(2))
    until(lambda: runs(scene) == 2, "they never began")
    (scene.state(workers[0]) / "steps.jsonl").mkdir()
    (scene.state(workers[1]) / "steps.jsonl").write_text('{"step": "rep')  # a full disk
    until(lambda: "report" in tick(scene, **SOON), "one hides the other")
    lines = (scene.state(workers[1]) / "steps.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines[1:]] == ["report"]
    assert f"{workers[1]}: report" not in tick(scene, **SOON)  # said once


def test_who_was_heard_of_within_the_hour_is_left_alone(scene: Scene) -> None:
    worker = begun(scene, script(["hang"]))
    assert tick(scene, POLICY="respawn") == ""
    assert scene.stand(worker)["state"] == "working"


def test_a_tool_call_is_a_sign_of_life(scene: Scene) -> None:
    worker = begun(scene, script(["hang"]))
    session = scene.played()[0]["session"]
    folder = scene.folder(worker)
    until(lambda: '"user"' in (folder / "transcript.jsonl").read_text(), "it says nothing")
    with closing(Database(scene.home.database)) as db:
        for minutes in (90, 0):  # the newest counts
            at = datetime.now(UTC) - timedelta(minutes=minutes)
            note_call(db, session, at)
    run_file = scene.state(worker) / "runs" / "1.json"
    run = json.loads(run_file.read_text())
    hour_ago_ns = time.time_ns() - 4000 * 10**9
    run_file.write_text(json.dumps(run | {"started_ns": hour_ago_ns}))
    os.utime(folder / "transcript.jsonl", ns=(hour_ago_ns, hour_ago_ns))
    assert tick(scene) == ""
    assert scene.stand(worker)["state"] == "working"
    with closing(Database(scene.home.database)) as db, db.transaction():
        db.execute("UPDATE activity SET last_active_at = '2026-01-01T00:00:00.000Z'", {})
    assert scene.stand(worker)["state"] == "stale"


def note_call(db: Database, session: str, at: datetime) -> None:
    """Let the store know of a tool call, as the writer does."""
    since_ms = int(at.timestamp() * 1000)
    totals = {"calls": 1, "failed": 0, "denied": 0, "warned": 0}
    with db.transaction():
        record_activity(
            db,
            session=session,
            since_ms=since_ms,
            last_active_at=f"{utc(since_ms * 1_000_000)[:-4]}Z",
            totals=totals,
            open_calls=0,
            turn_is_open=True,
            task="",
            profile="",
        )


@pytest.mark.parametrize(
    "status", ['{"status": "need_input", "question": "?"}', '{"status": "done"}']
)
def test_who_asks_or_is_done_is_never_stale(scene: Scene, status: str) -> None:
    worker = begun(scene, script([f"status {status}", "hang"]))
    until(lambda: scene.stand(worker)["status"], "no status")
    for _ in range(3):
        assert tick(scene, POLICY="respawn", **SOON) == ""
    assert steps(scene, worker) == []
    assert scene.stand(worker)["lives"]


def test_who_died_by_itself_is_told_of_and_not_resumed(scene: Scene) -> None:
    worker = scene.spawn(script(["crash"], [DONE]))
    scene.becomes(worker, "died")
    for _ in range(3):
        assert tick(scene, POLICY="respawn", **SOON) == ""
    assert steps(scene, worker) == []
    assert runs(scene) == 1


def test_a_silent_one_is_asked_and_goes_on(scene: Scene) -> None:
    worker = begun(scene, script(["hang"], [DONE]))
    ticks_until(scene, worker, ("ask", 1), POLICY="ask")
    scene.becomes(worker, "done")
    for _ in range(2):
        assert tick(scene, POLICY="ask", **SOON) == ""
    assert steps(scene, worker) == [("stop", 1), ("ask", 1)]
    assert scene.played()[1]["prompt"].startswith("Are you still working?")
    assert scene.violations == ""


def test_one_that_never_answers_is_given_up_parked_and_followed_once(scene: Scene) -> None:
    task = script(["ignore", "hang"], ["hang"], ["report What I learned.", "cost 0.01"])
    worker = begun(scene, task)
    until(lambda: (scene.folder(worker) / "transcript.jsonl").read_text(), "no word")
    ticks_until(scene, worker, ("park", 2), POLICY="respawn")
    until(lambda: scene.is_booked(worker, 3), "not parked")
    ticks_until(scene, worker, ("respawn", 3), POLICY="respawn")
    assert steps(scene, worker) == [
        ("stop", 1),
        ("kill", 1),
        ("ask", 1),
        ("stop", 2),
        ("give up", 2),
        ("park", 2),
        ("respawn", 3),
    ]
    found = scene.stand(worker)
    assert (found["state"], found["fields"]["by"]) == ("error", "hivepipe")
    (fresh,) = [each["id"] for each in scene.check() if each["id"] != worker]
    ticks_until(scene, fresh, ("park", 2), POLICY="respawn")
    until(lambda: scene.is_booked(fresh, 3), "not parked")
    for _ in range(2):
        tick(scene, POLICY="respawn", **SOON)
    assert len(scene.check()) == 2  # one respawn is the limit
    assert scene.violations == ""


def test_without_money_nobody_is_asked(scene: Scene) -> None:
    worker = begun(scene, script(["hang"], [DONE]))
    ticks_until(scene, worker, ("limit", 1), POLICY="ask", LIMIT_USD="0")
    assert tick(scene, POLICY="ask", LIMIT_USD="0", **SOON) == ""
    assert steps(scene, worker) == [("stop", 1), ("limit", 1)]
    assert runs(scene) == 1
    ticks_until(scene, worker, ("ask", 1), POLICY="ask")
    scene.becomes(worker, "done")


def test_who_says_that_it_was_given_up_is_not_believed(scene: Scene) -> None:
    said = 'status {"status": "error", "error": "so", "by": "hivepipe"}'
    worker = scene.spawn(script([said]))
    scene.becomes(worker, "error")
    until(lambda: not scene.processes(), "it goes on")
    for _ in range(3):
        assert tick(scene, POLICY="respawn", **SOON) == ""
    assert runs(scene) == 1


def test_what_goes_on_is_counted_before_it_says_what_it_cost(scene: Scene) -> None:
    """Who fell silent together is not asked together: each may cost a dollar."""
    for _ in range(3):
        scene.spawn(script(["hang"], ["wait /nonexistent"]))
    until(lambda: runs(scene) == 3, "they never began")

    def is_enough() -> bool:
        tick(scene, POLICY="ask", LIMIT_USD="2", **SOON | {"GRACE_SECS": "60"})
        last = [step for each in scene.check() for step in steps(scene, each["id"])[-1:]]
        return sorted(last) == [("ask", 1), ("ask", 1), ("limit", 1)]

    until(is_enough, "not two were asked")
    until(lambda: runs(scene) == 5, "they were not asked")
