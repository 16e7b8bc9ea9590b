"""reap_sessions: end what nobody is left to end.

A Claude Code that was killed fires no SessionEnd. The reaper fires it instead: the same jobs, at
the time of the last that was heard of the session, so that whatever happened since outweighs them.
"""

import logging
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path

from hivepipe.config import here
from hivepipe.envelope import Envelope, compose
from hivepipe.events import parse_event
from hivepipe.handlers.workplace import Workplace
from hivepipe.home import read_small
from hivepipe.intake.fate import Fate, fate_of
from hivepipe.intake.instance import Instance, forget, this_machine
from hivepipe.jobs import Context, Job, Message, dumps, encode, plan
from hivepipe.lifecycle import moment
from hivepipe.queues.connection import connect
from hivepipe.queues.hand_back import enqueue_periodic
from hivepipe.store.database import Database, Row
from hivepipe.store.location import database_path
from hivepipe.store.open_sessions import open_sessions, running_instances

SILENT = timedelta(days=7)  # of a session whose process nobody here can see
FORGOTTEN_DAYS = 30  # of an instance's file, likewise
_BESIDE = (".checkpoint", ".settings")  # the other files of an instance
BUSY_TIMEOUT_SECS = 0.1
MESSAGES_AT_A_TIME = 500

logger = logging.getLogger("hivepipe.reaper")


def reap_sessions(workplace: Workplace, job: Envelope) -> None:
    """End the sessions whose processes are gone, mark those, and remove their files."""
    machine = this_machine()
    with closing(Database(database_path(workplace.home), BUSY_TIMEOUT_SECS)) as db:
        instances = running_instances(db)
        sessions = [list(rows) for _, rows in groupby(open_sessions(db), lambda row: row[0])]
    gone = [row for row in instances if fate_of(row, machine).lives is False]
    ended = [(rows, fate) for rows in sessions if (fate := _fate(rows, machine, job.event_time_ns))]
    messages = [*_losses(job, gone)]
    for rows, fate in ended:
        messages += _session_end(rows, fate.reason)
        logger.info("reaped %s: %s", rows[-1]["session_id"], fate.reason)
    _enqueue(messages)
    _remove_markers(workplace.home, [rows[-1] for rows, _ in ended])
    _remove_files(workplace.home, {row["id"] for row in gone})


def _fate(rows: list[Row], machine: tuple[str, str, str], now_ns: int) -> Fate | None:
    """Return how a session ended; None: it may go on."""
    inside = [row for row in rows if row["assignment"] == "active"]
    fates = [fate_of(row, machine) if row["id"] else Fate(None) for row in inside]
    if any(fate.lives for fate in fates):
        return None
    if any(fate.lives is None for fate in fates) or not rows[-1]["instance_id"]:
        is_silent = _last_sign(rows) < datetime.fromtimestamp(now_ns / 1e9, UTC) - SILENT
        return Fate(False, "silent for a week") if is_silent else None
    # Its processes went on to other sessions, or it was ended before what was heard of it last.
    return fates[-1] if fates else Fate(False, "left by its process")


def _last_sign(rows: list[Row]) -> datetime:
    signs = [moment(row[column]) for row in rows for column in ("updated_at", "last_seen")]
    return max(filter(None, signs), default=datetime.now(UTC))


def _session_end(rows: list[Row], reason: str) -> list[Message]:
    """Return what SessionEnd would have handed over, a moment after the last that was heard."""
    last = max(rows, key=lambda row: row["assignment"] == "active")
    heard_ns = ("state_time_ns", "checkpoint_time_ns", "assigned_time_ns")
    time_ns = max(row[column] or 0 for row in rows for column in heard_ns) + 1
    said = {
        "hook_event_name": "SessionEnd",
        "session_id": last["session_id"],
        "transcript_path": last["transcript_path"] or "",
        "cwd": last["project"] or "",
        "reason": reason,
    }
    event = parse_event("SessionEnd", dumps(said).encode())
    if event is None:
        return []
    context = Context(
        event_time_ns=time_ns,
        session=last["session_id"],
        own_session=last["session_id"],
        instance=last["instance_id"] or "",
        project=last["project"] or "",
        cwd=last["project"] or "",
        swarm=last["swarm_id"] or "",
    )
    return encode(plan(event, context), event, context)


def _losses(job: Envelope, gone: Iterable[Row]) -> Iterator[Message]:
    for row in gone:
        parent = replace(job, instance=row["id"])
        lost = Job("lose_instance", {}, row["id"])
        yield compose(f"{job.id}-{row['id']}", lost, job.event_time_ns, parent=parent)


def _enqueue(messages: list[Message]) -> None:
    if not messages:
        return
    address = here()[0].socket
    with closing(connect(address)) as connection:
        for at in range(0, len(messages), MESSAGES_AT_A_TIME):
            enqueue_periodic(connection, address, messages[at : at + MESSAGES_AT_A_TIME])


def _remove_markers(home: str, ended: Iterable[Row]) -> None:
    for row in ended:
        left = Instance("", row["instance_id"] or "", row["pid"] or 0, "", "")
        forget(home, left, row["session_id"])


def _remove_files(home: str, gone: set[str]) -> None:
    """Remove what hooks kept of these instances, and of any that wrote nothing for a month."""
    with suppress(FileNotFoundError):
        for path in Path(home, "instances").iterdir():
            if path.suffix in _BESIDE:
                continue
            owner = read_small(str(path)).partition("\n")[0].removeprefix("id=")
            is_old = time.time() - path.stat().st_mtime > FORGOTTEN_DAYS * 86_400
            if owner in gone or is_old:
                for each in (path, *[path.with_name(path.name + end) for end in _BESIDE]):
                    with suppress(OSError):
                        os.unlink(each)
