"""The unchanged Procfile: honcho starts it, RQ runs the workers, jobs are applied."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hivepipe.queue.connection import connect
from hivepipe.queue.names import ALL_QUEUES
from hivepipe.queue.rq_workers import living_roles, rq_workers
from hivepipe.stack import supervisor
from hivepipe.stack.runtime_folder import Stack
from hivepipe.stack.stack_processes import stack_processes
from tests.conftest import ROOT, Home, Process, Server, Writer, fire, until
from tests.outcome import outcome_of
from tests.payloads import SESSION_START, USER_PROMPT_SUBMIT, changed

BIN = Path(sys.executable).parent
WORKER = [sys.executable, "-I", "-m", "hivepipe.rq", "worker", "--burst", "-w"]


@pytest.fixture
def honcho(private_home: Home) -> Iterator[Process]:
    env = private_home.env | {"PATH": f"{BIN}:{private_home.env['PATH']}"}
    made = Process([str(BIN / "honcho"), "start"], private_home.root / "honcho.log", env, ROOT)
    made.start()
    yield made
    if made.is_running:
        made.end(signal.SIGTERM)


def test_the_procfile_stores_events_of_hooks(private_home: Home, honcho: Process) -> None:
    home = private_home
    until(lambda: "writer.1 started" in honcho.text, "honcho starts nothing")
    until(lambda: Path(home.address).exists(), "no Redis")
    fire("SessionStart", SESSION_START, home.env)
    fire("UserPromptSubmit", changed(USER_PROMPT_SUBMIT, prompt="Mend it"), home.env)
    until(lambda: home.count("sessions") == 1, "no session")
    until(lambda: home.count("prompts") == 1, "no prompt")
    assert stat.S_IMODE(os.stat(home.database).st_mode) == 0o600
    assert not home.spool
    with connect(home.address) as connection:
        until(
            lambda: living_roles(rq_workers(connection)) >= {"writer", "slow", "llm"},
            "not all workers run",
        )
        found = rq_workers(connection)
        assert {queue for worker in found for queue in worker.queues} == set(ALL_QUEUES)


@pytest.mark.parametrize("kind", ["redis", "writer"])
def test_a_hook_that_misses_redis_starts_no_stack_beside_a_procfile(
    private_home: Home, to_end: list[Process], kind: str
) -> None:
    """It would end the processes of the Procfile, of which not all are ready yet."""
    record = private_home.record_of(private_home.path)
    record.write_text(f"{record.read_text()}state=on\n")
    private_home.path.mkdir(mode=0o700, exist_ok=True)
    process = Writer(private_home, kind)
    to_end.append(process)
    process.start()
    stack = Stack.prepared(str(private_home.path))
    until(lambda: kind in stack_processes(stack), f"no {kind}")
    command = [sys.executable, "-I", "-m", "hivepipe.stack.starter", f"{stack.folder}/starting"]
    assert subprocess.run(command, env=private_home.env, check=False, timeout=60).returncode == 0
    assert process.is_running
    assert not Path(stack.supervisor_socket).exists()


def test_a_hook_starts_a_stack_beside_a_redis_that_lost_its_socket(
    private_home: Home, redis_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No supervisor restarts this Redis, and its writer waits for it."""
    stack = Stack.prepared(str(private_home.path))
    (process,) = stack_processes(stack)["redis"]
    process.suspend()
    with monkeypatch.context() as patch:
        patch.setattr(supervisor, "READY_SECS", 0)
        assert supervisor.runs_without(stack), "it may be busy"
    Path(redis_server.address).unlink()
    assert supervisor.runs_without(stack), "it may be starting"
    monkeypatch.setattr(supervisor, "READY_SECS", 0)
    assert not supervisor.runs_without(stack)


def test_nothing_is_imported_from_the_working_folder(
    private_home: Home, redis_server: Server, tmp_path: Path
) -> None:
    witness = tmp_path / "ran"
    text = f"open({str(witness)!r}, 'a').write(__name__)\nclass Worker: pass\n"
    for name in ("planted", "hiredis", "redis", "rq", "hivepipe", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(text)
    env = private_home.env | {"PYTHONPATH": str(tmp_path)}

    def run(worker: str) -> subprocess.CompletedProcess[str]:
        return outcome_of([*WORKER, worker, "high", "medium", "low"], env, tmp_path, timeout=120)

    refused = run("planted.Worker")
    assert refused.returncode != 0
    assert "planted" in refused.stderr
    fire("SessionStart", SESSION_START, private_home.env)
    done = run("hivepipe.worker.writer.Writer")
    assert done.returncode == 0, done.stderr
    assert private_home.count("sessions") == 1
    assert not witness.exists()
