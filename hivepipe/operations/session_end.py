"""conclude_session: the follow-up work of a session's end, done once for each end.

While other instances are in the session, a SessionEnd has no follow-up work. The events of the
instances may arrive in any order. The session has ended when the last of these events is stored.
"""

from hivepipe.db.applied import mark_applied
from hivepipe.db.assignments import end_is_stored
from hivepipe.db.database import SHORT_TIMEOUT_SECS, Database, open_database
from hivepipe.db.forget import is_forgotten
from hivepipe.db.session_state import claim_end, process_ended
from hivepipe.db.sessions import is_deleted, session_exists
from hivepipe.errors import MissingParentError
from hivepipe.events.job_plan import SETTLE_SECS, Job
from hivepipe.jobs.origin import Origin
from hivepipe.operations.families.archive import ArchiveTranscript
from hivepipe.operations.families.profiles import FinishProcess
from hivepipe.operations.families.sessions import ConcludeSession
from hivepipe.operations.job_context import JobContext


def conclude_session(context: JobContext, job: Origin, args: ConcludeSession) -> None:
    """Enqueue the jobs that archive (and then summarise) the transcript and clean up.

    Raise MissingParentError if the session or its end is not stored yet.
    """
    with open_database(context.home, SHORT_TIMEOUT_SECS) as db:
        with db.transaction():
            is_claimed = _claim_follow_up(db, job)
        follows = [*_archive(job, args), *_clean_up(db, job)] if is_claimed else []
    if follows:
        context.follow_up(job, follows)


def _claim_follow_up(db: Database, job: Origin) -> bool:
    """Claim an ended session's follow-up work; return False if the session is open or claimed.

    Return True for a job without a session, and for a deleted or forgotten session. Raise
    MissingParentError if the session or its end is not stored yet.
    """
    mark_applied(db, job)
    if not session_exists(db, job.session):
        if not job.session or is_deleted(db, job.session) or is_forgotten(db, job.session):
            return True
        raise MissingParentError(f"session {job.session} does not exist")
    if job.instance and not end_is_stored(db, job):
        raise MissingParentError(f"the end of session {job.session} is not stored yet")
    return claim_end(db, job.session, job.id)


def _clean_up(db: Database, job: Origin) -> list[Job]:
    """Return the job `finish_process`, or [] if all processes continue in other sessions."""
    if not process_ended(db, job.session):
        return []
    return [FinishProcess().job(job.session[:8])]


def _archive(job: Origin, args: ConcludeSession) -> list[Job]:
    """Return the job that archives the transcript, delayed until Claude Code has written it.

    Return [] if the path of the transcript is unknown.
    """
    if not args.path:
        return []
    archive = ArchiveTranscript(
        path=args.path, kind="main", claude=args.claude, ends=True, settle_s=SETTLE_SECS[-1]
    )
    return [archive.job(job.session[:8])]
