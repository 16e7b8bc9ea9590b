"""Unexpected files that a worker or a person puts into `.hive`."""

import errno
import gzip
import os
import resource
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from hivepipe.cli import forget
from hivepipe.errors import HiveError
from hivepipe.files import known_hives
from hivepipe.jobs.origin import Origin
from hivepipe.operations.job_context import JobContext
from hivepipe.operations.prune_files import drop_outdated
from hivepipe.orchestrator import folder
from hivepipe.orchestrator.folder import Hive, running_workers
from hivepipe.orchestrator.orchestrator import Orchestrator
from hivepipe.orchestrator.retire import archive
from hivepipe.orchestrator.transcript import repair_transcript
from hivepipe.orchestrator.worker import Worker
from tests.conftest import until
from tests.faults.injections.disks import mounted
from tests.hive_scene import DONE, Scene, script, tick

YEAR_NS = 370 * 86_400 * 10**9


def test_named_pipes_instead_of_files_block_nothing(scene: Scene) -> None:
    worker = scene.finish()
    folder = scene.folder(worker)
    for name in ("status.json", "run-report.md", "transcript.jsonl", "stderr.log", "task.md"):
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)
    os.mkfifo(scene.hive / "learnings" / "project-a-insights.md")
    assert scene.row(worker)["status"] == ""
    assert "no plain file" in scene.run("check", worker)
    assert scene.run("log", worker) == ""
    scene.run("learnings")
    scene.run("monitor", "--once")
    assert "no plain file" in scene.result("resume", worker, "go on", expect=1).stderr
    assert len(scene.played()) == 1


def test_a_file_instead_of_the_workers_does_not_hide_another_hive(scene: Scene) -> None:
    spawn_in_a_second_hive(scene, [DONE])
    until(lambda: not scene.processes(), "its runner still runs")
    (scene.hive / "workers").rename(scene.hive / "aside")
    (scene.hive / "workers").write_text("")
    log = tick(scene)
    assert f"{scene.hive}: " in log
    assert "Not a directory" in log
    assert [row["state"] for row in scene.home.rows("SELECT state FROM hive_workers")] == ["done"]


def spawn_in_a_second_hive(scene: Scene, *steps: list[str]) -> str:
    other = scene.projects["project-a-b"]
    scene.run("init", cwd=other)
    scene.run("projects", "add", "project-a", str(scene.projects["project-a"]), cwd=other)
    return scene.run("spawn", "project-a", script(*steps), cwd=other).strip()


def hive_beside_one_that_cannot_be_migrated(scene: Scene, *steps: list[str]) -> str:
    """Spawn a worker in a second hive, prevent the migration of the first, return the worker."""
    worker = spawn_in_a_second_hive(scene, *steps)
    (scene.records / "hive").unlink()
    lock = scene.records.with_name(f"{scene.records.name}.lock")
    lock.unlink(missing_ok=True)
    lock.mkdir()
    return worker


def test_a_hive_that_was_made_in_part_is_completed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, _text: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    other = scene.projects["project-a-b"]
    with monkeypatch.context() as full:
        full.setattr(folder, "_write_new", fail)
        assert "No space left" in scene.result("init", cwd=other, expect=1).stderr
    assert (other / ".hive").is_dir()
    scene.run("init", cwd=other)
    assert (other / ".hive/prompts/worker.md").exists()
    assert scene.run("check", cwd=other) == "0 workers\n"


def test_a_hive_that_cannot_be_migrated_does_not_hide_another_hive(scene: Scene) -> None:
    hive_beside_one_that_cannot_be_migrated(scene, [DONE])
    until(lambda: not scene.processes(), "its runner still runs")
    assert f"{scene.hive}: {scene.records} cannot be made: " in tick(scene)
    assert [row["state"] for row in scene.home.rows("SELECT state FROM hive_workers")] == ["done"]


@pytest.mark.parametrize("is_readable", [True, False])
def test_a_hive_that_cannot_be_migrated_hides_no_running_worker(
    scene: Scene, is_readable: bool
) -> None:
    own = scene.run("spawn", "project-a", script(["hang"])).strip()
    worker = hive_beside_one_that_cannot_be_migrated(scene, ["hang"])
    if not is_readable:
        workers = scene.hive / "workers"
        workers.rename(scene.hive / "moved")
        workers.touch()
    with scene.use_environment({}):
        found = {each.id for each in running_workers(str(scene.home.path))}
    assert found == {own, worker}


def test_archived_workers_expire_beside_a_hive_that_cannot_be_migrated(scene: Scene) -> None:
    worker = hive_beside_one_that_cannot_be_migrated(scene, [DONE])
    until(lambda: not scene.processes(), "its runner still runs")
    other = scene.projects["project-a-b"]
    scene.run("archive", worker, cwd=other)
    job = Origin(id="prune-1", operation="prune_files", event_time_ns=time.time_ns() + YEAR_NS)
    with scene.use_environment({}):
        context = JobContext(str(scene.home.path), "", lambda _parent, _jobs: None)
        assert drop_outdated(context, job).workers == 1
    assert not (other / ".hive" / "archive" / worker).exists()


def test_sessions_are_forgotten_beside_a_hive_that_cannot_be_migrated(scene: Scene) -> None:
    worker = hive_beside_one_that_cannot_be_migrated(scene, [DONE])
    until(lambda: not scene.processes(), "its runner still runs")
    folder = scene.projects["project-a-b"] / ".hive/workers" / worker
    session = worker.removeprefix("project-a-")
    logs = list((scene.home.path / "logs").glob("*.log"))
    assert folder.is_dir()
    done = scene.hivepipe("forget", session, "--yes", expect=1)
    assert "deleted: hive workers: 1 folder" in done.stdout
    assert f"yet (run the command again): {scene.hive}: {scene.records} cannot" in done.stderr
    assert not folder.exists()
    assert not any(session in log.read_text() for log in logs)
    shutil.rmtree(scene.records.with_name(f"{scene.records.name}.lock"))
    assert f"session {session}" in scene.hivepipe("forget", session, "--yes").stdout


def test_forgetting_old_sessions_again_deletes_what_an_unread_hive_kept(scene: Scene) -> None:
    kept = scene.finish()
    hive_beside_one_that_cannot_be_migrated(scene, [DONE])
    until(lambda: not scene.processes(), "its runner still runs")
    before = ("forget", "--before", "2999-01-01")
    done = scene.hivepipe(*before, "--dry-run", expect=1)
    assert f"not all data can be read: {scene.hive}: {scene.records} cannot" in done.stderr
    assert "run the command again" in scene.hivepipe(*before, "--yes", expect=1).stderr
    assert scene.folder(kept).is_dir()
    shutil.rmtree(scene.records.with_name(f"{scene.records.name}.lock"))
    assert "deleted: hive workers: 1 folder" in scene.hivepipe(*before, "--yes").stdout
    assert not scene.folder(kept).exists()
    assert scene.hivepipe(*before, "--yes").stdout == "no session is that old\n"


def test_a_worker_archived_while_forgetting_is_confirmed_is_forgotten(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = scene.finish()
    hive = Hive(scene.hive, str(scene.home.path))

    def archive_it(_question: str) -> None:
        assert archive(hive, hive.worker(worker)).is_dir()

    monkeypatch.setattr(forget, "confirm_or_end", archive_it)
    done = scene.hivepipe("forget", worker.removeprefix("project-a-"))
    assert "deleted: hive workers: 1 folder" in done.stdout
    assert not scene.folder(worker).exists()
    assert not hive.archived()


def test_links_to_other_files_are_not_followed(scene: Scene) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
    own = scene.home.root / "notes.md"
    own.write_text(f"my key {token}\n")
    worker = scene.finish()
    folder = scene.folder(worker)
    for name in ("transcript.jsonl", "stderr.log", "notes.md"):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(own)
    assert "symbolic links" in scene.result("resume", worker, "go on", expect=1).stderr
    (scene.hive / "workers" / "project-a-1").symlink_to(scene.projects["project-a"])
    assert [found["id"] for found in scene.check()] == [worker]
    scene.run("archive", worker)
    assert own.read_text() == f"my key {token}\n"


def test_every_text_of_an_archived_worker_is_redacted_and_its_other_bytes_are_kept(
    scene: Scene,
) -> None:
    token = b"ghp_" + b"a1B2c3D4e5" * 3 + b"F6g7H8"
    worker = scene.finish()
    for name in ("dump.txt", "status.json.new", "plain"):
        (scene.folder(worker) / name).write_bytes(token)
    (scene.folder(worker) / "notes.md").write_bytes(b"caf\xe9: " + token + b" \xff\xfe\n")
    scene.run("archive", worker)
    archive = scene.hive / "archive" / worker
    for path in archive.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            text = gzip.decompress(data) if path.suffix == ".gz" else data
            assert token not in text, path
    kept = (archive / "notes.md").read_bytes()
    assert kept.startswith(b"caf\xe9: ***")
    assert kept.endswith(b"*** \xff\xfe\n")


def test_a_file_among_the_workers_is_ignored(scene: Scene) -> None:
    (scene.hive / "workers" / "project-a-1").write_text("not a folder")
    assert scene.check() == []
    assert "no worker has the id" in scene.result("check", "project-a-1", expect=1).stderr


def test_a_full_disk_starts_nothing_and_leaves_nothing(scene: Scene) -> None:
    with mounted(scene.hive, "-t", "tmpfs", "-o", "size=300k", "tmpfs"):
        scene.begin()
        filler = scene.hive / "filler"
        for left in (0, 100_000):
            fill(filler, left)
            refused = scene.result("spawn", "project-a", script([DONE]) + "x" * 200_000, expect=1)
            assert "No space left on device: nothing was started" in refused.stderr
            assert scene.check() == []
        filler.unlink()
        scene.wait_for_state(scene.spawn(script([DONE])), "done")
        until(lambda: not scene.processes(), "a process still runs")
    assert len(scene.played()) == 1


def fill(path: Path, left: int) -> None:
    """Fill the file's disk except for the given number of bytes."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - left)


def test_an_invalid_modification_time_breaks_no_command(scene: Scene) -> None:
    worker = scene.finish()
    # a status from before its run is ignored
    for far_ns, state in ((1 << 70, "done"), (-(1 << 70), "died")):
        for name in ("status.json", "transcript.jsonl"):
            os.utime(scene.folder(worker) / name, ns=(far_ns, far_ns))
        assert scene.row(worker)["state"] == state
        scene.run("check")


def test_a_full_disk_during_a_transcript_repair_leaves_no_copy(tmp_path: Path) -> None:
    worker = Worker(tmp_path / "workers" / "project-a-1", tmp_path / "state")
    worker.folder.mkdir(parents=True)
    text = "Warning: not a line\n" + '{"type": "user"}\n' * 10_000
    worker.transcript.write_text(text)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(HiveError, match="File too large"):
            repair_transcript(worker)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert worker.transcript.read_text() == text
    assert {path.name for path in worker.folder.iterdir()} == {"transcript.jsonl", "stderr.log"}


def test_hives_created_at_once_are_both_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, barrier, known = str(tmp_path), threading.Barrier(2), known_hives.known

    def slowly(home: str) -> list[str]:
        found = known(home)
        barrier.wait(30)
        return found

    monkeypatch.setattr(known_hives, "known", slowly)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda root: known_hives.add(home, root), ("/a/.hive", "/b/\u2028/.hive")))
    assert set(known(home)) == {"/a/.hive", "/b/\u2028/.hive"}


def test_a_folder_name_with_a_line_break_is_refused(scene: Scene) -> None:
    folder = scene.home.root / "a\n"
    folder.mkdir()
    assert "has a line break" in scene.result("init", cwd=folder, expect=1).stderr


def test_an_error_of_one_worker_hides_no_other(scene: Scene) -> None:
    quiet = scene.finish()
    worker = scene.spawn(script(['status {"status": "working"}', "hang"]))
    until(lambda: scene.row(worker)["status"], "it did not begin")
    scene.end_processes()
    blocked = scene.state(worker) / "runs" / f"1.json.{os.getpid()}.tmp"
    blocked.mkdir()  # the end of the run cannot be stored
    found = scene.result("check", "--all")
    assert worker in found.stderr
    assert blocked.name in scene.result("monitor", "--once").stderr
    assert {each["id"] for each in scene.check()} == {quiet, worker}
    blocked.rmdir()
    scene.wait_for_state(worker, "died")


def test_workers_run_in_paths_that_are_not_utf_8(scene: Scene) -> None:
    """Of a worker's project and of the orchestrator's own; the store takes UTF-8 only."""
    for number, parent in enumerate((scene.home.project, scene.home.root / os.fsdecode(b"\xe9"))):
        project = parent / os.fsdecode(b"caf\xe9")
        project.mkdir(parents=True)
        scene.result("init", cwd=parent)
        scene.result("projects", "add", "cafe", os.fspath(project), cwd=parent)
        worker = scene.result(
            "spawn", "cafe", script(["cost 0.25", DONE]), cwd=parent
        ).stdout.strip()
        until(lambda: not scene.processes(), "a process still runs")
        assert "0.25" in scene.result("costs", cwd=parent).stdout
        scene.result("delete", worker, "--yes", cwd=parent)
        rows = scene.home.rows("SELECT project_path, deleted_at FROM hive_workers ORDER BY 2")
        assert rows[number]["project_path"].endswith("/caf\ufffd")
        assert rows[number]["deleted_at"]


def test_an_invalid_session_id_file_is_an_error_and_hides_no_worker(scene: Scene) -> None:
    worker = scene.finish()
    foreign = scene.hive / "workers" / "project-a-1"
    foreign.mkdir()
    for content in (b"\xff\x00\n", b"the one of yesterday\n"):
        (foreign / "session-id").write_bytes(content)
        assert {found["id"] for found in scene.check()} == {worker, "project-a-1"}
    with scene.use_environment({}):
        orchestrator = Orchestrator(Hive(scene.hive, str(scene.home.path)))
        with pytest.raises(HiveError, match="not a UUID"):
            orchestrator.has_successor(Worker(foreign, scene.state(foreign.name)))
