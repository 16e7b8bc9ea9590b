"""Run a worker with one additional slow operation, `test_work`.

python -I launch_slow.py <script of workers/> <folder for marks>

The payload of `test_work` has these fields:

how        ok, hold (wait for the file `go`, but end when told to stop), stubborn (hold without
           ending), die, refuse (raise JobError), bug, wrongtype (of a key in Redis), missing (a
           file), full (the disk), unreadable or damaged (the store), memory (none is left), or
           once (missing the first time)
note       the result: a prompt with this text
settle_s   seconds to wait first
"""

import errno
import os
import runpy
import signal
import sqlite3
import sys
import time
from pathlib import Path

import redis

from hivepipe.errors import JobError, StoreError
from hivepipe.events.job_plan import Job
from hivepipe.jobs import retry
from hivepipe.jobs.args import Args
from hivepipe.jobs.origin import Origin
from hivepipe.operations import declared
from hivepipe.operations.job_context import JobContext
from hivepipe.worker import claiming_worker, slow_worker

SCRIPT, FOLDER = Path(sys.argv[1]), Path(sys.argv[2])
RAISED = {
    "refuse": JobError("this will never do"),
    "bug": KeyError("bad"),
    "wrongtype": redis.ResponseError("WRONGTYPE"),
    "memory": MemoryError(),
    "full": OSError(errno.ENOSPC, "No space left on device"),
    "unreadable": StoreError("cannot read"),
    "damaged": sqlite3.DatabaseError("database disk image is malformed"),
}


class TestWork(Args, handler="test_work", priority=8, queue="slow"):
    how: str = ""
    note: str = ""


def test_work(context: JobContext, job: Origin, args: TestWork) -> None:
    how, note = args.how, args.note
    with (FOLDER / f"began-{note}").open("a") as marks:
        marks.write(f"{time.time()} {os.getpid()}\n")
    if how in ("hold", "stubborn"):
        while not (FOLDER / "go").exists():
            if how == "hold":
                context.check_stop()
            time.sleep(0.01)
    elif how == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how in RAISED:
        raise RAISED[how]
    elif how == "missing" or (how == "once" and not (FOLDER / f"second-{note}").exists()):
        (FOLDER / f"second-{note}").touch()
        raise FileNotFoundError(errno.ENOENT, "No such file", note)
    payload = {"prompt_id": note, "prompt": f"noted {note}"}
    context.follow_up(job, [Job("record_prompt", payload, "")])


declared.LOADED["test_work"] = test_work
slow_worker.RENEW_SECS = 0.05
claiming_worker.LOCK_WAIT_SECS = 1.0
retry.FILE_SECS = (0.05, 0.05, 0.05, 0.05)
if SCRIPT.suffix == ".py":
    runpy.run_path(str(SCRIPT), run_name="__main__")
else:
    sys.argv = sys.argv[3:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
