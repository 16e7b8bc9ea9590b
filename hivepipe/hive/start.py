"""Starting a run: one process on a session at a time, whoever asks and whatever was killed.

The worker's lock is taken here and handed to the runner, which holds it as long as it lives; the
process itself holds it until it is written down. So whoever gets the lock and finds no living
process on record can be sure that there is none.
"""

import os
import subprocess
import sys
from collections.abc import Callable

from hivepipe.errors import HiveError, LockHeldError
from hivepipe.hive import command
from hivepipe.hive.ending import is_unseen, write_end
from hivepipe.hive.folder import Hive
from hivepipe.hive.plain_file import plain
from hivepipe.hive.process import machine
from hivepipe.hive.run import Run
from hivepipe.hive.standing import has_last_word
from hivepipe.hive.strangers import Strangers
from hivepipe.hive.transcript import tidy
from hivepipe.hive.worker import Card, Worker
from hivepipe.home import make_folders, write_small
from hivepipe.stack.lock import take_lock

ENDING_SECS = 30.0

_STARTED = b"started"


def start(
    hive: Hive,
    worker: Worker,
    card: Card,
    kind: str,
    text: str,
    *,
    may_start: Callable[[], str] = lambda: "",
    wait_secs: float = ENDING_SECS,
) -> Run:
    """Start Claude Code on a worker's session, told `text`; the process outlives this one.

    `may_start`, asked under the lock, says why not. HiveError: its session has a living process,
    or none could be started.
    """
    lock = locked(worker, wait_secs)
    try:
        refuse_living(hive.home, worker)
        if reason := may_start():
            raise HiveError(reason)
        last = worker.last_run()
        if last and is_unseen(last):
            write_end(worker, last)
        number = max(worker.run_numbers(), default=0) + 1
        offset = tidy(worker, last.offset if last else 0)
        command.bring_hooks(worker, card.path)
        run = Run(
            number=number,
            kind=kind,
            command=command.command_line(worker, card, hive.learnings_folder, resume=offset > 0),
            cwd=card.path,
            offset=offset,
            machine=machine(),
        )
        try:
            make_folders(str(worker.state / "runs"))  # of a worker that others made
            write_small(str(worker.prompt_file(number)), text)
            worker.write_run(run)
        except OSError as error:
            raise HiveError(f"{worker.state}: {error.strerror}: nothing was started") from None
        said = _start_runner(worker, number, lock, command.environment(hive, worker, card))
    finally:
        os.close(lock)
    if said != _STARTED:
        raise HiveError(f"{worker.id} could not be started: {said.decode(errors='replace')}")
    return run


def locked(worker: Worker, wait_secs: float = ENDING_SECS) -> int:
    """Return a descriptor that holds a worker's lock; HiveError: it has a process.

    One that said its last word is about to end, and its runner gives the lock back then.
    """
    make_folders(str(worker.state))
    run = worker.last_run()
    is_busy = run is not None and run.process_lives() and not has_last_word(worker.status(), run)
    try:
        return take_lock(worker.lock, 0 if is_busy else wait_secs)
    except LockHeldError:
        raise HiveError(f"{worker.id} has a process: two would spoil its session") from None


def refuse_living(home: str, worker: Worker) -> None:
    """HiveError: a process is on a worker's session, or may be; to be asked under its lock.

    The lock is free also when a runner was killed, and its Claude Code goes on; and whoever starts
    Claude Code by hand knows of no lock.
    """
    for run in worker.runs():
        lives = run.process_lives()
        if lives is None:
            raise HiveError(f"{worker.id} runs on another machine, or did: {run.machine}")
        if lives:
            raise HiveError(f"{worker.id} has a process ({run.pid}): two would spoil its session")
    if pid := Strangers(home).of(worker):
        raise HiveError(f"{worker.id}: process {pid}, started elsewhere, is on its session")


def _start_runner(worker: Worker, number: int, lock: int, env: dict[bytes, bytes]) -> bytes:
    """Start the runner and return what it says of the start."""
    reader, writer = os.pipe()
    with open(worker.state / "runner.log", "ab", opener=plain) as log:
        subprocess.run(  # it goes on in a child of its own, nobody's zombie
            [
                sys.executable,
                "-I",
                "-m",
                "hivepipe.hive.runner",
                str(worker.folder),
                str(worker.state),
                str(number),
                str(lock),
                str(writer),
            ],
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
        said = pipe.read()
    return said or b"its runner ended at once: see runner.log in its state"
