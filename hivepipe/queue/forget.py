"""Remove a session from Redis and the spool, and keep the job counters consistent."""

import os
import time
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import orjson
from redis import Redis
from redis.exceptions import ResponseError

from hivepipe.errors import BadEnvelopeError, StackError
from hivepipe.events.job_plan import utc
from hivepipe.files.regular_file import ANY_SIZE, read_bytes, regular
from hivepipe.jobs.envelope import read_envelope
from hivepipe.jobs.forget_query import ForgetQuery
from hivepipe.queue.activity import TAKEN_KEY
from hivepipe.queue.all_jobs import all_jobs
from hivepipe.queue.job_data import envelope_text
from hivepipe.queue.names import ALL_QUEUES
from hivepipe.queue.raw_spool import session_of
from hivepipe.queue.scripts import script
from hivepipe.queue.spooled import RAW, waiting_files
from hivepipe.queue.stock_jobs import EXECUTED_KEY

AT_ONCE = 500
RUNNING_SECS = 60.0
REWRITE_SECS = 120.0

_DISCARD = script("discard_jobs", EXECUTED_KEY=EXECUTED_KEY, QUEUES=ALL_QUEUES)


def jobs_of(connection: Redis, wanted: ForgetQuery) -> list[bytes]:
    return [id for id, data in all_jobs(connection) if _is_wanted(data, wanted)]


def sessions_with_text(connection: Redis, wanted: ForgetQuery) -> set[str]:
    """Return the sessions whose jobs contain the text to forget."""
    jobs = (data for _, data in all_jobs(connection) if wanted.contains_text(data))
    return {session for session in map(_session_of, jobs) if session}


def _is_wanted(data: bytes, wanted: ForgetQuery) -> bool:
    """Tell whether a job is to be removed, given its data.

    A job that cannot be read is removed if its bytes contain a wanted session id or text.
    """
    session = _session_of(data)
    if session is None:
        return wanted.names(data)
    return session in wanted.sessions or wanted.contains_text(data)


def discard_jobs(connection: Redis, wanted: ForgetQuery, *, has_workers: bool) -> int:
    """Remove the `wanted` jobs; return the number of removed jobs.

    With `has_workers`, a running job is removed when it has ended. Raise StackError if a job is
    still running after RUNNING_SECS.
    """
    deadline = time.monotonic() + RUNNING_SECS
    removed = 0
    while True:
        running = _running(connection) if has_workers else set()
        ids = jobs_of(connection, wanted)
        free = [id for id in ids if id not in running]
        for at in range(0, len(free), AT_ONCE):
            removed += int(connection.eval(_DISCARD, 0, *free[at : at + AT_ONCE]))
        if len(free) == len(ids):
            return removed
        if time.monotonic() > deadline:
            raise StackError("a job of the session is still being executed: try again later")
        time.sleep(0.1)


def _session_of(data: bytes) -> str | None:
    """Return the session of a job, or None if the job cannot be read."""
    try:
        return read_envelope(envelope_text(data)).session
    except (BadEnvelopeError, RecursionError):
        return None


def activity_keys(connection: Redis, session: str) -> list[bytes]:
    """Return the keys that count a session's tool calls."""
    names = (f"hivepipe:activity:{session}", f"hivepipe:calls:{session}")
    found = [name.encode() for name in names if connection.exists(name)]
    return [*found, *connection.scan_iter(f"hivepipe:calls:{session}:*", count=AT_ONCE)]


def remove_activity(connection: Redis, session: str) -> None:
    """Remove the keys that count a session's tool calls."""
    keys = activity_keys(connection, session)
    if keys:
        connection.delete(*keys)
    connection.srem("hivepipe:active", session)
    connection.srem(TAKEN_KEY, session)


def rewrite_file(connection: Redis) -> None:
    """Rewrite the append-only file without the removed data. Raise StackError after a timeout."""
    deadline = time.monotonic() + REWRITE_SECS
    is_asked = False
    while time.monotonic() < deadline:
        state: Any = connection.info("persistence")
        if not (state["aof_rewrite_in_progress"] or state["aof_rewrite_scheduled"]):
            if is_asked and state["aof_last_bgrewrite_status"] == "ok":
                return
            try:
                connection.bgrewriteaof()
                is_asked = True
            except ResponseError:  # another rewrite of the append-only file has started
                continue
        time.sleep(0.02)
    raise StackError(
        "Redis does not rewrite its file: see `hivepipe logs redis`, "
        "then run `hivepipe forget` again"
    )


def _running(connection: Redis) -> set[bytes]:
    found: set[bytes] = set()
    for queue in ALL_QUEUES:
        members: Any = connection.zrange(f"rq:wip:{queue}", 0, -1)
        found |= {member.rpartition(b":")[0] or member for member in members}
    return found


# ---- the spool


def sessions_spooled(folders: Iterable[Path], wanted: ForgetQuery | None = None) -> set[str]:
    """Return the sessions of spooled events; with `wanted`, only of files with the wanted text."""
    found = set()
    for path in _spool_files(folders):
        if wanted is None or wanted.contains_text(_bytes(path)):
            found |= _sessions_in(path)
    return found - {""}


def last_spooled(folders: Iterable[Path]) -> dict[str, str]:
    """Return session -> time of its last spooled event (UTC)."""
    seen: dict[str, str] = {}
    for path in chain.from_iterable(map(waiting_files, folders)):
        stamp = path.name.partition("_")[0]
        if stamp.isdigit():
            for session in _sessions_in(path):
                seen[session] = max(seen.get(session, ""), utc(int(stamp)))
    seen.pop("", None)
    return seen


def remove_spooled(folders: Iterable[Path], wanted: ForgetQuery, *, dry_run: bool = False) -> int:
    """Remove events from the spools and from `bad/`; return the number of affected files.

    A file that cannot be parsed is removed if it names a session or holds the text. Other jobs in
    an affected file stay. With `dry_run`, the files are only counted.
    """
    removed = 0
    for path in _spool_files(folders):
        try:
            if not wanted.names(read_bytes(path, ANY_SIZE)):
                continue
            if _is_of_another_session(path, wanted):
                continue
            entries = _entries(path)
            others = [entry for entry in entries if not _is_entry_wanted(entry, wanted)]
            if entries and len(others) == len(entries):  # the file has only jobs of other sessions
                continue
            removed += 1
            if dry_run:
                continue
            if others:
                _replace(path, others)
            else:
                path.unlink()
                Path(f"{path}.reason").unlink(missing_ok=True)
        except FileNotFoundError:  # the file was renamed or drained meanwhile
            continue
    return removed


def _is_of_another_session(path: Path, wanted: ForgetQuery) -> bool:
    """Tell whether a file is a raw event of another session that does not contain the text."""
    data = _bytes(path) if RAW in path.suffixes else b""
    session = session_of(data)
    return bool(session) and session not in wanted.sessions and not wanted.contains_text(data)


def _is_entry_wanted(entry: Any, wanted: ForgetQuery) -> bool:
    return _session(entry) in wanted.sessions or wanted.contains_text(orjson.dumps(entry))


def _spool_files(folders: Iterable[Path]) -> list[Path]:
    found = [path for folder in folders for path in (*folder.glob("*"), *folder.glob("bad/*"))]
    return sorted(p for p in found if p.is_file() and not p.is_symlink())


def _sessions_in(path: Path) -> set[str]:
    if RAW in path.suffixes:
        return {session_of(_bytes(path))}
    return {_session(entry) for entry in _entries(path)}


def _bytes(path: Path) -> bytes:
    try:
        return read_bytes(path, ANY_SIZE)
    except FileNotFoundError:
        return b""


def _entries(path: Path) -> list[Any]:
    try:
        with open(path, "rb", opener=regular) as file:
            jobs = orjson.loads(file.read())["jobs"]
    except (OSError, ValueError, LookupError, TypeError):
        return []
    return jobs if isinstance(jobs, list) else []


def _session(entry: Any) -> str:
    try:
        session = entry["envelope"]["metadata"]["session"]
    except (LookupError, TypeError):
        return ""
    return session if isinstance(session, str) else ""


def _replace(path: Path, entries: list[Any]) -> None:
    temporary = path.with_name(f"{path.name}.tmp")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(orjson.dumps({"v": 1, "jobs": entries}))
    temporary.replace(path)
