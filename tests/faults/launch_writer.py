"""Run workers/writer.py, which pauses or dies at a point.

    python -I launch_writer.py '{"folder": "...", "pause": "executed"}'

pause: "claimed" (before the transaction), "executed" (before COMMIT) or "committed" (before the
acknowledgement). At this point the batch after the first `after` ones writes a marker
`<point>.<pid>` and waits for the file `go`. Every process marks its first claim as
`first-claim.<pid>`.
poison: a prompt whose job kills its process.
scarce: a prompt whose job finds no memory the first time.
operations: names of installed operations. Their jobs are not spooled before the file `go` exists.
"""

import errno
import json
import os
import runpy
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hivepipe.db.database import Database
from hivepipe.operations import custom_runs, declared, follow_up
from hivepipe.queue import spool
from hivepipe.queue.claims import Claim, Claims
from hivepipe.worker import writer

OPTIONS = {
    "pause": "",
    "after": 0,
    "poison": "",
    "scarce": "",
    "operations": [],
    **json.loads(sys.argv[1]),
}
FOLDER = Path(OPTIONS["folder"])
come = {"": 0}
batch = {"in commit": False}  # otherwise the transaction stores heartbeats


def mark(point: str) -> None:
    path = FOLDER / f"{point}.{os.getpid()}"
    path.with_suffix(".tmp").write_text(point)
    path.with_suffix(".tmp").rename(path)


def here(point: str) -> None:
    if OPTIONS["pause"] != point:
        return
    come[""] += 1
    if come[""] != OPTIONS["after"] + 1:
        return
    mark(point)
    while not (FOLDER / "go").exists():
        time.sleep(0.005)


claim, acknowledge = Claims.claim, Claims.acknowledge
transaction, commit_batch = Database.transaction, writer.commit_batch
record_prompt = declared.handler_of("record_prompt")


def marked_claim(self: Claims, places: int) -> Claim:
    found = claim(self, places)
    if found.jobs and not (FOLDER / f"first-claim.{os.getpid()}").exists():
        mark("first-claim")
    return found


def paused_acknowledge(self: Claims, done: Any) -> int:
    if done:
        here("committed")
    return acknowledge(self, done)


@contextmanager
def paused_transaction(self: Database) -> Iterator[None]:
    with transaction(self):
        yield
        if batch["in commit"]:
            here("executed")


def paused_commit(*arguments: Any) -> Any:
    here("claimed")
    batch["in commit"] = True
    outcome = commit_batch(*arguments)
    batch["in commit"] = False
    return outcome


def deadly_prompt(db: Database, job: Any, args: Any) -> None:
    if OPTIONS["poison"] and args.prompt == OPTIONS["poison"]:
        os.kill(os.getpid(), signal.SIGKILL)
    record_prompt(db, job, args)
    if OPTIONS["scarce"] == args.prompt and not (FOLDER / "scarce").exists():
        mark("scarce")
        (FOLDER / "scarce").touch()
        raise MemoryError


def keep_event(*arguments: Any) -> str:
    if not (FOLDER / "go").exists():
        mark("refused")
        raise OSError(errno.ENOSPC, "No space left on device")
    return spool.keep_event(*arguments)


if OPTIONS["operations"]:
    custom_runs.installed_names = lambda: tuple(OPTIONS["operations"])
    follow_up.keep_event = keep_event
Claims.claim = marked_claim  # type: ignore[method-assign]
Claims.acknowledge = paused_acknowledge  # type: ignore[method-assign]
Database.transaction = paused_transaction  # type: ignore[method-assign]
writer.commit_batch = paused_commit
declared.LOADED["record_prompt"] = deadly_prompt
runpy.run_path(
    str(Path(__file__).resolve().parents[2] / "workers" / "writer.py"), run_name="__main__"
)
