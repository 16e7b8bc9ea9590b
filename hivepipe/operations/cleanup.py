"""cleanup_agents soft-deletes outdated agents; log_cleanups writes a log of these deletions."""

import re
from datetime import UTC, datetime

from hivepipe.db import cleanups
from hivepipe.db.applied import mark_applied
from hivepipe.db.database import SHORT_TIMEOUT_SECS, Database, Row, open_database
from hivepipe.files.export_folder import ExportFolder, locked
from hivepipe.files.manifest import Manifest
from hivepipe.home import kept_folder
from hivepipe.jobs.agent_expiry import Verdict
from hivepipe.jobs.origin import Origin
from hivepipe.operations.families.retention import CleanupAgents, LogCleanups
from hivepipe.operations.job_context import JobContext
from hivepipe.times import stored_time

RUNS_AT_A_TIME = 1000
LOG = "cleanup.log"
_RUN = re.compile(rb"\[INFO\] run (\d+): .*\n")
TRIGGERS = ("periodic", "session_end", "task_complete", "manual")


def cleanup_agents(context: JobContext, job: Origin, args: CleanupAgents) -> None:
    """Soft-delete the agents that are outdated at the time of the event.

    If there are any, or if the job is repeated after a kill, also enqueue `log_cleanups`.
    """
    with open_database(context.home, SHORT_TIMEOUT_SECS) as db, db.transaction():
        is_new = mark_applied(db, job)
        judged = clean(db, job.id, args.trigger, job.event_time_ns) if is_new else []
    # If the run is not new, a worker was killed after the commit, perhaps before it enqueued the
    # job.
    if not is_new or any(verdict.is_outdated for _, verdict in judged):
        context.follow_up(job, [LogCleanups().job()])


def clean(db: Database, job_id: str, trigger: str, time_ns: int) -> list[tuple[str, Verdict]]:
    """Soft-delete agents in the caller's transaction; return the verdict on each agent."""
    cause = trigger if trigger in TRIGGERS else "unknown"
    judged = cleanups.verdicts(db, datetime.fromtimestamp(time_ns / 1e9, UTC))
    cleanups.delete_agents(db, job_id, cause, stored_time(time_ns), judged)
    return judged


def log_cleanups(context: JobContext, _job: Origin, _args: LogCleanups) -> None:
    """Append the cleanup runs recorded in the store to cleanup.log."""
    with open_database(context.home) as db:
        write_log(context.home, db)


def write_log(home: str, db: Database) -> None:
    """Append the cleanup runs that are newer than the run in the last line of cleanup.log."""
    with locked(kept_folder(home), "cleanup", Manifest(home)) as folder:
        while runs := cleanups.runs_after(db, _last_run(folder), RUNS_AT_A_TIME):
            for run, agents in runs:
                folder.append(LOG, _lines(run, agents))


def _last_run(folder: ExportFolder) -> int:
    for name in (LOG, f"{LOG}.1"):
        found = _RUN.findall(folder.tail(name))
        if found:
            return int(found[-1])
    return 0


def _lines(run: Row, agents: list[Row]) -> list[str]:
    """Return the log lines of a run.

    Only the last line names the run. So if a kill prevents this line, the run is logged again.
    """
    head = f"[{run['created_at'][:19]}Z] [{run['cause']}] [INFO]"
    terms = ", ".join(f"{run[why]} {why}" for why in ("expired", "completed", "orphaned"))
    total = run["expired"] + run["completed"] + run["orphaned"]
    return [
        *(f"{head} deleted {_name(agent)}: {agent['deleted_reason']}" for agent in agents),
        f"{head} run {run['id']}: deleted {total} ({terms}), kept {run['kept']}",
    ]


def _name(agent: Row) -> str:
    """Return a text with agent and session id, so that forgetting a session finds the line."""
    return f"{agent['id']} of {agent['session_id']}" if agent["session_id"] else str(agent["id"])
