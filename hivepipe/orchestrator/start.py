"""Start a run. A session has at most one process, even after a crash of any process.

This module takes the worker's lock and passes it to the runner, which holds it until the runner
ends. The process of the run also holds the lock until the process is recorded. So if the lock is
free and no recorded process is running, the session has no process.
"""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hivepipe.errors import HiveError, LockHeldError
from hivepipe.home import make_folders, write_small
from hivepipe.orchestrator import command
from hivepipe.orchestrator.costs import record_lost_end
from hivepipe.orchestrator.folder import Hive
from hivepipe.orchestrator.foreign_processes import ForeignProcesses
from hivepipe.orchestrator.plain_file import open_regular
from hivepipe.orchestrator.recorded_process import machine
from hivepipe.orchestrator.run import Run
from hivepipe.orchestrator.transcript import repair_transcript
from hivepipe.orchestrator.worker import Card, Worker
from hivepipe.orchestrator.worker_state import has_final_status
from hivepipe.programs import module
from hivepipe.stack.lock import acquire_lock

ENDING_SECS = 30.0

_STARTED = b"started"
_ONE_ONLY = "a second one would damage its session"


def start(
    hive: Hive,
    worker: Worker,
    card: Card,
    kind: str,
    text: str,
    *,
    may_start: Callable[[], str] = lambda: "",
    wait_secs: float = ENDING_SECS,
) -> None:
    """Start Claude Code on a worker's session with the prompt `text`.

    The new process outlives this process. `may_start` is called under the lock and returns a reason
    to refuse, or "". Raise HiveError if the session has a running process, or the start failed.
    """
    with locked(worker, wait_secs) as lock:
        refuse_living(hive.home, worker)
        if reason := may_start():
            raise HiveError(reason)
        last = worker.last_run()
        if last and last.has_unrecorded_end:
            record_lost_end(worker, last)
        number = max(worker.run_numbers(), default=0) + 1
        offset = repair_transcript(worker, last.offset if last else 0)
        command.write_hooks(worker, card.path)
        run = Run(
            number=number,
            kind=kind,
            command=command.command_line(worker, card, hive.learnings_folder, resume=offset > 0),
            cwd=card.path,
            offset=offset,
            machine=machine(),
        )
        try:
            make_folders(str(worker.state / "runs"))  # missing if hivepipe did not start the worker
            write_small(str(worker.prompt_file(number)), text)
            worker.write_run(run)
        except OSError as error:
            raise HiveError(f"{worker.state}: {error.strerror}: nothing was started") from None
        answer = _start_runner(worker, number, lock, command.environment(hive, worker, card))
    if answer != _STARTED:
        raise HiveError(f"{worker.id} could not be started: {answer.decode(errors='replace')}")


@contextmanager
def locked(worker: Worker, wait_secs: float = ENDING_SECS) -> Iterator[int]:
    """Hold a worker's lock and yield its descriptor. Raise HiveError if another process holds it.

    If the worker is running without a final status, do not wait. Otherwise wait up to `wait_secs`,
    because the runner releases the lock soon.
    """
    make_folders(str(worker.state))
    run = worker.last_run()
    is_busy = run is not None and run.process_lives() and not has_final_status(worker.status(), run)
    try:
        lock = acquire_lock(worker.lock, 0 if is_busy else wait_secs)
    except LockHeldError:
        raise HiveError(f"{worker.id} has a process: {_ONE_ONLY}") from None
    try:
        yield lock
    finally:
        os.close(lock)


def refuse_living(home: str, worker: Worker) -> None:
    """Raise HiveError if a process uses or might use a worker's session. Call this under the lock.

    The lock is not enough. The runner may have been killed while its Claude Code continues. A
    Claude Code that a person started takes no lock.
    """
    for run in worker.runs():
        lives = run.process_lives()
        if lives is None:
            raise HiveError(f"{worker.id} was started on another machine: {run.machine}")
        if lives:
            raise HiveError(f"{worker.id} has a process ({run.pid}): {_ONE_ONLY}")
    if pid := ForeignProcesses(home).of(worker):
        raise HiveError(
            f"{worker.id}: process {pid}, not started by hivepipe, uses its session: end it first"
        )


def _start_runner(worker: Worker, number: int, lock: int, env: dict[bytes, bytes]) -> bytes:
    """Start the runner and return its report: `started`, or an error."""
    reader, writer = os.pipe()
    with open(worker.state / "runner.log", "ab", opener=open_regular) as log:
        subprocess.run(  # the runner forks; its child is adopted by init and leaves no zombie
            module(
                "hivepipe.orchestrator.runner", worker.folder, worker.state, number, lock, writer
            ),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=env,
            cwd=worker.folder,
            pass_fds=(lock, writer),
            start_new_session=True,
            check=False,
        )
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    return answer or b"its runner ended at once: see runner.log in its state"
