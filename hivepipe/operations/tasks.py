"""Tasks: assign them when a session starts, and change them for `hivepipe task`."""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hivepipe.db import tasks
from hivepipe.db.database import Database, opened
from hivepipe.db.location import database_path
from hivepipe.db.sessions import session_ids
from hivepipe.errors import StoreError, TaskError
from hivepipe.events.claude_code import valid_id
from hivepipe.events.job_plan import utc
from hivepipe.guard import task_files
from hivepipe.home import read_small
from hivepipe.jobs.origin import Origin
from hivepipe.operations.briefing_files import BriefingFiles
from hivepipe.operations.families.history import AssignTask
from hivepipe.redact import redact_text
from hivepipe.times import now

_CLOSE_IDS = 3
_UNKNOWN_SESSION = " (for a session without recorded events yet, add --unknown)"
_UNKNOWN_TASK = " (for a task that only its launcher knows, add --unknown)"
FORM_OF_IDS = "up to 128 letters, digits, '.', '_', '-'"


def assign_task(db: Database, job: Origin, args: AssignTask) -> None:
    """Assign a task to a session that was started with it. Add the task if it is unknown."""
    tasks.add_task(db, args.task_id, "", job.time)
    tasks.assign_task(db, args.task_id, job.session, job.time, job.event_time_ns)


class TaskBoard:
    """Changes the tasks of a home; each change takes effect at once."""

    def __init__(self, home: str, db: Database) -> None:
        self._home = home
        self._db = db

    def add(self, text: str, named: str = "") -> str:
        """Store a task with this text; return its id, `named` or new. May raise TaskError."""
        task = valid_id(named) if named else f"task-{secrets.token_hex(4)}"
        if not task:
            raise TaskError(f"{named!r} cannot be an id: {FORM_OF_IDS}")
        if not text.strip():
            raise TaskError("a task needs a text")
        with self._db.transaction():
            if tasks.has_text(self._db, task):
                raise TaskError(f"there is a task {task} already")
            tasks.add_task(self._db, task, text, now()[0])
        return task

    def progress(self, prefix: str, text: str) -> str:
        task = self._find(prefix)
        with self._db.transaction():
            tasks.set_task_progress(self._db, task, text, *now())
        return task

    def assign(self, prefix: str, of_session: str, *, unknown: bool = False) -> tuple[str, str]:
        """Assign a task to a session and replace the session's previous task; return both ids.

        Raise TaskError unless each prefix fits one; for `unknown`, see `session`.
        """
        task = self._find(prefix)
        session = self.session(of_session, unknown=unknown)
        task_files.assign(self._home, task, session)
        with self._db.transaction():
            tasks.assign_task(self._db, task, session, *now())
        return task, session

    def session(self, prefix: str, *, unknown: bool = False) -> str:
        """Return the full id of a session, given an id or a prefix.

        Raise TaskError if the id is invalid, ambiguous or unknown. With `unknown`, accept a session
        whose start has not arrived yet.
        """
        if not valid_id(prefix):
            raise TaskError(f"{prefix!r} cannot be a session: {FORM_OF_IDS}")
        hooks_files = Path(self._home, "sessions").glob(".session_*")  # perhaps not stored yet
        known = {*session_ids(self._db), *(read_small(str(each)).strip() for each in hooks_files)}
        found = [prefix] if prefix in known else [id for id in known if id.startswith(prefix)]
        if len(found) > 1:
            raise TaskError(f"{len(found)} session ids begin with {prefix}")
        if found or unknown:
            return found[0] if found else prefix
        raise TaskError(_unknown_id("session", prefix, sorted(known)) + _UNKNOWN_SESSION)

    def finish(self, prefix: str) -> str:
        """Mark a task as done and return its id; its sessions have no task afterwards.

        Raise TaskError unless one task fits `prefix`.
        """
        task = self._find(prefix)
        self._set_state(task, "done")
        task_files.release(self._home, task)
        task_files.allow(self._home, task)
        return task

    def cancel(self, prefix: str, reason: str, *, unknown: bool = False) -> str:
        """Cancel a task and stop its sessions; return the whole id of the task.

        Raise TaskError unless one task fits `prefix`; with `unknown`, it needs no row in the store.
        The file of cancelled tasks is written first, so that sessions stop even if the database is
        locked.
        """
        task = valid_id(prefix) if unknown and not self._like(prefix) else ""
        if not task:
            task = self._find(prefix, or_else=_UNKNOWN_TASK if valid_id(prefix) else "")
        task_files.cancel(self._home, task, utc(time.time_ns()), redact_text(reason))
        self._set_state(task, "cancelled", reason)
        return task

    def reopen(self, prefix: str) -> str:
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
        """Return the task ids with this prefix; an empty prefix (unset variable) matches no id."""
        return tasks.tasks_like(self._db, prefix) if prefix else []

    def _find(self, prefix: str, or_else: str = "") -> str:
        found = self._like(prefix)
        if len(found) == 1:
            return found[0]
        if found:
            raise TaskError(f"{len(found)} task ids begin with {prefix}")
        raise TaskError(_unknown_id("task", prefix, tasks.tasks_like(self._db, "")) + or_else)


def _unknown_id(kind: str, prefix: str, known: list[str]) -> str:
    """Return the error text for an unknown id, with similar ids."""
    from difflib import get_close_matches  # noqa: PLC0415  workers never need it

    close = get_close_matches(prefix, known, n=_CLOSE_IDS) if prefix else []
    text = f"no {kind} has the id {prefix}"
    return f"{text}; close to it: {', '.join(close)}" if close else text


@contextmanager
def task_board(home: str) -> Iterator[TaskBoard]:
    """Open the tasks of a home.

    Raise StoreError if the database cannot be used, and TaskError if a file cannot be written.

    The briefings are updated, so that the next session sees the changes even if no stack runs.
    """
    try:
        with opened(home) as db:
            yield TaskBoard(home, db)
    except OSError as error:
        raise TaskError(f"cannot write {error.filename}: {error.strerror}") from error
    with suppress(OSError, StoreError):  # the writer updates these files later
        BriefingFiles(home).write(database_path(home))
