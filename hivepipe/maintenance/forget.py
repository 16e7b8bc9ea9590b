"""Forget sessions: delete their data from the store first, then from every other place.

The rows are deleted first, and the sessions are recorded as forgotten. From then on no job, sweep
or heartbeat stores data of these sessions. If a later step is interrupted, a second call completes
it.
"""

import os
import shutil
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import redis

from hivepipe.agents.memory.index import opened_index
from hivepipe.archive.archives import Archives
from hivepipe.archive.index import Entry
from hivepipe.archive.search.index_file import remove_index
from hivepipe.db import forget as stored
from hivepipe.db.database import Database
from hivepipe.db.listings import unknown_id
from hivepipe.errors import HivepipeError, StackError, StoreError
from hivepipe.files.log_lines import remove_lines
from hivepipe.files.logs import NAMES, is_own
from hivepipe.files.regular_file import ANY_SIZE, chunks, read_bytes, regular
from hivepipe.guard.client import assignment_path
from hivepipe.home import Place, kept_folder, logs_folder, read_small
from hivepipe.hook.recall import recalled_path
from hivepipe.jobs.forget_query import ForgetQuery
from hivepipe.maintenance.work_folder import leftovers
from hivepipe.operations import memory
from hivepipe.operations.archive import archives_of
from hivepipe.operations.briefing_files import BriefingFiles
from hivepipe.operations.forgotten_sessions import unfinished_sessions, update_marker
from hivepipe.operations.found_archives import ARCHIVE
from hivepipe.operations.recall import prepare_recall
from hivepipe.operations.search import index_path
from hivepipe.operations.skill_exports import SkillExports
from hivepipe.orchestrator.retire import remove_workers, workers_of
from hivepipe.orchestrator.worker import Worker
from hivepipe.queue import forget as queued
from hivepipe.queue.connection import connect
from hivepipe.queue.spooled import own_folders
from hivepipe.stack.ping import answers
from hivepipe.stack.redis_access import available_redis
from hivepipe.stack.runtime_folder import Stack
from hivepipe.stack.temporary_redis import has_file
from hivepipe.team.project_names import keep_names


class Deleted(NamedTuple):
    """The number of things deleted, or to be deleted, in one place."""

    place: str
    number: int
    what: str


class Forgetting:
    """The deletion of sessions in one home. The caller closes its database `db`.

    `unread_hives` says which hives cannot be migrated or read; data of their workers remains.
    """

    def __init__(self, place: Place, db: Database) -> None:
        self._place = place
        self._home = Path(place.home)
        self._spools = [Path(folder, "spool") for folder in own_folders(place.home)]
        self._db = db
        self._archives: Archives = archives_of(place.home)
        self._forgotten: frozenset[str] = frozenset()
        self.unread_hives: set[str] = set()

    # ---- selection

    def session_beginning(self, start: str) -> str:
        """Return the one session whose id begins with `start`.

        After an interrupted call, the session may be only in the list of forgotten sessions. Raises
        HivepipeError if there is no such session, or more than one.
        """
        known = {entry["session_id"] for entry in self._entries()}
        known |= queued.sessions_spooled(self._spools)
        found = stored.sessions_beginning(self._db, start)
        found |= {session for session in known if session.startswith(start)}
        if not found:
            forgotten = stored.forgotten_sessions(self._db.path)
            found = {session for session in forgotten if session.startswith(start)}
        if start in found:
            return start
        if not start or not found:
            raise HivepipeError(unknown_id("session", start))
        if len(found) > 1:
            some = ", ".join(sorted(found)[:5])
            raise HivepipeError(
                f"{len(found)} sessions have an id that begins with {start}: {some}"
            )
        return found.pop()

    def sessions_before(self, time: str) -> set[str]:
        """Return the sessions whose data ends before a time (UTC).

        Also return forgotten sessions that still have data or may have some.
        """
        seen: dict[str, str] = stored.last_seen(self._db)
        archived = {
            entry["session_id"]: str(
                (self._archives.meta_of(entry) or {}).get("ended_at") or entry["started_at"]
            )
            for entry in self._entries()
        }
        for found in (archived, queued.last_spooled(self._spools)):
            for session, last in found.items():
                seen[session] = max(seen.get(session, ""), last)
        old = {session for session, last in seen.items() if last and last < time}
        forgotten = stored.forgotten_sessions(self._db.path)
        with_workers = forgotten & {worker.card().session for worker in self._workers()}
        return old | with_workers | unfinished_sessions(self._place.home)

    def sessions_with_text(self, wanted: ForgetQuery, *, dry_run: bool) -> set[str]:
        """Return the sessions whose data contains the text. A dry run starts no Redis.

        Also return forgotten sessions that still have data or may have some.
        """
        found = stored.sessions_with_text(self._db, wanted)
        found |= unfinished_sessions(self._place.home)
        found |= queued.sessions_spooled(self._spools, wanted)
        found |= {
            entry["session_id"]
            for entry in self._entries()
            if self._archives.holds(entry, wanted.contains_text)
        }
        found |= {
            session
            for worker in self._workers()
            if (session := worker.card().session)
            and any(_holds(path, wanted) for path in _files_of(worker.folders))
        }
        if not dry_run or answers(self._place.socket):
            with self._redis_of_the_home() as (client, _):
                found |= queued.sessions_with_text(client, wanted) if client else set()
        return found

    def _entries(self) -> list[Entry]:
        return [*{**dict(self._archives.on_disk()), **self._archives.index.entries()}.values()]

    def _workers(self) -> list[Worker]:
        """Return the hive workers, read anew.

        A worker may have been archived while the user was being asked.
        """
        found, obstacles = workers_of(self._place.home)
        self.unread_hives.update(obstacles)
        return found

    def transcripts(self, sessions: Collection[str]) -> list[str]:
        """Return the transcripts of these sessions kept by Claude Code or a predecessor."""
        found = {stored.transcript_of(self._db, session) for session in sessions}
        for entry in self._archives.index.entries().values():
            if entry["session_id"] in sessions:
                meta = self._archives.meta_of(entry) or {}
                found.add(meta.get("source", {}).get("path", ""))
        for each in self._archives.manifest.found(ARCHIVE):
            if each.key.partition("/")[0] in sessions:
                found.add(each.path)
        return sorted(path for path in found if path and Path(path).is_file())

    def hive_folders(self, sessions: Collection[str]) -> list[str]:
        """Return the existing folders of the hive workers with these sessions."""
        found = {
            f"{hive}/{place}/{worker}"
            for session in sessions
            for hive, worker in stored.hive_workers_of(self._db, session)
            for place in ("workers", "archive")
        }
        return sorted(path for path in found if Path(path).is_dir())

    # ---- deletion

    def forget(self, wanted: ForgetQuery, *, dry_run: bool = False) -> Iterator[Deleted]:
        """Delete the sessions' data; yield the number of deleted things for each place.

        Raises HivepipeError, OSError or sqlite3.Error. Another call then deletes the remaining
        data.
        """
        entries = [each for each in self._entries() if each["session_id"] in wanted.sessions]
        stems = [Path(entry["path"]).name.partition(".jsonl")[0] for entry in entries]
        rows = stored.rows_of(self._db, wanted.sessions)
        unfinished = unfinished_sessions(self._place.home)
        has_skills = "skill_uses" in rows or bool(wanted.spellings or unfinished)
        if not dry_run:
            keep_names(self._db, wanted.sessions)
            self._forgotten = wanted.sessions
            update_marker(self._place.home, begun=wanted.sessions)
            stored.remove_rows(self._db, wanted.sessions)
            update_marker(self._place.home)
        for table, count in rows.items():
            yield Deleted(f"table {table}", count, "row")
        yield from self._redis(wanted, dry_run)
        spool = queued.remove_spooled(self._spools, wanted, dry_run=dry_run)
        yield Deleted("spool", spool, "file")
        if not dry_run:
            self._archives.remove_sessions(wanted.sessions)
            self._archives.manifest.clear_metadata()
        yield Deleted("archives", len(entries), "transcript")
        workers = [each for each in self._workers() if each.card().session in wanted.sessions]
        if not dry_run:
            remove_workers(self._place.home, workers)
        yield Deleted("hive workers", len(workers), "folder")
        if wanted.spellings:
            left = stored.remove_text(self._db, wanted, dry_run=dry_run)
            yield Deleted("rows without a session, only the text", left, "row")
        yield from self._memories(wanted, dry_run)
        yield from self._derived(has_skills, dry_run)
        needles = [*map(str.encode, (*wanted.sessions, *stems)), *wanted.spellings]
        yield Deleted("logs", self._remove_lines(needles, dry_run), "line")
        yield Deleted("markers", self._remove_markers(wanted, dry_run), "file")

    def clean(self, *, dry_run: bool = False) -> Iterator[Deleted]:
        """Delete copies that may contain forgotten text: backups, free pages, the file of Redis.

        Raises StoreError, StackError, LockHeldError or OSError.
        """
        copies = [*stored.backups(self._db.path), *leftovers(self._place.home)]
        if not dry_run:
            for copy in copies:
                if copy.is_dir():
                    shutil.rmtree(copy)
                else:
                    copy.unlink(missing_ok=True)
            try:
                stored.clean_pages(self._db)
            except sqlite3.Error as error:
                raise StoreError(f"pages of the database are not cleaned: {error}") from error
            with self._redis_of_the_home() as (client, _):
                if client is not None and self._place.socket.startswith("/"):
                    queued.rewrite_file(client)
            if not self.unread_hives:
                update_marker(self._place.home, finished=self._forgotten)
        yield Deleted("backups of the database, whole", len(copies), "file")

    def moved_aside(self) -> list[str]:
        """Return the folders of data that `restore --replace` moved aside."""
        return sorted(map(str, self._home.glob("backups/before-restore-*")))

    def files_with(self, wanted: ForgetQuery) -> list[str]:
        """Return hivepipe's files that still contain the text, to check the result."""
        folders = {self._place.home, kept_folder(self._place.home), logs_folder(self._place.home)}
        folders |= {str(path) for each in self._workers() for path in each.folders}
        folders.update(map(str, self._spools))
        files = {path.resolve() for path in _files_of(map(Path, folders))}
        return sorted(str(path) for path in files if _holds(path, wanted))

    def _memories(self, wanted: ForgetQuery, dry_run: bool) -> Iterator[Deleted]:
        """Remove entries with the text from the memory index. The files stay.

        A file is indexed again only after a change.
        """
        path = memory.index_path(self._place.home)
        if not path.exists() or not wanted.spellings:
            return
        with opened_index(path) as index:
            contains_text = lambda text: wanted.contains_text(text.encode("utf-8", "replace"))  # noqa: E731
            found = index.forget_all(contains_text, dry_run=dry_run)
            if not dry_run:
                index.clean()
                prepare_recall(self._place.home, index)
        yield Deleted("memories, only in the index", len(found), "file")

    def _derived(self, has_skills: bool, dry_run: bool) -> Iterator[Deleted]:
        """Remove or rewrite derived data: search index, exports, briefings."""
        index = index_path(self._place.home)
        if index.exists():
            if not dry_run:
                remove_index(index)
            yield Deleted("search index, which the next search rebuilds", 1, "file")
        if has_skills:
            if not dry_run:
                SkillExports(self._place.home).write()
            yield Deleted("skill exports, rewritten", 2, "file")
        if not dry_run:
            BriefingFiles(self._place.home).write(self._db.path)

    def _remove_lines(self, needles: list[bytes], dry_run: bool) -> int:
        own = {*(self._home / "logs").glob("*.log*")}
        manifest = self._archives.manifest
        for folder in {kept_folder(self._place.home), logs_folder(self._place.home)}:
            found = Path(folder).glob("*.log*")
            own |= {path for path in found if path.name in NAMES or is_own(path, manifest)}
        return sum(
            remove_lines(str(path), needles, dry_run=dry_run)
            for path in own
            if path.is_file() and not path.is_symlink()  # a repository may contain a link
        )

    def _remove_markers(self, wanted: ForgetQuery, dry_run: bool) -> int:
        """Remove context files and marker files; return their number.

        Open sessions make their files again.
        """
        small = [
            *self._home.glob("instances/*"),
            *self._home.glob("sessions/.session_*"),
            self._home / ".active_session",
        ]
        found = {
            path
            for path in small
            if not wanted.sessions.isdisjoint(read_small(str(path)).replace("=", "\n").split())
        }
        found |= {path for path in self._home.glob("context/*") if _is_named(path, wanted)}
        found |= {Path(assignment_path(self._place.home, each)) for each in wanted.sessions}
        found |= {Path(recalled_path(self._place.home, each)) for each in wanted.sessions}
        found = {path for path in found if path.is_file()}
        if not dry_run:
            for path in found:
                path.unlink(missing_ok=True)
        return len(found)

    # ---- Redis

    def _redis(self, wanted: ForgetQuery, dry_run: bool) -> Iterator[Deleted]:
        if not dry_run or answers(self._place.socket):
            with self._redis_of_the_home() as (client, has_workers):
                if client is None:
                    return
                if dry_run:
                    jobs = len(queued.jobs_of(client, wanted))
                else:
                    jobs = queued.discard_jobs(client, wanted, has_workers=has_workers)
                    for session in wanted.sessions:
                        queued.remove_activity(client, session)
                yield Deleted("Redis", jobs, "job")
        elif has_file(self._place.home):
            yield Deleted("Redis, whose file is not read while the stack is down", 1, "file")

    @contextmanager
    def _redis_of_the_home(self) -> Iterator[tuple[redis.Redis | None, bool]]:
        """Yield (client, whether workers are connected to its Redis).

        The client is connected to the running Redis, else to a temporary Redis on the append-only
        file. It is None if the home never had a job. Raise StackError if Redis does not answer.
        """
        stack = Stack.of(self._place)
        try:
            with available_redis(stack) as address:
                if not address:
                    yield None, False
                    return
                with connect(address) as client:
                    yield client, address == stack.address
        except redis.RedisError as error:
            raise StackError(
                f"Redis does not answer ({error}): run `hivepipe forget` again"
            ) from error


def _is_named(path: Path, wanted: ForgetQuery) -> bool:
    return path.is_file() and (
        wanted.names(os.fsencode(path.name)) or wanted.names(read_bytes(path, ANY_SIZE))
    )


def _files_of(folders: Iterable[Path]) -> Iterator[Path]:
    """Yield every file below these folders."""
    for folder in folders:
        yield from filter(Path.is_file, folder.rglob("*"))


def _holds(path: Path, wanted: ForgetQuery) -> bool:
    """Tell whether a file of any size contains the text. Reads overlap by the text's length."""
    overlap = max(map(len, wanted.spellings), default=1) - 1
    rest, end = b"", 0
    with open(path, "rb", buffering=0, opener=regular) as file:
        for at, data in chunks(file):
            seen = (rest if at == end else b"") + data
            if wanted.contains_text(seen):
                return True
            rest, end = seen[-overlap:] if overlap else b"", at + len(data)
    return False
