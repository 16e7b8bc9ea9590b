"""What a worker's folder says, brought into the store by whoever looks, as often as they like.

The folder is the truth; the store answers when it is gone, and adds up. A store that cannot be
written (locked, say) stops nobody: the next one who looks writes it.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from decimal import Decimal
from typing import Any

from hivepipe.errors import HiveError, StoreError
from hivepipe.hive import projects
from hivepipe.hive.costs import MICRO, cost_before
from hivepipe.hive.folder import Hive
from hivepipe.hive.run import Run
from hivepipe.hive.status import Status
from hivepipe.hive.worker import Card, Worker
from hivepipe.redaction import redact_text
from hivepipe.store import hive as store
from hivepipe.store import tasks
from hivepipe.store.database import Database
from hivepipe.store.forgetting import is_forgotten
from hivepipe.store.location import database_path
from hivepipe.stored_times import stored_time

NO_STATES: Mapping[str, str] = {}
_LONGEST_TEXT = 2000


@contextmanager
def opened(home: str) -> Iterator[Database]:
    """Open the database of a home; StoreError: it cannot be used."""
    path = database_path(home)
    try:
        with closing(Database(path)) as db:
            yield db
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"cannot write {path}: {error}") from error


def record(hive: Hive, workers: Iterable[Worker], states: Mapping[str, str] = NO_STATES) -> None:
    """Bring the rows of these workers up to their folders; StoreError: not now.

    `states`: of those that were looked at how they stand, by id.

    Nothing is written where nothing changed: the writer is not to wait for those who look.
    """
    with opened(hive.home) as db:
        changed = [
            worker
            for worker in workers
            if not _marks(worker, states.get(worker.id)) <= store.known(db, worker.id)
        ]
        if changed:
            with db.transaction():
                for worker in changed:
                    record_worker(db, hive, worker)
                    if state := states.get(worker.id):
                        store.set_state(db, worker.id, state)


def _marks(worker: Worker, state: str | None) -> set[tuple[object, ...]]:
    """Return by what `store.known` tells whether it has all of this."""
    marks: set[tuple[object, ...]] = {("status", worker.status().changed_ns)}
    if state:
        marks.add(("state", state))
    for run in worker.runs():
        marks.add((run.number, run.pid or None, run.ended_at or None, _micro_usd(run)))
    return marks


def record_worker(db: Database, hive: Hive, worker: Worker) -> None:
    """Write all rows of a worker, within the caller's transaction; of a forgotten session none."""
    card = worker.card()
    if is_forgotten(db, card.session):
        return
    store.record_worker(db, _worker_row(hive, worker, card))
    for run in worker.runs():
        store.record_run(db, _run_row(worker, card, run))
    status = worker.status()
    if status.changed_ns:
        record_status(db, worker.id, card, status)


def over(hive: Hive, session: str) -> str:
    """Say which worker of a home had a session and is archived or deleted; empty if none."""
    for worker in hive.archived():
        if worker.card().session == session:
            return f"{worker.id} is archived"
    try:
        with opened(hive.home) as db:
            return store.over(db, session)
    except StoreError:  # it is not there yet, or in trouble: the folders have spoken
        return ""


def record_last(db: Database, hive: Hive, worker: Worker) -> None:
    """Write all rows of a worker that is about to go, runs of others among them as run 0."""
    record_worker(db, hive, worker)
    card = worker.card()
    cost = cost_before(worker)
    if cost and not is_forgotten(db, card.session):
        others = Run(number=0, kind="others", command=[], cwd="", cost_usd=str(cost))
        store.record_run(db, _run_row(worker, card, others))


def record_status(db: Database, worker: str, card: Card, status: Status) -> None:
    """Write what a worker said, and what follows for its task; within a transaction."""
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
    store.record_status(db, row)
    if not card.task_id:
        return
    if progress := status.text("progress") or status.text("result"):
        shown = redact_text(progress)[:_LONGEST_TEXT]
        tasks.set_task_progress(db, card.task_id, shown, at, status.changed_ns)
    if status.word == "done":
        tasks.set_task_state(db, card.task_id, "done", at, status.changed_ns)


def content_of(status: Status) -> str:
    """Return what a worker said as JSON, secrets taken out, long texts cut."""
    return json.dumps(shown(status))


def shown(status: Status) -> Any:
    """Return what a worker said, secrets taken out, long texts cut."""
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
        "hive": str(hive.root),
        "project": card.project or projects.project_of(worker.id, listed),
        "project_path": card.path or None,
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
