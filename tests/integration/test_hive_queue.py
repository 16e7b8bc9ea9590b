"""The orchestrator's jobs in real queues: statuses from the monitor, and the periodic check."""

import json
import os
import signal
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hivepipe.db.database import Database
from hivepipe.db.location import database_path
from hivepipe.events.job_plan import Job
from hivepipe.jobs.envelope import compose
from hivepipe.monitor.snapshot import hive_states
from hivepipe.queue import client
from tests.conftest import Process, Server, Writer, accepted, is_drained, until
from tests.hive_scene import DONE, Scene, script

WORKING = 'status {"status": "working", "progress": "read it all"}'


def test_the_monitor_stores_each_status_once(
    scene: Scene, redis_server: Server, writer: Writer
) -> None:
    worker = scene.spawn(script([WORKING, "hang"]))
    until(lambda: (scene.folder(worker) / "status.json").exists(), "no status was written")
    before = jobs(redis_server)
    with closing(Database(database_path(str(scene.home.path)))) as db, db.transaction():
        # the store is locked, so the status is enqueued
        assert "STATUS_CHANGE:" in scene.run("monitor", "--once")
    assert jobs(redis_server) == before + 1
    # as for another monitor, which has reported nothing yet
    (scene.hive / "reported.json").unlink()
    scene.run("monitor", "--once")
    assert jobs(redis_server) == before + 1
    assert len(scene.home.rows("SELECT * FROM hive_statuses")) == 1
    writer.start()
    until(lambda: is_drained(scene.home, redis_server, writer), "not drained")
    (row,) = scene.home.rows("SELECT worker_id, status, content FROM hive_statuses")
    assert (row["worker_id"], row["status"]) == (worker, "working")
    assert json.loads(row["content"])["progress"] == "read it all"


def jobs(server: Server) -> int:
    with server.client() as redis:
        waiting = redis.lrange("rq:queue:medium", 0, -1)
        names = [redis.hget(b"rq:job:" + each, "description") or b"" for each in waiting]
    return sum(name.startswith(b"record_status") for name in names)


def test_the_periodic_check_finds_an_unobserved_end(
    scene: Scene, redis_server: Server, writer: Writer, slow_worker: Process
) -> None:
    worker = scene.spawn(script(["cost 0.04", "hang"]))
    transcript = scene.folder(worker) / "transcript.jsonl"
    until(lambda: "result" in transcript.read_text(), "no cost")
    run = json.loads((scene.state(worker) / "runs/1.json").read_text())
    for pid in (run["runner_pid"], run["pid"]):
        os.kill(pid, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{run['pid']}").exists(), "not gone")
    client.push(redis_server.address, [compose("hives-1", Job("check_hives", {}, "hives"), 1)], 5.0)
    assert accepted(redis_server) > 0
    writer.start()
    slow_worker.start()
    until(lambda: lost_runs(scene), slow_worker.text)
    assert lost_runs(scene) == [{"worker_id": worker, "is_lost": 1, "cost_micro_usd": 40_000}]
    assert hive_states(str(scene.home.path)) == {"died": 1}


def test_old_workers_are_deleted_with_their_rows(
    scene: Scene, redis_server: Server, writer: Writer, slow_worker: Process
) -> None:
    """One archived a year ago, one deleted then, one archived since, and one in use."""
    workers = [scene.spawn(script(["cost 0.25", DONE])) for _ in range(4)]
    for worker in workers:
        scene.wait_for_state(worker, "done")
    until(lambda: not scene.processes(), "a process still runs")
    old, deleted, young, present = workers
    scene.run("archive", old, young)
    scene.run("delete", deleted, "--yes")
    report = json.loads(scene.hivepipe("disk", "--json").stdout)
    assert report["retention"]["workers"] == 365
    assert report["stores"]["workers"] > 0
    assert report["stores"]["old_workers"] > 0
    scene.home.installed_long_ago()
    year_ago = f"{datetime.now(UTC) - timedelta(days=366):%Y-%m-%d}T00:00:00.000Z"
    with closing(Database(scene.home.database)) as db, db.transaction():
        for column, worker in (("archived_at", old), ("deleted_at", deleted)):
            sql = f"UPDATE hive_workers SET {column} = :time WHERE id = :id"
            db.execute(sql, {"time": year_ago, "id": worker})
        for table, column in (("hive_statuses", "changed_at"), ("hive_runs", "started_at")):
            db.execute(f"UPDATE {table} SET {column} = :time", {"time": year_ago})
    archive = scene.hive / "archive" / old
    # a worker whose files were changed since then is kept
    for path in (archive, *archive.rglob("*")):
        os.utime(path, (time.time() - 367 * 86_400,) * 2)
    ticks = [Job("prune_files", {}, "files"), Job("prune", {}, "rows")]
    now = time.time_ns()
    jobs = [compose(f"{job.operation}-1", job, now) for job in ticks]
    client.push(redis_server.address, jobs, 5.0)
    writer.start()
    slow_worker.start()
    kept = {young, present}
    until(lambda: values_of(scene, "hive_workers", "id") == kept, slow_worker.text)
    until(lambda: values_of(scene, "hive_runs", "worker_id") == kept, slow_worker.text)
    until(lambda: values_of(scene, "hive_statuses", "worker_id") == kept, slow_worker.text)
    until(lambda: not (scene.hive / "archive" / old).exists(), slow_worker.text)
    assert (scene.hive / "archive" / young).is_dir()
    assert scene.folder(present).is_dir()


def values_of(scene: Scene, table: str, column: str) -> set[object]:
    return {row[column] for row in scene.home.rows(f"SELECT {column} FROM {table}")}


def lost_runs(scene: Scene) -> list[dict[str, object]]:
    return scene.home.rows("SELECT worker_id, is_lost, cost_micro_usd FROM hive_runs WHERE is_lost")
