"""kill -9 of the process that writes identity files, at each call that touches a file.

CLAUDE.md is never torn, the user's text is never lost, and a retry finishes the work.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace as changed
from pathlib import Path

import pytest

from hivepipe.db import profiles
from hivepipe.db.applied import mark_applied
from hivepipe.db.database import Database
from hivepipe.db.location import database_path
from hivepipe.events.job_plan import Job
from hivepipe.jobs.origin import Origin
from hivepipe.operations.families.profiles import FinishProcess, SyncIdentity, SyncProfile
from hivepipe.operations.identity_files import replace, restore
from hivepipe.operations.job_context import JobContext
from hivepipe.operations.process_end import finish_process, sync_profile
from hivepipe.operations.profiles import change, put, sync_identity
from tests.faults.harness import killed_at, random_of
from tests.rounds import rounds

STEP = 1 if rounds(0) else 5  # HIVEPIPE_TEST_ROUNDS tests every call
USERS = b"# Mine\nWhat I tell Claude in this folder, written by hand over many weeks.\n" * 3
USERS_NEXT = b"# Mine, again\nI have thought about it, and this is how it is to be done.\n" * 3
OURS = "# Ada\nWrite short sentences, and say first what a change is for. " * 3
OURS_NEXT = "# Ada, second edition\nWrite no sentences at all where a table will do. " * 3


class Folders:
    """A profile's folder and a home, which can be reset to the beginning of a test."""

    def __init__(self, root: Path) -> None:
        self.live, self._before = root / "live", root / "before"
        self.file = self.live / "ada" / "CLAUDE.md"
        self.home = str(self.live / "home")
        self.file.parent.mkdir(parents=True)
        Path(self.home).mkdir()

    def keep_copy(self) -> None:
        shutil.copytree(self.live, self._before)

    def reset(self) -> None:
        shutil.rmtree(self.live)
        shutil.copytree(self._before, self.live)

    def content(self) -> bytes | None:
        return self.file.read_bytes() if self.file.exists() else None

    def is_anywhere(self, text: bytes) -> bool:
        return any(path.read_bytes() == text for path in self.live.rglob("*") if path.is_file())

    def left_over(self) -> list[str]:
        """Return the files that should not exist after the restore."""
        kept = Path(self.home, "identity", "before")
        found = [*self.file.parent.iterdir(), *(kept.iterdir() if kept.exists() else ())]
        return [path.name for path in found if path != self.file]


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


def kills(folders: Folders, name: str, work: Callable[[], object]) -> Iterator[int]:
    """Yield after each kill, before the folders are reset."""
    folders.keep_copy()
    call = 1 + random_of(name).randrange(STEP)
    count = 0
    while killed_at(call, work):
        yield call
        folders.reset()
        count, call = count + 1, call + STEP
    print(f"{name}: {count} kills in {call} calls")


def write(folders: Folders, text: str = OURS) -> str:
    return replace(folders.home, folders.file, text, keeps_before=True)


def back(folders: Folders) -> str:
    return restore(folders.home, folders.file, set())


@pytest.mark.parametrize("before", [USERS, None])
@pytest.mark.parametrize("tries_again", [True, False])
def test_a_killed_write_of_claude_md_leaves_the_old_or_the_new_text(
    folders: Folders, before: bytes | None, tries_again: bool
) -> None:
    if before:
        folders.file.write_bytes(before)
        folders.file.chmod(0o640)
    count = 0
    for call in kills(folders, f"write {bool(before)} {tries_again}", lambda: write(folders)):
        count += 1
        assert folders.content() in (before, OURS.encode()), f"torn by a kill at {call}"
        if tries_again:
            assert write(folders) == ""
            assert folders.content() == OURS.encode()
        assert back(folders) == ""
        assert folders.content() == before, f"not as it was after a kill at {call}"
        assert folders.left_over() == [], call
        if before:
            assert folders.file.stat().st_mode & 0o777 == 0o640
    assert count > 3


def test_a_users_edit_after_a_kill_is_restored(folders: Folders) -> None:
    folders.file.write_bytes(USERS)
    count = 0
    for call in kills(folders, "edited", lambda: write(folders)):
        count += 1
        folders.file.write_bytes(USERS_NEXT)
        assert write(folders, OURS_NEXT) == ""
        assert back(folders) == ""
        assert folders.content() == USERS_NEXT, f"lost after a kill at {call}"
    assert count > 3


def test_a_users_edit_between_two_sessions_is_restored(folders: Folders) -> None:
    folders.file.write_bytes(USERS)
    assert write(folders) == ""
    folders.file.write_bytes(b"edited while a session ran, so that it is not given back" * 3)
    assert "somebody edited it meanwhile" in back(folders)
    folders.file.write_bytes(USERS_NEXT)
    assert write(folders, OURS_NEXT) == ""
    assert back(folders) == ""
    assert folders.content() == USERS_NEXT
    assert folders.is_anywhere(USERS)  # the text of the very beginning is kept too


class Session:
    """A session of the profile ada, whose jobs are done as the workers do them."""

    def __init__(self, folders: Folders) -> None:
        self.folders = folders
        self.handed_back: list[tuple[Origin, list[Job]]] = []
        self.context = JobContext(folders.home, "", lambda *said: self.handed_back.append(said))
        self.start = Origin(
            id="j1",
            operation="sync_profile",
            session="s1",
            instance="i1",
            project="/p",
            event_time_ns=2 * 10**18,
        )
        self.folder = str(folders.file.parent)
        self.end = changed(self.start, id="j2", operation="finish_process")

    def prepare(self) -> None:
        with closing(self.database()) as db:
            change(db, "ada", None, True)
            put(db, "ada", "CLAUDE.md", OURS.encode(), "cli")
        with closing(self.database()) as db, db.transaction():
            profiles.enter_profile(db, "ada", "s1", "s", self.folder, self.start.time)

    def database(self) -> Database:
        return Database(database_path(self.folders.home))

    def run_start(self) -> None:
        args = SyncProfile(profile_id="ada", folder=self.folder)
        sync_profile(self.context, self.start, args)
        self.take_in()

    def run_end(self) -> None:
        finish_process(self.context, self.end, FinishProcess())
        self.take_in()

    def take_in(self) -> None:
        """Apply the resulting jobs as the writer does: effect and record in one transaction."""
        for parent, jobs in self.handed_back:
            for job in jobs:
                child = changed(parent, id=f"{parent.id}-{job.subject}", operation="x")
                with closing(self.database()) as db, db.transaction():
                    if mark_applied(db, child):
                        sync_identity(db, child, SyncIdentity.read(job.payload))
        self.handed_back.clear()

    def versions(self, name: str) -> list[tuple[str, str]]:
        sql = """
            SELECT change_source, text FROM identity_versions WHERE name = :name ORDER BY id
        """
        with closing(self.database()) as db:
            return [(row["change_source"], row["text"]) for row in db.rows(sql, {"name": name})]


@pytest.fixture
def session(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setenv("HIVEPIPE_HOME", folders.home)
    session = Session(folders)
    session.prepare()
    folders.file.write_bytes(USERS)
    (folders.file.parent / "SOUL.md").write_text(OURS)
    return session


def test_a_kill_at_the_start_of_a_session_tears_no_identity_file(session: Session) -> None:
    folders = session.folders
    count = 0
    for call in kills(folders, "start", session.run_start):
        count += 1
        assert folders.content() in (USERS, OURS.encode()), f"torn by a kill at {call}"
        session.run_start()  # the job is repeated
        assert folders.content() == OURS.encode()
        assert session.versions("SOUL.md") == [("session_sync", OURS)]
        session.run_end()
        assert folders.content() == USERS, f"not as it was after a kill at {call}"
        assert folders.left_over() == ["SOUL.md"], call
    assert count > 10


def test_a_kill_at_the_end_of_a_session_tears_no_identity_file(session: Session) -> None:
    folders = session.folders
    session.run_start()
    (folders.file.parent / "SOUL.md").write_text(OURS_NEXT)
    count = 0
    for call in kills(folders, "end", session.run_end):
        count += 1
        assert folders.content() in (USERS, OURS.encode()), f"torn by a kill at {call}"
        session.run_end()
        assert folders.content() == USERS, f"not as it was after a kill at {call}"
        assert session.versions("SOUL.md") == [("session_sync", OURS), ("session_sync", OURS_NEXT)]
        assert session.versions("CLAUDE.md") == [("cli", OURS)]
        assert folders.left_over() == ["SOUL.md"], call
    assert count > 10
