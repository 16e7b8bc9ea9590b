"""Tasks: what a session's start says of its task, and what a person says with `hivepipe task`."""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager

from hivepipe.envelope import Envelope
from hivepipe.errors import BadEnvelopeError, TaskError
from hivepipe.events import valid_id
from hivepipe.guard import task_files
from hivepipe.jobs import utc
from hivepipe.redaction import redact_text
from hivepipe.store import tasks
from hivepipe.store.database import Database, opened
from hivepipe.store.location import database_path
from hivepipe.store.sessions import sessions_like
from hivepipe.stored_times import now

FORM_OF_IDS = "up to 128 letters, digits, '.', '_', '-'"


def assign_task(db: Database, job: Envelope) -> None:
    """A session was started with a task; one that only its launcher knew is known from now on."""
    task = valid_id(job.text("task_id"))
    if not task:
        raise BadEnvelopeError("task_id is not a valid id")
    tasks.add_task(db, task, "", job.time)
    tasks.assign_task(db, task, job.session, job.time, job.event_time_ns)


class TaskBoard:
    """Changes the tasks of a home; it takes effect at once, whatever runs."""

    def __init__(self, home: str, db: Database) -> None:
        """The database is the caller's to close."""
        self._home = home
        self._db = db

    def add(self, text: str, named: str = "") -> str:
        """Add a task and return its id."""
        task = valid_id(named) if named else f"task-{secrets.token_hex(4)}"
        if not task:
            raise TaskError(f"{named!r} cannot be an id: {FORM_OF_IDS}")
        if not text.strip():
            raise TaskError("a task needs a text")
        with self._db.transaction():
            if tasks.tasks_like(self._db, task) == [task]:
                raise TaskError(f"there is a task {task} already")
            tasks.add_task(self._db, task, text, now()[0])
        return task

    def progress(self, prefix: str, text: str) -> str:
        """Say how far a task has come."""
        task = self._find(prefix)
        with self._db.transaction():
            tasks.set_task_progress(self._db, task, text, *now())
        return task

    def assign(self, prefix: str, of_session: str) -> tuple[str, str, bool]:
        """Give a session a task, what it had before counts no more; return both ids.

        The beginning of a session's id is enough. False beside them: nobody has heard of the
        session, whose start may be on its way.
        """
        task = self._find(prefix)
        session, was_known = self.session(of_session)
        task_files.assign(self._home, task, session)
        with self._db.transaction():
            tasks.assign_task(self._db, task, session, *now())
        return task, session, was_known

    def session(self, prefix: str) -> tuple[str, bool]:
        """Return the id of a session, and is it known? TaskError: it is none, or one of many."""
        if not valid_id(prefix):
            raise TaskError(f"{prefix!r} cannot be a session: {FORM_OF_IDS}")
        found = sessions_like(self._db, prefix)
        if len(found) > 1:
            raise TaskError(f"{len(found)} ids of a session begin with {prefix}")
        return (found[0], True) if found else (prefix, False)

    def finish(self, prefix: str) -> str:
        """A task is done: its sessions have none any more."""
        task = self._find(prefix)
        self._set_state(task, "done")
        task_files.release(self._home, task)
        task_files.allow(self._home, task)
        return task

    def cancel(self, prefix: str, reason: str) -> tuple[str, bool]:
        """Stop all sessions of a task; False beside its id: nobody had heard of it here.

        The file comes first: should the database be locked, the sessions are stopped all the same.
        """
        found = self._like(prefix)
        task = self._find(prefix) if found else valid_id(prefix)
        if not task:
            raise TaskError(f"no task has the id {prefix}")
        task_files.cancel(self._home, task, utc(time.time_ns()), redact_text(reason))
        self._set_state(task, "cancelled", reason)
        return task, bool(found)

    def reopen(self, prefix: str) -> str:
        """Take a cancellation back, or open what was done."""
        task = self._find(prefix)
        self._set_state(task, "open")
        task_files.allow(self._home, task)
        return task

    def _set_state(self, task: str, status: str, reason: str = "") -> None:
        at, time_ns = now()
        with self._db.transaction():
            tasks.add_task(self._db, task, "", at)
            tasks.set_task_state(self._db, task, status, at, time_ns, reason)

    def _like(self, prefix: str) -> list[str]:
        """Nothing is no beginning: a script's empty variable must not mean the only task."""
        return tasks.tasks_like(self._db, prefix) if prefix else []

    def _find(self, prefix: str) -> str:
        found = self._like(prefix)
        if len(found) == 1:
            return found[0]
        if found:
            raise TaskError(f"{len(found)} ids of a task begin with {prefix}")
        raise TaskError(f"no task has the id {prefix}")


@contextmanager
def task_board(home: str) -> Iterator[TaskBoard]:
    """Open the tasks of a home; StoreError: the database cannot be used."""
    try:
        with opened(database_path(home)) as db:
            yield TaskBoard(home, db)
    except OSError as error:
        raise TaskError(f"cannot write {error.filename}: {error.strerror}") from error
