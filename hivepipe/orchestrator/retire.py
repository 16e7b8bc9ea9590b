"""Archive and delete finished workers. Their rows and costs stay in the store.

If a spawn created a task, the task ends with the last worker that has it.
"""

import gzip
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from hivepipe.db import hive as store
from hivepipe.errors import HiveError
from hivepipe.files.regular_file import MOST_BYTES, whole
from hivepipe.home import write_small
from hivepipe.orchestrator import costs, records
from hivepipe.orchestrator.folder import Hive, known_hives
from hivepipe.orchestrator.plain_file import lines_in, open_regular
from hivepipe.orchestrator.records import opened
from hivepipe.orchestrator.start import locked, refuse_living
from hivepipe.orchestrator.transcript import repair_transcript
from hivepipe.orchestrator.worker import Worker
from hivepipe.redact import of_session
from hivepipe.redact.redactor import Redactor

PACKED = "transcript.jsonl.gz"


def archive(hive: Hive, worker: Worker) -> Path:
    """Move a worker into the archive, with secrets redacted and its transcript compressed.

    Return the folder in the archive. A worker that hivepipe did not start is moved unchanged. Raise
    HiveError if the worker has a process or its archive folder exists, and StoreError if the store
    cannot be written.
    """
    archived = hive.archived_worker(worker.id)
    target = archived.folder
    if target.exists():
        raise HiveError(f"{target} exists already: move it away")
    with _idle(hive.home, worker):
        if worker.is_own():
            with suppress(HiveError):  # a transcript that is a symbolic link is moved unchanged
                repair_transcript(worker)
        _record_end(hive, worker, "archived_at")
        if worker.is_own():
            redactor = _redactor(worker.transcript)
            for path in [path for folder in worker.folders for path in folder.rglob("*")]:
                if path != worker.transcript:
                    _redact(path, redactor)
            _pack(worker.transcript, redactor)
        # The folder is moved first: after a crash, `sync_moved_workers` completes the move.
        worker.folder.rename(target)
        worker.state.rename(archived.state)
    return target


def delete(hive: Hive, worker: Worker) -> None:
    """Delete a worker's folders permanently. Raise the errors that `archive` raises."""
    with _idle(hive.home, worker):
        _record_end(hive, worker, "deleted_at")
        _remove(worker)


def sync_moved_workers(hive: Hive) -> list[Worker]:
    """Move or remove the state of workers whose folders a user moved or removed by hand.

    The store is updated, too. Return the workers whose process still runs. Raise StoreError if the
    store cannot be written now.
    """
    if not hive.workers_folder.is_dir():  # perhaps not mounted, so no worker counts as removed
        return []
    with opened(hive.home) as db:  # before the listing, because a spawn makes its folder first
        recorded = store.live_workers(db, hive.stored_root)
    at_work = []
    for worker in hive.without_folder():
        run = worker.last_run()
        if run and run.is_at_work() is not False:
            at_work.append(worker)
        else:
            _sync_moved_worker(hive, worker)
    if gone := recorded - {worker.id for worker in (*hive.workers(), *at_work)}:
        archived = {worker.id for worker in hive.archived()}
        with opened(hive.home) as db, db.transaction():
            for id in gone:
                column = "archived_at" if id in archived else "deleted_at"
                store.end_worker(db, id, column)
    return at_work


def _sync_moved_worker(hive: Hive, worker: Worker) -> None:
    # If a runner holds the lock, the next check tries again.
    with suppress(HiveError), locked(worker, 0):
        moved = hive.archived_worker(worker.id)
        if worker.folder.is_dir():  # the folder was made after the listing
            return
        if not moved.folder.is_dir():
            _record_end(hive, worker, "deleted_at")
            shutil.rmtree(worker.state)
        elif moved.state.exists():
            shutil.rmtree(worker.state)
        else:
            worker.state.rename(moved.state)
            _record_end(hive, moved, "archived_at")


def drop_archived(hive: Hive, before: str) -> list[Path]:
    """Delete the folders of workers archived before a UTC time; return the deleted folders.

    A worker stays if hivepipe did not start it, or if one of its files changed after this time.
    """
    archived = [each for each in hive.archived() if each.is_own()]
    if not archived:
        return []
    with opened(hive.home) as db:
        old = store.archived_before(db, hive.stored_root, before)
    # The state of a worker that was moved while it ran is not in the archive yet.
    at_work = {worker.id for worker in hive.without_folder()}
    since = datetime.fromisoformat(before).timestamp()
    over = [each for each in archived if each.id in old - at_work and each.changed_at() < since]
    for worker in over:
        _remove(worker)
    return [worker.folder for worker in over]


def workers_of(home: str) -> tuple[list[Worker], list[str]]:
    """Return all workers of a home, also archived ones and those with a moved or removed folder.

    Also return the errors of hives that cannot be migrated or read. Workers of these hives may be
    missing.
    """
    found: list[Worker] = []
    obstacles = []
    for hive in known_hives(home):
        try:
            hive.migrated()
            found += (*hive.workers(), *hive.archived(), *hive.without_folder())
        except (HiveError, OSError) as error:
            obstacles.append(f"{hive.root}: {error}")
    return found, obstacles


def remove_workers(home: str, workers: Iterable[Worker]) -> None:
    """Delete the folders of workers.

    Raise HiveError if a worker has a process, because the process may write to the folders.
    """
    for worker in workers:
        with _idle(home, worker):
            _remove(worker)


def _remove(worker: Worker) -> None:
    """Remove a worker's folders.

    The folder in `.hive` is removed last, because a retry finds the worker by this folder.
    """
    for folder in reversed(worker.folders):
        if folder.exists():
            shutil.rmtree(folder)


@contextmanager
def _idle(home: str, worker: Worker) -> Iterator[None]:
    """Hold the lock of a worker. Raise HiveError if the worker has a process."""
    with locked(worker):
        refuse_living(home, worker)
        yield


def _record_end(hive: Hive, worker: Worker, column: str) -> None:
    """Write a worker's last rows and the time in `column`, archived_at or deleted_at."""
    for run in worker.runs():
        if run.is_started and run.cost_usd is None:
            costs.record_cost(worker, run)
    with opened(hive.home) as db, db.transaction():
        records.record_last(db, hive, worker)
        store.end_worker(db, worker.id, column)


def _redactor(transcript: Path) -> Redactor:
    """Return a redactor that has learned the secrets found in a transcript."""
    redactor = of_session()
    if transcript.is_file() and not transcript.is_symlink():
        with open(transcript, "rb", opener=open_regular) as lines:
            for line in lines_in(lines, transcript):
                redactor.redact_line(line)
    return redactor


def _redact(path: Path, redactor: Redactor) -> None:
    """Redact secrets in a text file. Binary files and symbolic links stay unchanged."""
    if path.is_symlink() or not path.is_file():
        return
    with open(path, "rb", buffering=0, opener=open_regular) as file:
        data = whole(file, path, MOST_BYTES)
    if b"\0" in data:
        return
    text = data.decode("utf-8", "surrogateescape")  # `write_small` restores the other bytes
    clean = redactor.redact_text(text)
    if clean != text:
        write_small(str(path), clean)


def _pack(path: Path, redactor: Redactor) -> None:
    """Redact and compress the transcript, unless it is a link; then remove the original."""
    if path.is_symlink() or not path.is_file():
        return
    temporary = path.with_name(f"{PACKED}.tmp")
    with open(temporary, "wb", opener=open_regular) as file:
        with (
            open(path, "rb", opener=open_regular) as lines,
            gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed,
        ):
            for line in lines_in(lines, path):
                packed.write(redactor.redact_line(line)[0])
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path.with_name(PACKED))
    path.unlink()
