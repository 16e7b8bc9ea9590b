"""operation -> handler, and `execute`: a job is applied once, in the transaction of its effect."""

from collections.abc import Callable
from dataclasses import replace

from hivepipe.db.applied import count_effectless, mark_applied
from hivepipe.db.assignments import session_of_instance
from hivepipe.db.database import Database
from hivepipe.db.forget import is_forgotten
from hivepipe.db.legacy_rows import import_row
from hivepipe.db.sessions import newest_open_session
from hivepipe.errors import BadEnvelopeError, UnknownOperationError
from hivepipe.jobs.args import ARGS
from hivepipe.jobs.envelope import Envelope
from hivepipe.operations import declared, slots, usage
from hivepipe.operations.lazy_handler import Deferred

HANDLERS: dict[str, Callable[[Database, Envelope], None]] = {
    **declared.HANDLERS,
    "enter_profile": Deferred("profiles.enter_profile"),
    "sync_identity": Deferred("profiles.sync_identity"),
    "record_usage": usage.record_usage,
    "record_status": Deferred("hive.record_status"),
    "delete_outdated": Deferred("prune.delete_outdated"),
    "record_alert": Deferred("alerts.record_alert"),
    "import_row": import_row,
    "count_dropped": Deferred("prune_files.count_dropped"),
    "record_summary": Deferred("summaries.record_summary"),
    "record_recall": Deferred("recall.record_recall"),
}

# Operations whose rows belong to no session, or that name it themselves.
_OF_NO_SESSION = (
    *(name for name, args in ARGS.items() if args.of_no_session),
    "record_usage",
    "record_status",
    "delete_outdated",
    "record_alert",
    "count_dropped",
    "import_row",
)


def execute(db: Database, job: Envelope) -> None:
    """Execute one job inside the caller's transaction; a job that was applied does nothing.

    On JobError and sqlite3.Error the caller rolls back.
    """
    handler = HANDLERS.get(job.operation)
    if handler is None:
        raise UnknownOperationError(f"no handler for operation {job.operation!r}")
    if not mark_applied(db, job):
        return
    if not job.session and job.operation not in _OF_NO_SESSION:
        job = replace(job, session=_session_of(db, job))
        if not job.session:
            count_effectless(db, "no_session", job)
            return
    if is_forgotten(db, job.session):
        count_effectless(db, "forgotten", job)
        return
    handler(db, job)
    slots.record_own_slot(db, job)


def _session_of(db: Database, job: Envelope) -> str:
    """Return the session of an event that named none, from the store; "" if there is none.

    Tier "own" uses only the instance's assignment: a guess could put the checkpoints of one
    instance into the session of another.
    """
    found = session_of_instance(db, job.instance)
    if not found and job.tier == "any":
        found = newest_open_session(db, job.project)
    return found


def cleanup_cause(job: Envelope) -> str:
    """Return the trigger of the cleanup that follows from a committed job, or ""."""
    args = ARGS.get(job.operation)
    try:
        return args.read(job.payload).cleanup_cause() if args else ""
    except BadEnvelopeError:  # applied before, with other arguments
        return ""
