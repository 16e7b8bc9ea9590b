"""Find turns that a person ended with Esc, or with No to a question. No hook reports this.

If a prompt follows at once, only the transcript shows the end (`operations.usage`).

After such an end the status of Claude Code's process is idle or shell. A pause of the session is
stored with the time of this status.
"""

from collections.abc import Iterator
from dataclasses import replace

from hivepipe.db.database import Database
from hivepipe.db.open_sessions import open_turns
from hivepipe.events.job_plan import Message
from hivepipe.hook.alive import liveness_of
from hivepipe.jobs.envelope import compose
from hivepipe.jobs.origin import Origin
from hivepipe.operations.client_status import IDLE, SHELL, client_status
from hivepipe.operations.families.history import RecordNotice
from hivepipe.operations.families.sessions import PauseSession
from hivepipe.operations.history import BY_A_PERSON, INTERRUPTED
from hivepipe.times import stored_time

SETTLED_NS = 30 * 10**9  # after this time, a turn's end that hooks reported is stored


def interrupted(db: Database, job: Origin, machine: tuple[str, str, str]) -> Iterator[Message]:
    """Yield a pause and a notice for each open turn whose Claude Code is idle.

    Its process must run, and must have reported IDLE or SHELL for at least SETTLED_NS.
    """
    for row in open_turns(db):
        if not liveness_of(row, machine).lives:
            continue
        session, transcript = row["session_id"], row["transcript_path"]
        client = client_status(row["pid"], row["pid_started"] or "", session, transcript)
        if client is None or client.status not in (IDLE, SHELL):
            continue
        if client.at_ns > job.event_time_ns - SETTLED_NS:
            continue
        # A client may still report a question that the person has left.
        is_newest = row["waits_for"] or stored_time(client.at_ns) > row["last_active_at"]
        if client.at_ns > row["state_time_ns"] and is_newest:
            project = row["project"] or ""
            parent = replace(job, session=session, instance=row["id"], project=project)
            for each in (
                PauseSession().job(session[:8]),
                RecordNotice(kind=INTERRUPTED, text=BY_A_PERSON).job(INTERRUPTED),
            ):
                id = f"{each.operation}-{session}-{client.at_ns}"
                yield compose(id, each, client.at_ns, parent=parent)
