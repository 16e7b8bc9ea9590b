"""The parent process of a worker's Claude Code: start it, wait for it, record its end.

    python -I -m hivepipe.orchestrator.runner <worker's folder> <its state> <run> <lock> <answer>

The runner outlives the process that started it, and holds the worker's lock until it ends. The
runner reads no output: Claude Code itself writes to the files. So nothing is lost or blocked if the
runner is killed. In that case the next check records the end of the run.

The last two arguments are file descriptors: the worker's lock, and a pipe for the result of the
start (`started` or an error). The environment is passed to Claude Code unchanged.
"""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from hivepipe.hook.alive import start_time
from hivepipe.orchestrator.plain_file import open_regular
from hivepipe.orchestrator.recorded_process import group_lives
from hivepipe.orchestrator.run import Run, read_run
from hivepipe.orchestrator.worker import Worker
from hivepipe.programs import module
from hivepipe.times import now

CANNOT_START = 127
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND


def main() -> None:
    """Execute one run to its end, then execute after_run in this process."""
    if os.fork():
        os._exit(0)
    worker = Worker(Path(sys.argv[1]), Path(sys.argv[2]))
    number, lock, answer = map(int, sys.argv[3:])
    path = worker.run_file(number)
    run = read_run(path)
    if run is None:
        sys.exit(f"there is no planned run: {path}")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the terminal of the starting process may close
    run.runner_pid, run.runner_started = os.getpid(), start_time(os.getpid())
    worker.write_run(run)
    trouble, pid = _start(worker, run, (lock, answer))
    _tell(answer, trouble or "started")
    _, status = os.waitpid(pid, 0)
    ended = read_run(path) or run  # the run's own process has changed its record
    ended.exit_code = os.waitstatus_to_exitcode(status)
    ended.ended_at, _ = now()
    ended.trouble = trouble
    ended.left_behind = not trouble and group_lives(pid)
    worker.write_run(ended)
    words = module("hivepipe.orchestrator.after_run", worker.folder, worker.state)
    os.execv(words[0], words)


def _start(worker: Worker, run: Run, own: tuple[int, int]) -> tuple[str, int]:
    """Start Claude Code, detached and without the descriptors `own`; return (error, pid)."""
    reader, writer = os.pipe()  # a successful exec closes `writer`: no error is read
    pid = os.fork()
    if pid == 0:
        try:
            for descriptor in own:
                os.set_inheritable(descriptor, False)
            _become(worker, run)
        except OSError as error:
            message = f"{error.filename or run.command[0]}: {error.strerror}"
            os.write(writer, message.encode("utf-8", "backslashreplace"))
        finally:
            os._exit(CANNOT_START)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        return pipe.read().decode(), pid


def _become(worker: Worker, run: Run) -> None:
    """Record this process, then execute Claude Code in it, so that no process runs unrecorded."""
    os.setsid()
    os.chdir(run.cwd)
    descriptors = (
        os.open(worker.prompt_file(run.number), os.O_RDONLY | os.O_CLOEXEC),
        open_regular(worker.transcript, _APPEND),
        open_regular(worker.stderr, _APPEND),
    )
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    run.pid, run.pid_started = os.getpid(), start_time(os.getpid())
    run.started_at, run.started_ns = now()
    worker.write_run(run)
    # Reset these signals, because `exec` would keep them ignored.
    for number in (signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execv(run.command[0], run.command)


def _tell(descriptor: int, text: str) -> None:
    with suppress(BrokenPipeError):  # the starting process has ended: the run continues
        os.write(descriptor, text.encode())
    os.close(descriptor)


if __name__ == "__main__":
    main()
