"""conclude_session: what follows from the end of a session, once for each end.

A SessionEnd may come while other instances are in the session: then nothing follows yet. It comes
in any order with theirs, so whichever is stored last finds the session ended.
"""

from contextlib import closing

from hivepipe.envelope import Envelope
from hivepipe.errors import MissingParentError
from hivepipe.handlers.workplace import Workplace
from hivepipe.jobs import SETTLE_SECS, Job
from hivepipe.store.applied import mark_applied
from hivepipe.store.assignments import end_is_stored
from hivepipe.store.database import Database
from hivepipe.store.forgetting import is_forgotten
from hivepipe.store.location import database_path
from hivepipe.store.session_state import claim_end, process_ended
from hivepipe.store.sessions import is_deleted, session_exists

BUSY_TIMEOUT_SECS = 0.1


def conclude_session(workplace: Workplace, job: Envelope) -> None:
    """Archive the transcript, have it summarised, and clean up after the process.

    MissingParentError: the end itself is not stored yet.
    """
    with closing(Database(database_path(workplace.home), BUSY_TIMEOUT_SECS)) as db:
        with db.transaction():
            is_over = _is_over(db, job)
        follows = [*_archive(job), *_clean_up(db, job)] if is_over else []
    if follows:
        workplace.hand_back(job, follows)


def _is_over(db: Database, job: Envelope) -> bool:
    """Has the session ended, and is this the job that sees to it?"""
    mark_applied(db, job)
    if not session_exists(db, job.session):
        if not job.session or is_deleted(db, job.session) or is_forgotten(db, job.session):
            return True
        raise MissingParentError(f"session {job.session} does not exist")
    if job.instance and not end_is_stored(db, job):
        raise MissingParentError(f"the end of session {job.session} is not stored yet")
    return claim_end(db, job.session, job.id)


def _clean_up(db: Database, job: Envelope) -> list[Job]:
    """Nothing to clean up where every process went on in another session."""
    if not process_ended(db, job.session):
        return []
    return [Job("finish_process", {}, job.session[:8])]


def _archive(job: Envelope) -> list[Job]:
    """The transcript lags behind the event; it is summarised when it has settled."""
    if not job.text("path"):
        return []
    payload: dict[str, object] = {
        "path": job.text("path"),
        "kind": "main",
        "agent_id": "",
        "agent_type": "",
        "claude": job.text("claude"),
        "ends": True,
        "settle_s": SETTLE_SECS[-1],
    }
    return [Job("archive_transcript", payload, job.session[:8])]
