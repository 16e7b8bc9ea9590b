"""reap_sessions: end the sessions of dead processes.

A killed Claude Code sends no SessionEnd. The reaper enqueues the jobs of a SessionEnd with the time
of the instance's last event, so that any later event takes precedence. As with any SessionEnd, the
session ends only if no instance is left in the session.
"""

import logging
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from hivepipe.db.assignments import lose_instance
from hivepipe.db.database import SHORT_TIMEOUT_SECS, Row, open_database, write_shortly
from hivepipe.db.open_sessions import open_sessions, running_instances, unconcluded_sessions
from hivepipe.events import parse_event
from hivepipe.events.job_plan import (
    NOT_COUNTED,
    Context,
    Count,
    Message,
    dumps,
    encode,
    plan,
    utc,
)
from hivepipe.home import read_small
from hivepipe.hook.alive import UNKNOWN, liveness_of
from hivepipe.hook.instance import Instance, forget, remembered, this_machine
from hivepipe.hook.throttle import report_totals
from hivepipe.jobs.agent_expiry import moment
from hivepipe.jobs.args import Args
from hivepipe.jobs.envelope import compose
from hivepipe.jobs.origin import Origin
from hivepipe.operations.families.sessions import ConcludeSession
from hivepipe.operations.interrupted import interrupted
from hivepipe.operations.job_context import JobContext
from hivepipe.queue.connection import connect
from hivepipe.queue.enqueue import enqueue
from hivepipe.queue.spooled import raw_events

SILENT = timedelta(days=7)  # a session whose process cannot be checked here ends after this time
FORGOTTEN_DAYS = 30  # after this time an unchanged file of an instance is removed
_SUFFIXES = (".checkpoint", ".settings")  # suffixes of an instance's other files
CONCLUDED_AFTER_NS = 60 * 10**9  # the `conclude_session` of an end should have run by then
MESSAGES_AT_A_TIME = 500

logger = logging.getLogger("hivepipe.reaper")


def reap_sessions(context: JobContext, job: Origin, _args: Args) -> None:
    """End the sessions and instances whose processes have ended; remove the instances' files.

    Also pause sessions whose turn a person interrupted, and enqueue follow-up work of ended
    sessions that no job has claimed.
    """
    machine = this_machine()
    with open_database(context.home, SHORT_TIMEOUT_SECS) as db:
        instances = running_instances(db)
        sessions = [list(rows) for _, rows in groupby(open_sessions(db), lambda row: row[0])]
        pauses = list(interrupted(db, job, machine))
        left = unconcluded_sessions(db, job.event_time_ns - CONCLUDED_AFTER_NS)
    gone = [row for row in instances if liveness_of(row, machine).lives is False]
    ends = [end for rows in sessions for end in _ends(rows, machine, job.event_time_ns)]
    messages = [*pauses, *_conclusions(job, left)]
    for end in ends:
        messages += _session_end(end, context.home, job.event_time_ns)
        logger.info("reaped %s: %s", end.row["session_id"], end.reason)
    for message in messages:  # a latency begins at this run, not at a session's last event
        message.created_at = utc(job.event_time_ns)
    _enqueue(context.address, messages)
    _remove_markers(context.home, [end.row for end in ends])
    # While raw events wait, the files stay, because the events are still to be counted in them.
    _remove_files(context.home, set() if raw_events(context.home) else {row["id"] for row in gone})
    _record_losses(context.home, job, gone)  # last, so that all of this is repeated after a kill


class _End(NamedTuple):
    """The end of a session for one instance, at the time of the instance's last event."""

    row: Row
    reason: str
    last_active_ns: int


def _ends(rows: list[Row], machine: tuple[str, str, str], now_ns: int) -> Iterator[_End]:
    """Yield the ends of a session on this `machine`; `rows` are its past and present instances."""
    inside = [row for row in rows if row["assignment"] == "active"]
    found = [(row, liveness_of(row, machine) if row["id"] else UNKNOWN) for row in inside]
    gone = [(row, liveness.reason) for row, liveness in found if liveness.lives is False]
    if gone:
        # If all instances have ended, none ends before the session's last event.
        last_active_ns = rows[0]["state_time_ns"] if len(gone) == len(inside) else 0
        for row, reason in gone:
            yield _End(row, reason, max(row["assigned_time_ns"], last_active_ns))
    elif inside or not rows[-1]["instance_id"]:
        silent = _last_signal(rows) < datetime.fromtimestamp(now_ns / 1e9, UTC) - SILENT
        if silent and not any(liveness.lives for _, liveness in found):
            for row in inside or rows[-1:]:
                yield _End(row, "silent for a week", _last_event_ns(rows))
    else:  # the processes continue in other sessions, or an event arrived after their ends
        last = max(rows, key=lambda row: row["assigned_time_ns"])
        reason = liveness_of(last, machine).reason or "left by its process"
        yield _End(last, reason, _last_event_ns(rows))


def _last_signal(rows: list[Row]) -> datetime:
    times = [moment(row[column]) for row in rows for column in ("updated_at", "last_seen")]
    return max(filter(None, times), default=datetime.now(UTC))


def _last_event_ns(rows: list[Row]) -> int:
    columns = ("state_time_ns", "last_end_ns", "checkpoint_time_ns", "assigned_time_ns")
    return max(row[column] or 0 for row in rows for column in columns)


def _session_end(end: _End, home: str, now_ns: int) -> list[Message]:
    """Return the messages of a SessionEnd, 1 ns after the instance's last event.

    The payload contains the time of that event. So a real SessionEnd that arrives later does not
    count as a duplicate. The messages store the totals of the instance's operations.
    """
    last = end.row
    payload = {
        "hook_event_name": "SessionEnd",
        "session_id": last["session_id"],
        "transcript_path": last["transcript_path"] or "",
        "cwd": last["project"] or "",
        "reason": end.reason,
        "heard_ns": end.last_active_ns,
    }
    event = parse_event("SessionEnd", dumps(payload).encode())
    if event is None:
        return []
    context = Context(
        event_time_ns=end.last_active_ns + 1,
        session=last["session_id"],
        own_session=last["session_id"],
        instance=last["instance_id"] or "",
        project=last["project"] or "",
        cwd=last["project"] or "",
        swarm=last["swarm_id"] or "",
        count=_totals(home, last, now_ns),
    )
    return encode(plan(event, context), event, context)


def _totals(home: str, row: Row, now_ns: int) -> Count:
    """Return how many operations the instance's hooks counted; unknown if its file is gone.

    A later process may have the same pid, as in a container; then its file has both totals.
    """
    name = f"{row['instance_id']}:{row['session_id']}"
    for key in filter(None, (row["instance_id"], str(row["pid"] or ""))):
        file = f"{home}/instances/{key}"
        if os.path.exists(file):
            return report_totals(f"{file}.checkpoint", name, now_ns)
    return NOT_COUNTED


def _record_losses(home: str, job: Origin, gone: list[Row]) -> None:
    """Record that the processes of these instances have ended."""
    if not gone:
        return
    with open_database(home, SHORT_TIMEOUT_SECS) as db:
        write_shortly(
            db, [partial(lose_instance, db, replace(job, instance=row["id"])) for row in gone]
        )


def _conclusions(job: Origin, ended: Iterable[Row]) -> Iterator[Message]:
    """Yield the follow-up jobs of sessions that ended, and whose follow-up work is unclaimed."""
    for row in ended:
        parent = replace(job, session=row["id"], instance="", project=row["project"] or "")
        conclusion = ConcludeSession(path=row["transcript_path"] or "").job(row["id"][:8])
        yield compose(f"{job.id}-{row['id']}", conclusion, job.event_time_ns, parent=parent)


def _enqueue(address: str, messages: list[Message]) -> None:
    if not messages:
        return
    with closing(connect(address)) as connection:
        for at in range(0, len(messages), MESSAGES_AT_A_TIME):
            some = messages[at : at + MESSAGES_AT_A_TIME]
            enqueue(connection, address, some, is_periodic=True)


def _remove_markers(home: str, ended: Iterable[Row]) -> None:
    for row in ended:
        id, pid = row["instance_id"] or "", row["pid"] or 0
        with suppress(OSError):
            forget(home, Instance(_key(home, row), id, pid, "", ""), row["session_id"])


def _key(home: str, row: Row) -> str:
    """Return the name of the instance's file in the folder `instances`."""
    id, pid = row["instance_id"] or "", row["pid"] or 0
    return str(pid) if remembered(home, str(pid)).get("id") == id else id


def _remove_files(home: str, gone: set[str]) -> None:
    """Remove the files of these instances, and files unchanged for a month."""
    with suppress(FileNotFoundError):
        for path in Path(home, "instances").iterdir():
            text = read_small(str(path))
            if path.suffix in _SUFFIXES or not _is_hooks(path, text):
                continue
            owner = text.partition("\n")[0].removeprefix("id=")
            is_old = time.time() - path.stat().st_mtime > FORGOTTEN_DAYS * 86_400
            if owner in gone or is_old:
                for each in (path, *[path.with_name(path.name + end) for end in _SUFFIXES]):
                    with suppress(OSError):
                        os.unlink(each)


def _is_hooks(path: Path, text: str) -> bool:
    """Tell whether a hook wrote `text` to a file whose name is a pid or an instance's id."""
    if path.is_symlink() or not path.is_file():
        return False
    if path.name.isascii() and path.name.isdigit():
        return not text or text.startswith("id=")  # the file is empty if the hook was killed
    return text.startswith(f"id={path.name}\n")
