"""Bringing in what the predecessor left: its file queue, its database. Nothing enters twice.

What is to be imported becomes rows first; each row is a job whose id is made from it.
"""

import json
import sqlite3
from _blake2 import blake2b
from collections.abc import Iterable, Iterator
from math import inf
from pathlib import Path
from typing import NamedTuple

from hivepipe.envelope import Envelope, compose, read_envelope
from hivepipe.errors import JobError
from hivepipe.handlers.registry import execute
from hivepipe.jobs import Job
from hivepipe.legacy_queue import Entry, entries
from hivepipe.store.applied import is_applied
from hivepipe.store.database import Database
from hivepipe.store.legacy_rows import TIMES, in_utc, is_local, known_rows
from hivepipe.store.legacy_sql import LegacySql, RefusedError

TAKEN, BEFORE, DOUBLE = "taken", "here already", "double"
REFUSED, BROKEN, NOTHING = "refused", "broken", "no such row"


class Outcome(NamedTuple):
    """What became of one entry or row."""

    name: str
    kind: str  # its operation, or its table
    outcome: str
    reason: str = ""


class Importer:
    """Brings rows into a database within the caller's transaction, or only says what there is."""

    def __init__(self, db: Database | None, time_ns: int, *, is_dry: bool) -> None:
        """`db` None: there is none yet, which only a dry run may have."""
        self._db = db
        self._time_ns = time_ns
        self._is_dry = is_dry
        self.local_times = 0  # how many had no zone, and were taken as this machine's

    def queue(self, folder: Path, parts: tuple[str, ...]) -> Iterator[Outcome]:
        """Take entries in: each statement runs on copies in memory, its rows are imported."""
        sandbox = LegacySql(known_rows(self._db) if self._db else {})
        seen: set[tuple[str, str]] = set()
        try:
            for entry in entries(folder, parts):
                yield _judged(sandbox, entry, seen)
            for outcome in self.rows(sandbox.rows()):
                if outcome.outcome == REFUSED:  # the others were told of as entries
                    yield outcome
        finally:
            sandbox.close()

    def rows(self, found: Iterable[tuple[str, dict[str, object]]]) -> Iterator[Outcome]:
        """Take rows in."""
        for table, row in found:
            if endless := [name for name, value in row.items() if value in (inf, -inf)]:
                reason = f"{', '.join(endless)}: no number that JSON has"
                yield Outcome(str(row["id"]), table, REFUSED, reason)
                continue
            self.local_times += sum(is_local(row.get(name)) for name in TIMES)
            job = _job(table, in_utc(row), self._time_ns)
            outcome, reason = self._bring(job)
            yield Outcome(str(row["id"]), table, outcome, reason)

    def _bring(self, job: Envelope) -> tuple[str, str]:
        if self._db and is_applied(self._db, job.id):
            return BEFORE, ""
        if self._is_dry or self._db is None:
            return TAKEN, ""
        try:
            with self._db.savepoint():
                execute(self._db, job)
        except (JobError, sqlite3.IntegrityError) as error:  # no other row is spoilt by it
            return REFUSED, str(error)
        return TAKEN, ""


def _judged(sandbox: LegacySql, entry: Entry, seen: set[tuple[str, str]]) -> Outcome:
    name = f"{entry.path.parent.name}/{entry.path.name}"
    if entry.problem:
        return Outcome(name, entry.operation, BROKEN, entry.problem)
    if (entry.sql, entry.created_at) in seen:
        return Outcome(name, entry.operation, DOUBLE)
    seen.add((entry.sql, entry.created_at))
    try:
        touched = sandbox.run(entry.sql, entry.created_at)
    except RefusedError as error:
        return Outcome(name, entry.operation, REFUSED, str(error))
    return Outcome(name, entry.operation, TAKEN if touched else NOTHING)


def _job(table: str, row: dict[str, object], time_ns: int) -> Envelope:
    text = json.dumps([table, row], sort_keys=True)
    id = blake2b(text.encode(), digest_size=16, person=b"hivepipe-import").hexdigest()
    message = compose(id, Job("import_row", {"table": table, "row": row}, table), time_ns)
    return read_envelope(message.envelope)
