"""Forgetting a session: every place that may hold something of it, one after the other.

The rows go first, with the word that the session is forgotten: from then on no job, sweep or
heartbeat writes of it again. What follows may be interrupted; forgetting again does the rest.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import redis

from hivepipe.archive.archives import Archives
from hivepipe.archive.index import Entry
from hivepipe.errors import HivepipeError, StackError, StoreError
from hivepipe.guard.client import assignment_path
from hivepipe.handlers.archive import archives_of
from hivepipe.handlers.forgotten import say_forgotten
from hivepipe.handlers.search import index_path
from hivepipe.home import Place, kept_folder, logs_folder, read_small
from hivepipe.log_lines import remove_lines
from hivepipe.queues import forgetting as queued
from hivepipe.queues.connection import connect
from hivepipe.search.index import remove_index
from hivepipe.skill_exports import SkillExports
from hivepipe.stack.lock import Stack
from hivepipe.stack.lone_redis import has_file, lone_redis
from hivepipe.stack.redis_server import answers
from hivepipe.store import forgetting as stored
from hivepipe.store.database import Database
from hivepipe.store.location import database_path


class Gone(NamedTuple):
    """What went, or would go, of one place."""

    place: str
    number: int
    what: str


class Forgetting:
    """The forgetting in one home; `db` is the caller's to close."""

    def __init__(self, place: Place, db: Database) -> None:
        """Nothing is looked at yet."""
        self._place = place
        self._home = Path(place.home)
        self._db = db
        self._archives: Archives = archives_of(place.home)

    # ---- which

    def session_beginning(self, start: str) -> str:
        """Return the one session whose id begins so, wherever it is known; HivepipeError."""
        found = stored.sessions_beginning(self._db, start)
        found |= {
            entry["session_id"]
            for entry in self._entries()
            if entry["session_id"].startswith(start)
        }
        found |= {
            session
            for session in queued.sessions_spooled(self._home / "spool")
            if session.startswith(start)
        }
        if start in found:
            return start
        if not start or not found:
            raise HivepipeError(f"no session has the id {start}: see `hivepipe sessions --all`")
        if len(found) > 1:
            some = ", ".join(sorted(found)[:5])
            raise HivepipeError(f"{len(found)} sessions have an id that begins so: {some}")
        return found.pop()

    def sessions_before(self, time: str) -> list[str]:
        """Return the sessions that were last seen before a time (UTC, ISO 8601), by any trace."""
        seen: dict[str, str] = stored.last_seen(self._db)
        for entry in self._entries():
            session = entry["session_id"]
            meta = self._archives.meta_of(entry) or {}
            last = str(meta.get("ended_at") or entry["started_at"])
            seen[session] = max(seen.get(session, ""), last)
        return sorted(session for session, last in seen.items() if last and last < time)

    def _entries(self) -> list[Entry]:
        return [*{**dict(self._archives.on_disk()), **self._archives.index.entries()}.values()]

    def transcripts(self, session: str) -> list[str]:
        """Return Claude Code's own transcripts of a session that still lie there."""
        found = {stored.transcript_of(self._db, session)}
        for entry in self._archives.index.entries().values():
            if entry["session_id"] == session:
                meta = self._archives.meta_of(entry) or {}
                found.add(meta.get("source", {}).get("path", ""))
        return sorted(path for path in found if path and Path(path).is_file())

    # ---- what went

    def forget(self, session: str, *, dry_run: bool = False) -> Iterator[Gone]:
        """Remove all that is known of a session; yield what went, place by place.

        HivepipeError, OSError: the rest is still there, and goes when it is called again.
        """
        stems = self._stems(session)
        rows = stored.rows_of(self._db, session)
        if not dry_run:
            stored.remove_rows(self._db, session)
            say_forgotten(self._place.home)
        for table, count in rows.items():
            yield Gone(f"table {table}", count, "rows")
        yield from self._redis(session, dry_run)
        spool = queued.remove_spooled(self._home / "spool", session, dry_run=dry_run)
        yield Gone("spool", spool, "files")
        yield Gone("archives", self._remove_archives(session, stems, dry_run), "transcripts")
        yield from self._derived("skill_uses" in rows, dry_run)
        yield Gone("logs", self._remove_lines((session, *stems), dry_run), "lines")
        yield Gone("markers", self._remove_markers(session, dry_run), "files")

    def clean(self, *, dry_run: bool = False) -> Iterator[Gone]:
        """Remove what held texts of any forgotten session: backups, free pages, Redis' file."""
        copies = stored.backups(self._db.path)
        if not dry_run:
            for copy in copies:
                copy.unlink(missing_ok=True)
            try:
                stored.clean_pages(self._db)
            except sqlite3.Error as error:
                raise StoreError(f"pages of the database are not cleaned: {error}") from error
            with self._redis_of_the_home() as (client, _):
                if client is not None and self._place.socket.startswith("/"):
                    queued.rewrite_file(client)
        yield Gone("backups of the database, whole", len(copies), "files")

    def _stems(self, session: str) -> tuple[str, ...]:
        return tuple(
            Path(entry["path"]).name.partition(".jsonl")[0]
            for entry in self._entries()
            if entry["session_id"] == session
        )

    def _remove_archives(self, session: str, stems: tuple[str, ...], dry_run: bool) -> int:
        return len(stems) if dry_run else len(self._archives.remove_session(session))

    def _derived(self, has_skills: bool, dry_run: bool) -> Iterator[Gone]:
        """The search index and the exports are made again from what is left."""
        index = index_path(self._place.home)
        if index.exists():
            if not dry_run:
                remove_index(index)
            yield Gone("search index, made again by the next search", 1, "file")
        if has_skills:
            if not dry_run:
                SkillExports(self._place.home).write()
            yield Gone("skill exports, written anew", 2, "files")

    def _remove_lines(self, needles: tuple[str, ...], dry_run: bool) -> int:
        folders = {kept_folder(self._place.home), logs_folder(self._place.home)}
        logs = [*(self._home / "logs").glob("*.log*")]
        for folder in folders:
            logs += [*Path(folder).glob("*.log"), *Path(folder).glob("*.log.*")]
        return sum(
            remove_lines(str(path), needles, dry_run=dry_run)
            for path in {path.resolve() for path in logs}
            if path.is_file()
        )

    def _remove_markers(self, session: str, dry_run: bool) -> int:
        """Markers of instances, of its task, and its context; a running one makes new ones."""
        small = [
            *self._home.glob("instances/*"),
            *self._home.glob("sessions/.session_*"),
            self._home / ".active_session",
        ]
        found = {
            path for path in small if session in read_small(str(path)).replace("=", "\n").split()
        }
        found |= {path for path in self._home.glob("context/*") if session in path.name}
        found |= {
            path
            for path in self._home.glob("context/*")
            if path.is_file() and session.encode() in path.read_bytes()
        }
        found.add(Path(assignment_path(self._place.home, session)))
        found = {path for path in found if path.is_file()}
        if not dry_run:
            for path in found:
                path.unlink(missing_ok=True)
        return len(found)

    # ---- Redis

    def _redis(self, session: str, dry_run: bool) -> Iterator[Gone]:
        if not dry_run or answers(self._place.socket):
            with self._redis_of_the_home() as (client, has_workers):
                if client is None:
                    return
                if dry_run:
                    jobs = len(queued.jobs_of(client, session))
                else:
                    jobs = queued.discard_jobs(client, session, has_workers=has_workers)
                    queued.remove_activity(client, session)
                yield Gone("Redis", jobs, "jobs")
        elif has_file(self._place.home):
            yield Gone("Redis, whose file is not read while the stack is down", 1, "file")

    @contextmanager
    def _redis_of_the_home(self) -> Iterator[tuple[redis.Redis | None, bool]]:
        """Give the running Redis, or one of the home's own for a moment; None: there is none."""
        address = self._place.socket
        try:
            if answers(address):
                with connect(address) as client:
                    yield client, True
            elif not address.startswith("/"):
                raise StackError(f"the Redis of this home ({address}) does not answer")
            elif has_file(self._place.home):
                with lone_redis(Stack.of(self._place)) as alone, connect(alone) as client:
                    yield client, False
            else:
                yield None, False
        except redis.RedisError as error:
            raise StackError(f"Redis does not answer ({error}): forget again") from error


def opened(place: Place) -> Database:
    """Open the database of a place for forgetting."""
    return Database(database_path(place.home))
