"""The status of a session, computed from facts that may arrive in any order.

    signal  an event: the session works (active), or its turn has ended (paused)
    work    a heartbeat; no job carries it (module `activity`)
    end     a SessionEnd, sent by Claude Code, or by hivepipe after Claude Code died
    inside  the instances that are in the session (module `assignments`)

A session has ended when no instance is inside and its newest end is newer than its newest signal.
Otherwise its newest signal decides the status. A later heartbeat makes a paused session active.
"""

from hivepipe.db.activity import has_worked_since
from hivepipe.db.database import Database
from hivepipe.db.listings import Listings
from hivepipe.jobs.origin import Origin
from hivepipe.times import stored_time

ACTIVE, PAUSED, ENDED = "active", "paused", "ended"
PROCESS_GOES_ON = ("clear", "resume")  # the process continues in another session


def note_signal(db: Database, job: Origin, turn: str, time_ns: int = 0) -> None:
    """Record that a session was `turn`, active or paused, unless a newer signal is stored."""
    still_ended = "status = 'ended' AND last_end_ns >= :time_ns"
    sql = f"""
        UPDATE sessions SET
          turn = :turn, state_time_ns = :time_ns,
          status = CASE WHEN {still_ended} THEN status ELSE :status END,
          ended_at = CASE WHEN {still_ended} THEN ended_at END,
          end_reason = CASE WHEN {still_ended} THEN end_reason END,
          paused_at = CASE WHEN {still_ended} THEN NULL WHEN :status = 'paused' THEN :time END,
          updated_at = CASE WHEN updated_at > :time THEN updated_at ELSE :time END
        WHERE id = :id AND state_time_ns < :time_ns
    """
    time_ns = time_ns or job.event_time_ns
    status = _status(db, job.session, turn, time_ns)
    values = {"turn": turn, "status": status, "time": job.time, "time_ns": time_ns}
    db.execute(sql, {"id": job.session, **values})


def note_work(db: Database, session: str) -> None:
    """Make a paused session active if its heartbeat came after the end of the turn."""
    sql = "SELECT state_time_ns FROM sessions WHERE id = :id AND status = 'paused'"
    row = db.row(sql, {"id": session})
    if row and has_worked_since(db, session, row["state_time_ns"]):
        sql = "UPDATE sessions SET status = 'active', paused_at = NULL WHERE id = :id"
        db.execute(sql, {"id": session})


def _status(db: Database, session: str, turn: str, signal_ns: int) -> str:
    """Return the status of an open session. `turn` is the status that its newest signal gives."""
    if turn == PAUSED and has_worked_since(db, session, signal_ns):
        return ACTIVE
    return turn


def note_turn_end(db: Database, job: Origin) -> None:
    """Record the end of a turn, unless a newer end is stored."""
    sql = """
        UPDATE sessions SET turn_ended_at = :time
        WHERE id = :id AND (turn_ended_at IS NULL OR turn_ended_at < :time)
    """
    db.execute(sql, {"id": job.session, "time": job.time})


def note_end(db: Database, job: Origin, reason: str) -> None:
    """Record a SessionEnd in the session's row, and update the status.

    The newest SessionEnd sets the reason. The reasons in PROCESS_GOES_ON do not end the process.
    """
    sql = """
        UPDATE sessions SET last_end_ns = :time_ns, last_end_reason = :reason,
          updated_at = CASE WHEN updated_at > :time THEN updated_at ELSE :time END
        WHERE id = :id AND last_end_ns < :time_ns
    """
    of_process = """
        UPDATE sessions SET process_end_ns = :time_ns
        WHERE id = :id AND process_end_ns < :time_ns
    """
    ended = {"id": job.session, "time_ns": job.event_time_ns}
    db.execute(sql, ended | {"reason": reason, "time": job.time})
    if reason not in PROCESS_GOES_ON:
        db.execute(of_process, ended)
    update_status(db, job.session)


def update_status(db: Database, session: str) -> None:
    """Update the status after an end, or after an instance entered or left the session."""
    sql = """
        SELECT status, turn, state_time_ns, last_end_ns, last_end_reason,
          EXISTS (SELECT 1 FROM instance_sessions
            WHERE session_id = sessions.id AND status = 'active') AS inside
        FROM sessions WHERE id = :id
    """
    row = db.row(sql, {"id": session})
    if row is None:
        return
    has_ended = row["last_end_ns"] > row["state_time_ns"] and not row["inside"]
    if has_ended:
        _end(db, session, row["last_end_ns"], row["last_end_reason"])
    elif row["status"] == ENDED:
        _open(db, session, row["turn"] or ACTIVE, row["state_time_ns"])


def _end(db: Database, session: str, end_ns: int, reason: str) -> None:
    sql = """
        UPDATE sessions SET status = 'ended', paused_at = NULL, ended_at = :time,
          end_reason = :reason
        WHERE id = :id
    """
    db.execute(sql, {"id": session, "time": stored_time(end_ns), "reason": reason})


def _open(db: Database, session: str, turn: str, signal_ns: int) -> None:
    sql = """
        UPDATE sessions SET status = :status, ended_at = NULL, end_reason = NULL,
          paused_at = CASE WHEN :status = 'paused' THEN :time END
        WHERE id = :id
    """
    status = _status(db, session, turn, signal_ns)
    db.execute(sql, {"id": session, "status": status, "time": stored_time(signal_ns)})


def is_open(store: Listings, session: str) -> bool:
    """Tell whether the session is known and has not ended."""
    sql = "SELECT 1 FROM sessions WHERE id = :id AND status IN ('active', 'paused')"
    return store.row(sql, {"id": session}) is not None


# ---- the follow-up work of an end, which is done once


def claim_end(db: Database, session: str, job_id: str) -> bool:
    """Claim the follow-up work of a session's end for a job; only one job gets it for each end.

    Return False if the session is open, or another job has the claim.
    """
    claim = """
        UPDATE sessions SET concluded_ns = last_end_ns, concluded_by = :job,
          concluded_before_ns = concluded_ns
        WHERE id = :id AND status = 'ended' AND concluded_ns < last_end_ns
    """
    if db.execute(claim, {"id": session, "job": job_id}):
        return True
    claimed = """
        SELECT 1 FROM sessions
        WHERE id = :id AND status = 'ended' AND concluded_by = :job AND concluded_ns = last_end_ns
    """
    return db.row(claimed, {"id": session, "job": job_id}) is not None


def process_ended(db: Database, session: str) -> bool:
    """Tell whether a process of an ended session has ended, not just moved to another session.

    Only ends after the last claim (`claim_end`) count. Return True for an unknown session.
    """
    sql = "SELECT 1 FROM sessions WHERE id = :id AND process_end_ns <= concluded_before_ns"
    return db.row(sql, {"id": session}) is None
