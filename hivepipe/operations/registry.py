"""`execute` applies a job that writes to the store, once: job id and effect are stored together."""

from dataclasses import replace
from functools import partial

from hivepipe.db.applied import count_effectless, mark_applied
from hivepipe.db.assignments import session_of_instance
from hivepipe.db.database import Database, write_shortly
from hivepipe.db.forget import is_forgotten
from hivepipe.db.sessions import newest_open_session
from hivepipe.errors import BadEnvelopeError, UnknownOperationError
from hivepipe.events.job_plan import Message
from hivepipe.jobs.envelope import Envelope, read_envelope
from hivepipe.operations import slots
from hivepipe.operations.declared import OPERATIONS, handle


def execute(db: Database, job: Envelope) -> None:
    """Execute one job within the caller's transaction, unless it was applied before.

    A job that belongs to no session, but should, or to a forgotten one is only counted. After
    JobError (UnknownOperationError, for instance) or sqlite3.Error the caller must roll back.
    """
    args = OPERATIONS.get(job.operation)
    if args is None or args.queue is not None:
        raise UnknownOperationError(f"no handler for operation {job.operation!r}")
    if not mark_applied(db, job):
        return
    if not job.session and not args.without_session:
        job = replace(job, session=_session_of(db, job))
        if not job.session:
            count_effectless(db, "no_session", job)
            return
    if is_forgotten(db, job.session):
        count_effectless(db, "forgotten", job)
        return
    handle(db, job)
    slots.record_own_slot(db, job)


def apply_results(db: Database, results: list[Message]) -> None:
    """Apply results, each once, in short transactions. May raise JobError or sqlite3.Error."""
    envelopes = [read_envelope(message.envelope) for message in results]
    write_shortly(db, [partial(execute, db, envelope) for envelope in envelopes])


def _session_of(db: Database, job: Envelope) -> str:
    """Look up the session of an event without a session id; return the id found, or "".

    A job whose `tier` is "any" can belong to the project's newest open session. A job whose `tier`
    is "own" cannot: a checkpoint could get into the session of another instance.
    """
    found = session_of_instance(db, job.instance)
    if not found and job.tier == "any":
        found = newest_open_session(db, job.project)
    return found


def cleanup_cause(job: Envelope) -> str:
    """Return the trigger of the cleanup that follows from a committed job, or ""."""
    args = OPERATIONS.get(job.operation)
    try:
        return args.read(job.payload).cleanup_cause() if args else ""
    except BadEnvelopeError:  # the job is a duplicate of an applied one, with other arguments
        return ""
