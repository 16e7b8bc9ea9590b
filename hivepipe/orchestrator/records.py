"""Copy the state in the folders of workers into the store. Repeated copies change nothing.

The folder is authoritative. The store keeps the data, with the costs, after the folder is gone. If
the store cannot be written now, for example because it is locked, the next check writes the data.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from hivepipe.db import database, tasks
from hivepipe.db import hive as store
from hivepipe.db.database import Database
from hivepipe.db.forget import is_forgotten
from hivepipe.db.location import database_path
from hivepipe.errors import HiveError, StoreError
from hivepipe.events.claude_code import clean
from hivepipe.orchestrator import projects
from hivepipe.orchestrator.costs import MICRO, cost_before
from hivepipe.orchestrator.folder import Hive
from hivepipe.orchestrator.run import Run
from hivepipe.orchestrator.status import Status
from hivepipe.orchestrator.worker import Card, Worker
from hivepipe.redact import redact_text
from hivepipe.times import stored_time

NO_STATES: Mapping[str, str] = {}
_LONGEST_TEXT = 2000


@contextmanager
def opened(home: str) -> Iterator[Database]:
    """Open the database of a home. An OSError in the block is raised as StoreError, too."""
    try:
        with database.opened(home) as db:
            yield db
    except OSError as error:
        raise StoreError(f"cannot write {database_path(home)}: {error}") from error


def record(hive: Hive, workers: Iterable[Worker], states: Mapping[str, str] = NO_STATES) -> None:
    """Update the rows of these workers from their folders. Raise StoreError if that fails.

    `states` has the state of each worker that was checked, by worker id. Nothing is written if
    nothing changed, so that checks do not delay the writer.
    """
    with opened(hive.home) as db:
        changed = [
            worker
            for worker in workers
            if not _marks(worker, states.get(worker.id)) <= store.stored_marks(db, worker.id)
        ]
        if changed:
            with db.transaction():
                for worker in changed:
                    record_worker(db, hive, worker)
                    if state := states.get(worker.id):
                        store.set_state(db, worker.id, state)


def _marks(worker: Worker, state: str | None) -> set[tuple[object, ...]]:
    """Return tuples of state, runs and status, to compare with `store.stored_marks`."""
    marks: set[tuple[object, ...]] = {("status", worker.status().changed_ns)}
    if state:
        marks.add(("state", state))
    for run in worker.runs():
        marks.add((run.number, run.pid or None, run.ended_at or None, _micro_usd(run)))
    return marks


def record_worker(db: Database, hive: Hive, worker: Worker) -> None:
    """Write all rows of a worker in the caller's transaction, unless its session is forgotten."""
    card = worker.card()
    if is_forgotten(db, card.session):
        return
    store.record_worker(db, _worker_row(hive, worker, card))
    for run in worker.runs():
        store.record_run(db, _run_row(worker, card, run))
    status = worker.status()
    if status.changed_ns:
        record_status(db, worker.id, card, status)


def ended_worker(hive: Hive, session: str) -> str:
    """Return an error that names the archived or deleted worker of a session, or ""."""
    for worker in hive.archived():
        if worker.card().session == session:
            return f"{worker.id} is archived"
    try:
        with opened(hive.home) as db:
            return store.ended_worker(db, session)
    except StoreError:  # no usable database: the check of the folders must suffice
        return ""


def record_last(db: Database, hive: Hive, worker: Worker) -> None:
    """Write all rows of a worker before the worker is archived or deleted.

    The cost of runs that hivepipe did not start is stored as run 0.
    """
    record_worker(db, hive, worker)
    card = worker.card()
    cost = cost_before(worker)
    if cost and not is_forgotten(db, card.session):
        others = Run(number=0, kind="others", command=[], cwd="", cost_usd=str(cost))
        store.record_run(db, _run_row(worker, card, others))


def record_one_status(hive: Hive, worker: Worker, status: Status) -> None:
    """Store one status of a worker. Raise StoreError if the store cannot be written."""
    card = worker.card()
    with opened(hive.home) as db, db.transaction():
        if not is_forgotten(db, card.session):
            record_status(db, worker.id, card, status)


def record_status(db: Database, worker: str, card: Card, status: Status) -> None:
    """Write a worker's status and update its task, in the caller's transaction."""
    at = stored_time(status.changed_ns)
    row = {
        "worker_id": worker,
        "session_id": card.session,
        "changed_ns": status.changed_ns,
        "sha256": status.digest,
        "status": status.word,
        "content": content_of(status),
        "changed_at": at,
    }
    time_ns = store.record_status(db, row)
    if not card.task_id:
        return
    if progress := status.text("progress") or status.text("result"):
        shown = redact_text(progress)[:_LONGEST_TEXT]
        tasks.set_task_progress(db, card.task_id, shown, at, time_ns)
    if status.word == "done":
        tasks.set_task_state(db, card.task_id, "done", at, time_ns)


def content_of(status: Status) -> str:
    """Return a status as JSON, with secrets redacted and long texts cut."""
    return json.dumps(shown(status))


def shown(status: Status) -> Any:
    """Return a status as JSON values, with secrets redacted and long texts cut."""
    return _kept({**status.fields, "problems": list(status.problems)})


def _kept(value: Any) -> Any:
    if isinstance(value, str):
        return redact_text(value)[:_LONGEST_TEXT]
    if isinstance(value, dict):
        return {redact_text(str(key)): _kept(inner) for key, inner in list(value.items())[:50]}
    if isinstance(value, list):
        return [_kept(inner) for inner in value[:50]]
    return value


def _worker_row(hive: Hive, worker: Worker, card: Card) -> dict[str, Any]:
    try:
        listed = projects.read(hive.projects_file)
    except HiveError:
        listed = {}
    return {
        "id": worker.id,
        "session_id": card.session,
        "hive": hive.stored_root,
        "project": card.project or projects.project_of(worker.id, listed),
        "project_path": clean(card.path) or None,
        "task_id": card.task_id or None,
        "profile": card.profile or None,
        "respawn_of": card.respawn_of or None,
        "created_at": card.created_at or None,
    }


def _run_row(worker: Worker, card: Card, run: Run) -> dict[str, Any]:
    return {
        "worker_id": worker.id,
        "session_id": card.session,
        "number": run.number,
        "kind": run.kind,
        "machine": run.machine,
        "pid": run.pid or None,
        "pid_started": run.pid_started or None,
        "started_at": run.started_at or None,
        "ended_at": run.ended_at or None,
        "exit_code": run.exit_code,
        "is_lost": run.is_lost,
        "outcome": run.outcome or None,
        "cost_micro_usd": _micro_usd(run),
    }


def _micro_usd(run: Run) -> int:
    return int(Decimal(run.cost_usd or 0) * MICRO)
