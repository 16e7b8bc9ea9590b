"""The periodic check of silent workers reports them by default, and takes each step once."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta

from hivepipe.db.activity import record_activity
from hivepipe.db.database import Database
from hivepipe.events.job_plan import utc
from hivepipe.orchestrator.respawn_policy import record_step
from hivepipe.orchestrator.worker import Worker
from tests.conftest import until
from tests.hive_scene import DONE, Scene, script, tick

SHORT_TIMES = {"STALE_SECS": "0.2", "GRACE_SECS": "0.2"}


def steps(scene: Scene, worker: str) -> list[tuple[str, int]]:
    path = scene.state(worker) / "steps.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(step["step"], step["run"]) for step in map(json.loads, lines)]


def runs(scene: Scene) -> int:
    return len(scene.played())


def ticks_until(scene: Scene, worker: str, step: tuple[str, int], **settings: str) -> None:
    """Run the periodic check until this is the last step that was taken."""

    def is_taken() -> bool:
        tick(scene, **SHORT_TIMES | settings)
        return steps(scene, worker)[-1:] == [step]

    until(is_taken, f"{step} is not taken: {steps(scene, worker)}")


def started_worker(scene: Scene, task: str) -> str:
    worker = scene.spawn(task)
    before = runs(scene)
    until(lambda: runs(scene) >= max(before, 1), "it never began")
    return worker


def test_by_default_a_silent_worker_is_only_reported_once(scene: Scene) -> None:
    worker = started_worker(scene, script(["hang"]))
    output = until(lambda: tick(scene, **SHORT_TIMES), "nothing was reported")
    assert f"{worker}: report" in output
    assert tick(scene, **SHORT_TIMES) == ""
    assert steps(scene, worker) == [("report", 1)]
    assert scene.row(worker)["lives"]
    assert runs(scene) == 1


def test_a_torn_or_failing_step_does_not_block_other_workers(scene: Scene) -> None:
    workers = sorted(scene.spawn(script(["hang"])) for _ in range(2))
    until(lambda: runs(scene) == 2, "they never began")
    (scene.state(workers[0]) / "steps.jsonl").mkdir()
    # a line cut off by a full disk
    (scene.state(workers[1]) / "steps.jsonl").write_text('{"step": "rep')
    until(lambda: "report" in tick(scene, **SHORT_TIMES), "one hides the other")
    lines = (scene.state(workers[1]) / "steps.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines[1:]] == ["report"]
    assert f"{workers[1]}: report" not in tick(scene, **SHORT_TIMES)  # it is reported once


def test_a_recent_start_or_tool_call_counts_as_activity(scene: Scene) -> None:
    worker = started_worker(scene, script(["hang"]))
    assert tick(scene, POLICY="respawn") == ""
    assert scene.row(worker)["state"] == "working"
    session = scene.played()[0]["session"]
    folder = scene.folder(worker)
    until(lambda: '"user"' in (folder / "transcript.jsonl").read_text(), "it says nothing")
    with closing(Database(scene.home.database)) as db:
        for minutes in (90, 0):  # the later call counts
            at = datetime.now(UTC) - timedelta(minutes=minutes)
            note_call(db, session, at)
    run_file = scene.state(worker) / "runs" / "1.json"
    run = json.loads(run_file.read_text())
    hour_ago_ns = time.time_ns() - 4000 * 10**9
    run_file.write_text(json.dumps(run | {"started_ns": hour_ago_ns}))
    os.utime(folder / "transcript.jsonl", ns=(hour_ago_ns, hour_ago_ns))
    assert tick(scene) == ""
    assert scene.row(worker)["state"] == "working"
    with closing(Database(scene.home.database)) as db, db.transaction():
        db.execute("UPDATE activity SET last_active_at = '2026-01-01T00:00:00.000Z'", {})
    assert scene.row(worker)["state"] == "stale"


def note_call(db: Database, session: str, at: datetime) -> None:
    """Store a tool call, as the writer does."""
    since_ms = int(at.timestamp() * 1000)
    totals = {"calls": 1, "failed": 0, "denied": 0, "warned": 0}
    with db.transaction():
        state = {
            "open_calls": 0,
            "turn_is_open": True,
            "last_work_at": None,
            "last_active_at": f"{utc(since_ms * 1_000_000)[:-4]}Z",
        }
        record_activity(db, session, since_ms, totals, state)


def test_no_step_is_taken_for_a_worker_that_waits_or_has_ended_by_itself(scene: Scene) -> None:
    waiting, finished = '{"status": "need_input", "question": "?"}', '{"status": "done"}'
    given_up = '{"status": "error", "error": "so", "by": "hivepipe"}'  # its own claim
    hanging = [scene.spawn(script([f"status {each}", "hang"])) for each in (waiting, finished)]
    ended = [scene.spawn(script([each], [DONE])) for each in ("crash", f"status {given_up}")]
    for worker, state in zip(ended, ("died", "error"), strict=True):
        scene.wait_for_state(worker, state)
        until(lambda worker=worker: scene.is_recorded(worker, 1), "it goes on")
    until(lambda: all(scene.row(worker)["status"] for worker in hanging), "no status")
    for _ in range(3):
        assert tick(scene, POLICY="respawn", **SHORT_TIMES) == ""
    assert [steps(scene, worker) for worker in (*hanging, *ended)] == [[]] * 4
    assert all(scene.row(worker)["lives"] for worker in hanging)
    assert runs(scene) == 4


def test_a_worker_that_cannot_be_resumed_is_not_stopped(scene: Scene) -> None:
    """The stack lacks a variable that `hive_env` names, so the next run would have no login."""
    worker = started_worker(scene, script(["hang"]))
    scene.config.write_text('hive_rights = "edits"\nhive_env = ["SHOP_KEY"]\n')
    output = until(lambda: tick(scene, POLICY="ask", **SHORT_TIMES), "nothing was reported")
    assert f"{worker}: report" in output
    assert "SHOP_KEY" in output
    assert tick(scene, POLICY="ask", **SHORT_TIMES) == ""
    assert scene.row(worker)["lives"]
    scene.env["SHOP_KEY"] = "abc"
    ticks_until(scene, worker, ("stop", 1), POLICY="ask")


def test_an_answer_without_a_status_is_quoted(scene: Scene) -> None:
    worker = started_worker(scene, script(["hang"], ["say I am here.", "cost 0.01"]))
    ticks_until(scene, worker, ("ask", 1), POLICY="ask")
    until(lambda: scene.is_recorded(worker, 2), "it never answers")  # no check may stop it before
    ticks_until(scene, worker, ("give up", 2), POLICY="ask")
    found = scene.row(worker)
    assert found["state"] == "error"
    run = json.loads((scene.state(worker) / "runs" / "2.json").read_text())
    assert run["words"], (scene.folder(worker) / "stderr.log").read_text()
    assert found["fields"]["error"].endswith(run["words"])


def test_a_worker_that_never_answers_is_given_up_parked_and_respawned_once(scene: Scene) -> None:
    task = script(["ignore", "hang"], ["hang"], ["report What I learned.", "cost 0.01"])
    worker = started_worker(scene, task)
    until(lambda: (scene.folder(worker) / "transcript.jsonl").read_text(), "no word")
    ticks_until(scene, worker, ("park", 2), POLICY="respawn")
    until(lambda: scene.is_recorded(worker, 3), "not parked")
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
    found = scene.row(worker)
    assert (found["state"], found["fields"]["by"]) == ("error", "hivepipe")
    (fresh,) = [each["id"] for each in scene.check() if each["id"] != worker]
    ticks_until(scene, fresh, ("park", 2), POLICY="respawn")
    until(lambda: scene.is_recorded(fresh, 3), "not parked")
    for _ in range(2):
        tick(scene, POLICY="respawn", **SHORT_TIMES)
    assert len(scene.check()) == 2  # one respawn is the limit
    assert scene.violations == ""


WORKING = 'status {"status": "working", "progress": "so far"}'


HANGING = (
    (["hang"], ["hang"], ["hang"]),
    (["hang"], ["hang"], [WORKING, "hang"]),
    (["hang"], ["hang"], ["ignore", WORKING, "hang"]),
    (["hang"], ["hang"], [WORKING, "crash"]),
    (["hang"], ["crash"], ["raw {", "hang"]),
    ([WORKING, "hang"], [WORKING, "hang"], [WORKING, "exit 1"]),
)


def test_each_step_is_taken_once_whatever_hangs(scene: Scene) -> None:
    """Each worker is asked once and parked once, because every further run costs money."""
    workers = [scene.spawn(script(*three, ["hang"], ["hang"])) for three in HANGING]
    until(lambda: runs(scene) == len(workers), "they never began")
    ticks_until_quiet(scene)
    for worker, three in zip(workers, HANGING, strict=True):
        taken = steps(scene, worker)
        assert len(taken) == len(set(taken)), (three, taken)
        names = [name for name, _ in taken]
        assert [names.count(name) for name in ("ask", "give up", "park")] == [1, 1, 1], (
            three,
            taken,
        )
        assert scene.row(worker)["run"] == 3
    assert scene.violations == ""


def test_a_manually_parked_worker_is_not_asked_when_it_hangs(scene: Scene) -> None:
    worker = scene.spawn(script([WORKING], ["hang"], ["hang"]))
    scene.wait_for_state(worker, "died")
    scene.run("park", worker)
    until(lambda: runs(scene) == 2, "it is not parked")
    ticks_until_quiet(scene)
    assert steps(scene, worker) == [("stop", 2)]


def test_a_monitor_parks_once_even_if_parking_fills_the_context(scene: Scene) -> None:
    full = 'status {"status": "context_full", "remaining": "half of it"}'
    worker = scene.spawn(script([full], [full], [full], words="Build it."))
    for run in (1, 2):
        until(lambda run=run: runs(scene) == run, "no run began")
        until(lambda run=run: scene.is_recorded(worker, run), "it goes on")
        scene.run("monitor", "--once", "--respawn")
    assert steps(scene, worker) == [("park", 1), ("respawn", 2)]
    (fresh,) = [each["id"] for each in scene.check() if each["id"] != worker]
    task = (scene.folder(fresh) / "task.md").read_text()
    assert task.startswith("Build it.")
    assert "half of it" in task
    (row,) = scene.home.rows("SELECT respawn_of FROM hive_workers WHERE respawn_of IS NOT NULL")
    assert row["respawn_of"] == worker
    for run in (1, 2):  # the new worker fills its context, too: one respawn is the limit
        until(lambda run=run: scene.is_recorded(fresh, run), "it is not parked")
        scene.run("monitor", "--once", "--respawn")
    assert len(scene.check()) == 2


def test_a_silent_worker_is_asked_continues_and_is_asked_again_after_a_resume(scene: Scene) -> None:
    worker = started_worker(scene, script(["hang"], [DONE], ["hang"], [DONE]))
    ticks_until(scene, worker, ("ask", 1), POLICY="ask")
    scene.wait_for_state(worker, "done")
    scene.run("resume", worker, "And one more thing.")
    until(lambda: runs(scene) == 3, "it is not resumed")
    ticks_until(scene, worker, ("ask", 3), POLICY="ask")
    scene.wait_for_state(worker, "done")
    until(lambda: not scene.processes(), "a process still runs")
    for _ in range(2):
        assert tick(scene, POLICY="ask", **SHORT_TIMES) == ""
    assert steps(scene, worker) == [("stop", 1), ("ask", 1), ("stop", 3), ("ask", 3)]
    assert scene.played()[1]["prompt"].startswith("Are you still working?")
    assert scene.violations == ""


def test_a_step_is_recorded_by_one_process_only(scene: Scene) -> None:
    """The scheduler and a monitor may check the same worker at the same moment."""
    worker = scene.spawn(script([DONE]))
    scene.wait_for_state(worker, "done")
    found = Worker(scene.folder(worker), scene.state(worker))
    with ThreadPoolExecutor(8) as pool:
        noted = list(pool.map(lambda _: record_step(found, "ask", 1), range(32)))
    assert noted.count(True) == 1
    assert steps(scene, worker) == [("ask", 1)]


def ticks_until_quiet(scene: Scene) -> None:
    """Run the periodic check until all workers' processes have ended and no step is due."""
    quiet = 0

    def is_quiet() -> bool:
        nonlocal quiet
        output = tick(scene, POLICY="ask", LIMIT_USD="1000", **SHORT_TIMES)
        found = scene.check()
        lives = any(
            each["lives"] or not scene.is_recorded(each["id"], each["run"]) for each in found
        )
        quiet = 0 if output or lives else quiet + 1
        return quiet == 5

    until(is_quiet, f"they go on: {[steps(scene, each['id']) for each in scene.check()]}")


def test_no_worker_is_asked_above_the_cost_limit(scene: Scene) -> None:
    worker = started_worker(scene, script(["hang"], [DONE]))
    ticks_until(scene, worker, ("limit", 1), POLICY="ask", LIMIT_USD="0")
    assert tick(scene, POLICY="ask", LIMIT_USD="0", **SHORT_TIMES) == ""
    assert steps(scene, worker) == [("stop", 1), ("limit", 1)]
    assert runs(scene) == 1
    ticks_until(scene, worker, ("ask", 1), POLICY="ask")
    scene.wait_for_state(worker, "done")


def test_running_workers_count_towards_the_limit_before_their_cost_is_known(scene: Scene) -> None:
    """Workers that fall silent together are not all asked together: each may cost a dollar."""
    for _ in range(3):
        scene.spawn(script(["hang"], ["wait /nonexistent"]))
    until(lambda: runs(scene) == 3, "they never began")

    def is_enough() -> bool:
        tick(scene, POLICY="ask", LIMIT_USD="2", **SHORT_TIMES | {"GRACE_SECS": "60"})
        last = [step for each in scene.check() for step in steps(scene, each["id"])[-1:]]
        return sorted(last) == [("ask", 1), ("ask", 1), ("limit", 1)]

    until(is_enough, "not two were asked")
    until(lambda: runs(scene) == 5, "they were not asked")
