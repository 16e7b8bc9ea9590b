"""A worker's runs: asked, answered, crashed, killed, parked, archived; never two at once."""

import gzip
import json
import math
import os
import shutil
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import chdir, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hivepipe.cli.main import main
from hivepipe.operations import hive as hive_operations
from hivepipe.orchestrator import orchestrator
from hivepipe.orchestrator.folder import Hive, running_workers
from hivepipe.orchestrator.orchestrator import Orchestrator
from hivepipe.orchestrator.worker import Worker
from hivepipe.orchestrator.worker_state import CheckedWorker
from tests.conftest import until
from tests.hive_scene import DONE, Scene, script, tick

KEY = "uH7fJ2q" + "Zt9xB4m" * 3  # a secret without a recognisable form
QUESTION = (
    'status {"status": "need_input", "question": "Which timeout?", "context": "auth.py:42", '
    '"options": ["30 minutes", "configurable"], "priority": "high"}'
)


def run_of(scene: Scene, worker: str, number: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((scene.state(worker) / f"runs/{number}.json").read_text())
    return found


def kill_run(scene: Scene, worker: str, **changes: Any) -> None:
    """Kill a worker's first run and its runner, and change the record of the run."""
    run = run_of(scene, worker)
    for pid in (run["runner_pid"], run["pid"]):
        os.kill(pid, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{run['pid']}").exists(), "not gone")
    if changes:
        (scene.state(worker) / "runs/1.json").write_text(json.dumps({**run, **changes}))


@contextmanager
def hanging_runners(scene: Scene, workers: int) -> Iterator[None]:
    """Stop the runners of these workers, whose processes then end unrecorded."""
    until(lambda: len(scene.played()) == workers, "they did not begin")
    files = scene.records.parent.glob("*/workers/*/runs/1.json")
    runs = [json.loads(path.read_text()) for path in files]
    assert len(runs) == workers
    for run in runs:
        os.kill(run["runner_pid"], signal.SIGSTOP)
    (scene.home.root / "go").touch()
    until(lambda: not {run["pid"] for run in runs} & set(scene.processes()), "they run on")
    try:
        yield
    finally:
        for run in runs:
            os.kill(run["runner_pid"], signal.SIGCONT)


def test_a_question_is_shown_and_answered_and_both_runs_are_charged(scene: Scene) -> None:
    asking = ["say hm", "noise Warning: something", "cost 0.10", "cost 0.30", QUESTION, "torn"]
    worker = scene.spawn(script(asking, ["cost 0.05", DONE]))
    found = scene.wait_for_state(worker, "need_input")
    assert found["note"] == "Which timeout?"
    assert found["fields"]["priority"] == "high"  # an unknown field is kept
    screen = scene.run("check", worker)
    assert "option 2       configurable" in screen
    scene.run("answer", worker, "--option", "2", "please")
    assert scene.wait_for_state(worker, "done")["cost_usd"] == "0.35"
    first, second = scene.played()
    assert second["prompt"] == "Orchestrator response: configurable\nplease"
    assert "--resume" in second["arguments"]
    assert first["session"] == second["session"]
    permissions = first["arguments"][first["arguments"].index("--permission-mode") + 1]
    assert permissions in second["arguments"]  # a resumed session does not inherit the mode
    kinds = [line["type"] for line in scene.lines(worker)]
    assert kinds.count("system") == 2
    stderr = (scene.folder(worker) / "stderr.log").read_text()
    assert "Warning: something" in stderr
    assert '{"type": "assistant", "mess' in stderr
    sql = "SELECT number, kind, cost_micro_usd FROM hive_runs ORDER BY number"
    paid = [(1, "spawn", 300_000), (2, "answer", 50_000)]
    until(
        lambda: [tuple(row.values()) for row in scene.home.rows(sql)] == paid,
        f"{scene.home.rows(sql)}",
    )
    statuses = scene.home.rows("SELECT status FROM hive_statuses ORDER BY changed_ns")
    assert [row["status"] for row in statuses] == ["need_input", "done"]
    assert json.loads(scene.run("cost", "--json"))["total_usd"] == "0.35"


def test_a_resumed_session_is_charged_once_and_all_models_are_added_up(scene: Scene) -> None:
    """Later versions of Claude Code report the total of a resumed session since its first run."""
    worker = scene.spawn(script(["total 0 9", QUESTION], ["total 9 8", DONE]))
    scene.wait_for_state(worker, "need_input")
    scene.run("answer", worker, "--option", "2", "please")
    assert scene.wait_for_state(worker, "done")["cost_usd"] == "0.17"
    until(lambda: run_of(scene, worker, 2)["cost_usd"] is not None, "the run is not booked")
    costs = [float(run_of(scene, worker, number)["cost_usd"]) for number in (1, 2)]
    assert costs == [0.09, 0.08]
    assert float(json.loads(scene.run("cost", "--json"))["total_usd"]) == 0.17
    another = scene.spawn(script(["models 0.5 0.25", DONE]))
    assert scene.wait_for_state(another, "done")["cost_usd"] == "0.75"


def test_no_answer_without_a_question_and_no_resume_of_a_running_worker(scene: Scene) -> None:
    worker = scene.spawn(script(["say busy", "hang"]))
    until(lambda: scene.played(), "it did not begin")
    assert "has no open question" in scene.result("answer", worker, "yes", expect=1).stderr
    for command in (("resume", worker, "go"), ("park", worker), ("archive", worker)):
        assert "has a process" in scene.result(*command, expect=1).stderr
    assert "has a process" in scene.result("delete", worker, "--yes", expect=1).stderr
    assert scene.row(worker)["state"] == "working"
    with scene.use_environment({}):  # `down` lists it
        assert [each.id for each in running_workers(str(scene.home.path))] == [worker]
    assert len(scene.played()) == 1
    assert scene.violations == ""


def test_a_crash_is_reported_with_its_signal(scene: Scene) -> None:
    worker = scene.spawn(script(["cost 0.02", "torn", "crash"]))
    until(lambda: scene.is_recorded(worker, 1), "no end was recorded")
    found = scene.wait_for_state(worker, "died")
    assert found["exit_code"] == -signal.SIGKILL
    assert "signal 9" in found["note"]
    assert found["cost_usd"] == "0.02"

    def is_repaired() -> bool:
        with suppress(ValueError):
            return bool(scene.lines(worker))
        return False

    until(is_repaired, "the torn line stays")
    assert json.loads(scene.run("cost", "--json"))["unpriced_runs"] == 0


def test_a_run_without_a_cost_is_counted_as_unpriced(scene: Scene) -> None:
    worker = scene.spawn(script(["crash"]))
    scene.wait_for_state(worker, "died")
    assert "not included: 1 run that ended without a result" in scene.run("check", worker)
    until(lambda: "not included: 1 run" in scene.run("cost"), "the run counts as free")
    scene.run("delete", worker, "--yes")
    assert json.loads(scene.run("cost", "--json"))["unpriced_runs"] == 1


def test_flags_that_claude_refuses_are_reported(scene: Scene) -> None:
    task = script([DONE])
    if os.geteuid() == 0:
        worker = scene.spawn(task, "project-a", "--dangerously-skip-permissions")
        found = scene.wait_for_state(worker, "died")
        assert found["exit_code"] == 1
        assert "root/sudo" in scene.run("check", worker)
    scene.config.write_text('hive_rights = "edits"\nhive_flags = "--no-such-flag"\n')
    worker = scene.spawn(task)
    scene.wait_for_state(worker, "died")
    assert "unknown option '--no-such-flag'" in scene.run("check", worker)


def test_without_claude_nothing_is_created(scene: Scene) -> None:
    (scene.home.root / "bin" / "claude").unlink()
    done = scene.result("spawn", "project-a", "Do it.", expect=1)
    assert "install Claude Code" in done.stderr
    assert scene.check() == []


def test_a_check_waits_until_the_end_of_a_run_is_recorded(scene: Scene) -> None:
    go = scene.home.root / "go"
    worker = scene.spawn(script([f"wait {go}", "cost 0.04"]))
    until(lambda: scene.played(), "it did not begin")
    run = run_of(scene, worker)
    os.kill(run["runner_pid"], signal.SIGSTOP)
    go.touch()
    until(lambda: run["pid"] not in scene.processes(), "it runs on")
    threading.Timer(1, os.kill, (run["runner_pid"], signal.SIGCONT)).start()
    found = scene.row(worker)
    assert (found["state"], found["exit_code"], found["cost_usd"]) == ("ended", 0, "0.04")
    assert "its last words" in found["note"]


def test_a_check_waits_once_for_all_runners_that_hang(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orchestrator, "RECORD_SECS", 2)
    for _ in range(3):
        scene.spawn(script([f"wait {scene.home.root / 'go'}"]))
    with hanging_runners(scene, 3):
        begun = time.monotonic()
        scene.check()
        assert time.monotonic() - begun < 2 * 3


def test_the_periodic_check_waits_once_for_the_runners_of_all_hives(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hive_operations, "RECORD_SECS", 2)
    folders = [scene.home.project, *scene.projects.values()]
    for folder in folders[1:]:
        scene.run("init", cwd=folder)
        scene.run("projects", "add", "project-a", str(scene.projects["project-a"]), cwd=folder)
    for folder in folders:
        scene.run("spawn", "project-a", script([f"wait {scene.home.root / 'go'}"]), cwd=folder)
    deadlines = []
    check = Orchestrator.check

    def noting(self: Orchestrator, *, deadline: float) -> list[CheckedWorker]:
        deadlines.append(deadline)
        return check(self, deadline=deadline)

    monkeypatch.setattr(Orchestrator, "check", noting)
    monkeypatch.setattr(hive_operations, "LEAST_SECS", -math.inf)
    with hanging_runners(scene, len(folders)):
        tick(scene)
    assert len(deadlines) == len(folders)
    assert len(set(deadlines)) == 1


def test_an_unseen_end_is_recorded_once(scene: Scene) -> None:
    worker = scene.spawn(script(["cost 0.04", "hang"]))
    until(lambda: "result" in (scene.folder(worker) / "transcript.jsonl").read_text(), "no cost")
    run = run_of(scene, worker)
    os.kill(run["runner_pid"], signal.SIGKILL)
    found = scene.row(worker)
    # the process runs on without its runner
    assert (found["state"], found["lives"]) == ("working", True)
    assert "has a process" in scene.result("resume", worker, "go", expect=1).stderr
    os.kill(run["pid"], signal.SIGKILL)
    found = scene.wait_for_state(worker, "died")
    assert found["cost_usd"] == "0.04"
    assert "ended unobserved" in found["note"]
    (row,) = scene.home.rows("SELECT is_lost, ended_at, exit_code FROM hive_runs")
    assert (row["is_lost"], row["exit_code"]) == (1, None)
    ended = run_of(scene, worker)
    scene.check()
    assert run_of(scene, worker) == ended


def test_a_resume_records_the_unseen_end(scene: Scene) -> None:
    worker = scene.spawn(script(["cost 0.04", QUESTION, "hang"], [DONE]))
    until(lambda: scene.row(worker)["status"] == "need_input", "it does not ask")
    kill_run(scene, worker)
    scene.run("resume", worker, "go on")  # without a `check` before it
    (row,) = scene.home.rows("SELECT * FROM hive_runs WHERE number = 1")
    assert (row["is_lost"], row["cost_micro_usd"]) == (1, 40_000)
    assert row["ended_at"] <= run_of(scene, worker, 2)["started_at"]


def test_a_reused_pid_is_not_the_worker(scene: Scene) -> None:
    worker = scene.spawn(script([DONE.replace("done", "working"), "hang"]))
    until(lambda: scene.row(worker)["status"] == "working", "no status was written")
    kill_run(scene, worker, pid=os.getpid())  # reused by the process of this test
    found = scene.row(worker)
    assert (found["state"], found["lives"]) == ("died", False)
    scene.run("resume", worker, "go on")
    until(lambda: len(scene.played()) == 2, "not resumed")


def test_a_process_from_before_a_reboot_has_ended(scene: Scene) -> None:
    worker = scene.spawn(script(["hang"]))
    host, _, space = run_of(scene, worker)["machine"].split(" ")
    kill_run(scene, worker, machine=f"{host} another-boot {space}", pid=os.getpid())
    assert scene.row(worker)["state"] == "died"


def test_a_worker_of_the_old_recipe_is_listed_and_resumed(scene: Scene) -> None:
    session = "0b6a3c1e-6f2b-4c55-9a3e-0d5d5f0f8a11"
    folder = scene.hive / "workers" / f"project-a-b-{session}"
    folder.mkdir()
    (folder / "session-id").write_text(f"{session}\n")
    (folder / "task.md").write_text("Old task\n")
    assert scene.row(folder.name)["note"] == "No status yet"
    lines = [
        {"type": "system", "subtype": "init", "session_id": session},
        {"type": "result", "total_cost_usd": 0.01},
        {"type": "result", "total_cost_usd": 0.07},
        {"type": "system", "subtype": "init", "session_id": session},
        {"type": "result", "total_cost_usd": 0.05},
    ]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (folder / "transcript.jsonl").write_text(text)
    (folder / "status.json").write_text('{"status": "need_input", "question": "And now?"}')
    assert scene.row(folder.name)["cost_usd"] == "0.12"
    scene.result("answer", folder.name, "go")
    found = scene.wait_for_state(
        folder.name, "died"
    )  # the stand-in knows no such session, as the real claude
    assert "No conversation found" in scene.run("check", folder.name)
    assert found["cost_usd"] == "0.12"


def test_parking_keeps_the_last_status(scene: Scene) -> None:
    worker = scene.spawn(script(["cost 0.01", DONE], ["report All is written down.", "cost 0.02"]))
    scene.wait_for_state(worker, "done")
    scene.run("park", worker)
    until(lambda: scene.row(worker)["cost_usd"] == "0.03", "not parked")
    found = scene.wait_for_state(worker, "done")
    assert found["note"] == "did it"
    assert "/session:park" in scene.played()[1]["prompt"]
    assert "All is written down." in scene.run("check", worker)


def test_finished_workers_are_archived_redacted_or_deleted_and_their_costs_kept(
    scene: Scene,
) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
    words = [f"say with {KEY}", f"say seen {token}", f"say SHOP_API_KEY={KEY}"]
    workers = [scene.spawn(script([*words, "cost 0.50", DONE])) for _ in range(2)]
    for worker in workers:
        scene.wait_for_state(worker, "done")
    assert token in (scene.folder(workers[0]) / "transcript.jsonl").read_text()
    scene.run("archive", workers[0])
    kept = scene.hive / "archive" / workers[0]
    for path in kept.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            text = gzip.decompress(data) if path.suffix == ".gz" else data
            assert token.encode() not in text, path
            assert KEY.encode() not in text, path
    assert "***REDACTED:api-key:" in scene.run("log", workers[0])
    rule = {"name": "word", "pattern": "seen", "replacement": "***LATER***"}
    text = "".join(f'{name} = "{value}"\n' for name, value in rule.items())
    text = f'[[redaction.rules]]\n{text}examples = ["seen"]\n'
    (scene.home.path / "config.toml").write_text(text)
    assert "***LATER***" in scene.run("log", workers[0])  # a rule that was added later applies
    scene.result("delete", workers[1], expect=1, input="n\n")
    scene.run("delete", workers[1], "--yes")
    assert not scene.folder(workers[1]).exists()
    assert scene.check() == []
    assert json.loads(scene.run("cost", "--json"))["total_usd"] == "1.00"
    by_project = json.loads(scene.run("costs", "--by", "project", "--json"))["costs"]
    assert by_project == [{"project": "project-a", "workers": 2, "cost_usd": "1.00"}]
    assert token not in scene.home.database.read_bytes().decode("latin-1")


def test_a_killed_archiving_is_finished_by_the_next_command(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = scene.finish("cost 0.50")
    rename, left = Path.rename, [2]  # of three renames

    def killed(path: Path, target: Path) -> Path:
        left[0] -= 1
        if left[0] < 0:
            raise SystemExit(9)
        return rename(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", killed)
        scene.run("archive", worker, expect=9)
    assert scene.check() == []
    assert (scene.records / "archive" / worker / "runs" / "1.json").exists()
    assert not scene.state(worker).exists()
    assert "result" in scene.run("log", worker)


def test_a_missing_cost_is_stored_before_a_state_is_removed(scene: Scene) -> None:
    worker = scene.finish("cost 0.50")
    run = run_of(scene, worker)  # as if the store had been locked when the run ended
    (scene.state(worker) / "runs/1.json").write_text(json.dumps({**run, "cost_usd": "0.75"}))
    shutil.rmtree(scene.folder(worker))
    assert json.loads(scene.run("cost", "--json"))["total_usd"] == "0.75"
    assert not scene.state(worker).exists()


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_worker_that_is_made_during_a_check_is_kept(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    listed, left = Hive.workers, [number]
    made: list[str] = []

    def listed_too_early(hive: Hive) -> list[Worker]:
        found = listed(hive)
        left[0] -= 1
        if not left[0]:
            monkeypatch.undo()
            made.append(scene.finish())
        return found

    monkeypatch.setattr(Hive, "workers", listed_too_early)
    scene.run("check")
    (worker,) = made
    assert (scene.state(worker) / "runs/1.json").exists()
    assert [row["id"] for row in scene.check()] == [worker]
    kept = scene.home.rows("SELECT id FROM hive_workers WHERE deleted_at IS NULL")
    assert [row["id"] for row in kept] == [worker]


def test_processes_that_outlive_their_worker_are_named(scene: Scene) -> None:
    worker = scene.spawn(script(["orphan", DONE]))
    scene.wait_for_state(worker, "done")
    until(lambda: "left behind" in scene.run("check", worker), "no process was left behind")
    os.killpg(run_of(scene, worker)["pid"], signal.SIGKILL)


def test_hooks_are_installed_once_and_report_to_the_orchestrator(scene: Scene) -> None:
    env = {"HIVEPIPE_AUTOSTART": "0"}
    worker = scene.run("spawn", "project-a", script([DONE]), env=env).strip()
    scene.wait_for_state(worker, "done")
    session = scene.played()[0]["session"]
    spooled = until(lambda: scene.home.spool, "no hook reported")
    assert any(session in path.read_text() for path in spooled)
    settings = scene.projects["project-a"] / ".claude" / "settings.local.json"
    settings.parent.mkdir()
    settings.write_text((scene.state(worker) / "settings.json").read_text())
    worker = scene.run("spawn", "project-a", script([DONE]), env=env).strip()
    scene.wait_for_state(worker, "done")
    assert not (scene.state(worker) / "settings.json").exists()
    assert "--settings" not in scene.played()[1]["arguments"]


def test_a_session_belongs_to_one_worker_and_task_permanently(scene: Scene) -> None:
    session = "5f0c9d0e-0000-4000-8000-000000000001"
    again = ("--session", session)
    for _ in range(2):
        worker = scene.spawn(script([DONE]), "project-a", *again)
        scene.wait_for_state(worker, "done")
        until(lambda: not scene.processes(), "its runner still runs")
    assert len(scene.played()) == 1
    assert len(list(scene.state(worker).glob("runs/*.json"))) == 1
    refused = scene.result("spawn", "project-a", "x", "--session", "1", expect=1)
    assert "not a UUID" in refused.stderr
    scene.run("projects", "add", "other-name", str(scene.projects["project-a"]))
    refused = scene.result("spawn", "other-name", script([DONE]), *again, expect=1)
    assert f"belongs to the worker {worker}" in refused.stderr
    refused = scene.result("spawn", "project-a", "Something else.", *again, expect=1)
    assert "with another task" in refused.stderr
    scene.run("archive", worker)
    for over in ("is archived", "is deleted"):  # repeating the command starts nothing
        refused = scene.result("spawn", "project-a", script([DONE]), *again, expect=1)
        assert over in refused.stderr
        shutil.rmtree(scene.hive / "archive" / worker, ignore_errors=True)
        with closing(sqlite3.connect(scene.home.database)) as db, db:
            db.execute("UPDATE hive_workers SET deleted_at = 'now'")
    assert len(scene.played()) == 1


def test_an_invalid_task_is_refused(scene: Scene) -> None:
    refused = scene.result("spawn", "project-a", input="x" * (1 << 20) + "x", expect=1)
    assert "larger than a megabyte" in refused.stderr
    for option in ("--task-id", "--profile"):
        refused = scene.result("spawn", "project-a", "x", option, "my task", expect=1)
        assert "cannot be a" in refused.stderr
    assert scene.check() == []


def test_a_task_that_is_not_utf_8_is_accepted(scene: Scene) -> None:
    task = f"{script([DONE])}\ncaf".encode() + b"\xe9"
    with scene.use_environment({}), chdir(scene.home.project):
        done = CliRunner().invoke(main, ["hive", "spawn", "project-a"], input=task)
    assert done.exit_code == 0, done.output
    worker = done.stdout.strip()
    scene.wait_for_state(worker, "done")
    assert scene.played()[0]["prompt"].count("caf\ufffd") == 1
    scene.wait_for_state(scene.spawn(os.fsdecode(task)), "done")  # as an argument of a shell


def test_learnings_are_shown(scene: Scene) -> None:
    (scene.hive / "learnings" / "project-a-insights.md").write_text("Tests need Redis.\n")
    assert "Tests need Redis." in scene.run("learnings", "project-a")
    assert "patterns.md" in scene.run("learnings")
    assert (
        "projects with insights: project-a"
        in scene.result("learnings", "project-x", expect=1).stderr
    )


def test_what_names_the_data_of_a_worker_and_forget_deletes_them(scene: Scene) -> None:
    secret = "the blue heron nests at noon"
    message = scene.home.root / "message"
    message.write_text(secret)
    worker = scene.spawn(script([f"tell {message}", DONE]))
    scene.wait_for_state(worker, "done")
    session = scene.played()[0]["session"]
    found = scene.hivepipe("forget", "--matching", secret, "--dry-run").stdout
    assert f"session {session}" in found
    what = json.loads(scene.hivepipe("what", "--json").stdout)
    paths = {entry["path"] for entry in what["data"]}
    assert {str(scene.hive / "workers"), str(scene.hive / "archive"), str(scene.records)} <= paths
    assert what["kept"]["hive_statuses"] == 1
    scene.hivepipe("forget", session, "--yes")
    assert not scene.folder(worker).exists()
    files = [path for path in scene.hive.rglob("*") if path.is_file()]
    files += [path for path in scene.home.path.rglob("*") if path.is_file()]
    assert not [path for path in files if secret.encode() in path.read_bytes()]
    assert scene.home.rows("SELECT * FROM hive_workers") == []


def test_the_prompts_of_a_worker_are_forgotten_without_its_folder(scene: Scene) -> None:
    secret = "the blue heron nests at noon"
    worker = scene.spawn(script([QUESTION], [DONE]))
    scene.wait_for_state(worker, "need_input")
    scene.run("answer", worker, secret)
    scene.wait_for_state(worker, "done")
    until(lambda: not scene.processes(), "its runner still runs")
    shutil.rmtree(scene.folder(worker))
    session = scene.played()[0]["session"]
    assert (
        f"session {session}" in scene.hivepipe("forget", "--matching", secret, "--dry-run").stdout
    )
    output = scene.hivepipe("forget", session, "--yes").stdout
    assert "deleted: hive workers: 1 folder\n" in output
    files = [path for path in scene.hive.rglob("*") if path.is_file()]
    assert not [path for path in files if secret.encode() in path.read_bytes()]


def test_a_worker_cannot_extend_its_rights(scene: Scene) -> None:
    worker = scene.spawn(script([QUESTION], [DONE]))
    scene.wait_for_state(worker, "need_input")
    folder = scene.folder(worker)
    (folder / "worker.json").write_text('{"flags": ["--dangerously-skip-permissions"]}')
    (folder / "session-id").write_text("5f0c9d0e-0000-4000-8000-000000000001")
    (folder / "process.json").write_text('{"number": 9, "pid": 1}')
    (folder / "settings.json").write_text('{"hooks": {}}')
    scene.run("answer", worker, "yes")
    scene.wait_for_state(worker, "done")
    first, second = scene.played()
    assert "--dangerously-skip-permissions" not in second["arguments"]
    assert (second["session"], second["hooks"]) == (first["session"], first["hooks"])
    at = second["arguments"].index("--add-dir")
    assert second["arguments"][at + 1 : at + 3] == [str(folder), str(scene.hive / "learnings")]
