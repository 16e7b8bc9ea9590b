"""Opening the database: in parallel, with a newer schema, with a backup before a migration."""

import hashlib
import math
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from hivepipe.db import forget, migrations
from hivepipe.db.database import Database, opened_file
from hivepipe.db.forget import clean_pages
from hivepipe.errors import StoreError
from tests import payloads
from tests.conftest import ROOT, Home, Server, Writer, fire_all, until
from tests.outcome import outcome_of
from tests.payloads import changed
from tests.rounds import rounds

OPEN = """
import sys
from pathlib import Path
from hivepipe.db.database import Database, opened_file
Database(Path(sys.argv[1]), 5).close()
"""

# The last frozen step, and the digest of all steps up to it without comments and blanks.
FROZEN_TO = "0100 usage sums"
FROZEN = "cacc47c7c5ef0fcd51528d0f48bd391328efd0031effb0e18a7f986e8c819271"


def test_many_processes_create_one_database_at_once(tmp_path: Path) -> None:
    for attempt in range(rounds(3)):
        path = tmp_path / f"{attempt}.db"
        command = [sys.executable, "-I", "-c", OPEN, str(path)]
        running = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(6)]
        assert [process.communicate()[1] for process in running] == [b""] * 6
        rows = sqlite3.connect(path).execute("SELECT id FROM schema_migrations").fetchall()
        assert rows == [(name,) for name, _ in migrations.MIGRATIONS]


def test_past_steps_of_the_schema_stay_the_same() -> None:
    """A changed step would reach new databases only. A change belongs in a new step."""
    steps = migrations.MIGRATIONS
    text = "\n".join(f"{name}\n{script}" for name, script in steps if name <= FROZEN_TO)
    without_comments = re.sub(r"^--.*|\s", "", text, flags=re.MULTILINE)
    assert hashlib.sha256(without_comments.encode()).hexdigest() == FROZEN


def test_a_database_of_a_newer_hivepipe_is_refused(tmp_path: Path) -> None:
    Database(tmp_path / "hive.db").close()
    connection = sqlite3.connect(tmp_path / "hive.db")
    with connection:
        connection.execute("INSERT INTO schema_migrations VALUES ('0099 later', 'x')")
    connection.close()
    with pytest.raises(StoreError, match="newer hivepipe"):
        Database(tmp_path / "hive.db")


def test_a_migration_makes_a_backup_and_is_rolled_back_if_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "hive.db"
    Database(path).close()
    known = migrations.MIGRATIONS
    good = ("0098 more", "CREATE TABLE more (id TEXT);")
    bad = ("0099 broken", "CREATE TABLE other (id TEXT);\nINSERT INTO nowhere VALUES (1);")
    monkeypatch.setattr(migrations, "MIGRATIONS", (*known, good, bad))
    with pytest.raises(sqlite3.OperationalError):
        Database(path)
    tables = "SELECT name FROM sqlite_master WHERE name IN ('more', 'other')"
    assert sqlite3.connect(path).execute(tables).fetchall() == []
    (backup,) = (tmp_path / "backups").iterdir()
    assert backup.stat().st_mode & 0o777 == 0o600
    kept = sqlite3.connect(backup).execute("SELECT id FROM schema_migrations").fetchall()
    assert kept == [(name,) for name, _ in known]
    monkeypatch.setattr(migrations, "MIGRATIONS", (*known, good))
    Database(path).close()
    assert sqlite3.connect(path).execute(tables).fetchall() == [("more",)]


def test_a_backup_that_fails_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Database(tmp_path / "hive.db").close()
    later = ("0098 more", "CREATE TABLE more (id TEXT);")
    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, later))
    with closing(sqlite3.connect(tmp_path / "hive.db", isolation_level=None)) as connection:
        connection.execute("BEGIN")  # VACUUM INTO fails within a transaction
        with pytest.raises(sqlite3.OperationalError, match="VACUUM"):
            migrations.migrate(connection, tmp_path / "backups")
    assert list((tmp_path / "backups").iterdir()) == []


def test_a_second_connection_of_one_process_does_not_drop_the_locks_of_the_first(
    tmp_path: Path,
) -> None:
    path = tmp_path / "hive.db"
    first = Database(path)
    Database(path).close()
    # The last connection to close deletes the -wal; this process still has one open.
    subprocess.run([sys.executable, "-I", "-c", OPEN, str(path)], check=True)
    with first.transaction():
        first.execute("INSERT INTO applied VALUES (:id, 'now')", {"id": "kept"})
    seen = sqlite3.connect(path).execute("SELECT job_id FROM applied").fetchall()
    first.close()
    assert seen == [("kept",)]


def database_with_counters(path: Path, rows: int) -> Database:
    """Return a database with many counters and a long write-ahead log."""
    db = Database(path)
    with db.transaction():
        for number in range(rows):
            sql = "INSERT INTO counters VALUES (:name, 1)"
            db.execute(sql, {"name": f"{number} {'x' * 500}"})
    return db


def test_the_space_of_deleted_rows_is_freed(tmp_path: Path) -> None:
    db = database_with_counters(tmp_path / "hive.db", 3000)
    assert db.log_bytes() > 1_000_000
    db.shrink()
    assert db.log_bytes() == 0
    large = db.path.stat().st_size
    with db.transaction():
        db.execute("DELETE FROM counters", {})
    db.shrink()
    assert db.path.stat().st_size < large / 3
    db.close()


# The lock of SQLite's -shm file that a process holds while it copies the log into the database.
CHECKPOINT = """
import fcntl, sys, time
with open(sys.argv[1], "r+b") as file:
    fcntl.lockf(file, fcntl.LOCK_EX, 1, 121)
    print(flush=True)
    time.sleep(1)
"""


def test_pages_are_cleaned_after_the_checkpoint_of_another_process(tmp_path: Path) -> None:
    db = database_with_counters(tmp_path / "hive.db", 10)
    command = [sys.executable, "-I", "-c", CHECKPOINT, f"{db.path}-shm"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout
        assert other.stdout.readline()
        clean_pages(db)
    assert db.log_bytes() == 0
    db.close()


def test_pages_are_not_cleaned_while_a_reader_keeps_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forget, "CHECKPOINT_SECS", math.inf)  # the wait for another checkpoint
    db = Database(tmp_path / "hive.db", 0.1)
    with closing(sqlite3.connect(db.path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM counters").fetchall()
        with pytest.raises(sqlite3.OperationalError, match="end it"):
            clean_pages(db)
    db.close()


def test_an_idle_writer_empties_the_log(
    private_home: Home, redis_server: Server, writer: Writer
) -> None:
    private_home.path.mkdir(mode=0o700, exist_ok=True)
    db = database_with_counters(private_home.database, 3000)
    writer.start()
    until(lambda: not db.log_bytes(), "the log stays")
    db.close()


# The public views that users query. Columns may be added at the end; none may change.
VIEWS = {
    "v_sessions": "session_id status project title model source started_at paused_at ended_at"
    " end_reason last_active_at calls failed_calls agents prompts skill_uses summary"
    " transcript_path client",
    "v_agents": "agent_id session_id status type name model started_at last_active_at ended_at"
    " deleted_at deleted_reason outcome error",
    "v_prompts": "session_id at prompt",
    "v_skill_uses": "session_id at skill kind arguments success",
    "v_log": "session_id at level message",
    "v_usage": "session_id agent_id at model input_tokens output_tokens cache_read_tokens"
    " cache_write_tokens",
    "v_summaries": "session_id at kind model summary key_learnings files open_ends",
    "v_tasks": "task_id session_id status text progress reason created_at updated_at finished_at",
    "v_alerts": "name text raised_at ended_at",
}


def test_views_keep_their_names_and_columns_and_are_documented(tmp_path: Path) -> None:
    Database(tmp_path / "hive.db").close()
    with closing(sqlite3.connect(tmp_path / "hive.db")) as db:
        names = [n for (n,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'view'")]
        found = {name: [c[1] for c in db.execute(f"PRAGMA table_info({name})")] for name in names}
        for name in names:  # a view's missing column is noticed only when the view is read
            assert db.execute(f"SELECT * FROM {name}").fetchall() == []
    assert found == {name: columns.split() for name, columns in VIEWS.items()}
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    listed = re.findall(r"^- `(v_\w+)` \([^)]+\): (.*(?:\n  .*)*)", page, re.MULTILINE)
    assert {name: re.split(r",\s+", columns) for name, columns in listed} == found


def test_views_agree_with_the_commands(
    private_home: Home, redis_server: Server, writer: Writer
) -> None:
    writer.start()
    fire_all(
        [changed(payloads.SESSION_START, source="startup"), payloads.POST_AGENT_COMPLETED],
        private_home.env,
    )
    calls = "SELECT title, status, calls, agents, prompts FROM v_sessions"
    until(lambda: [row["calls"] for row in private_home.rows(calls)] == [1], "not stored")
    until(lambda: private_home.rows("SELECT * FROM v_agents"), "no agent")
    (session,) = private_home.rows(calls)
    assert session == {
        "title": "cart-refactor", "status": "active", "calls": 1, "agents": 1, "prompts": 0,
    }  # fmt: skip
    (agent,) = private_home.rows("SELECT status, type, name FROM v_agents")
    assert agent == {"status": "completed", "type": "Explore", "name": "Map checkout callers"}


COUNT_ROWS = """
import sys
from pathlib import Path
from hivepipe.db.database import Database
db = Database(Path(sys.argv[1]))
print(db.execute("INSERT INTO counters VALUES ('a', 1)", {}))
print(db.execute("INSERT OR IGNORE INTO counters VALUES ('a', 1)", {}))
"""
CONNECTS = re.compile(r"sqlite3\.connect\(")
WRITES = re.compile(r"executemany|rowcount")


def test_rows_are_counted_in_a_turkish_locale(tmp_path: Path) -> None:
    made = outcome_of(["localedef", "-i", "tr_TR", "-f", "UTF-8", str(tmp_path / "tr_TR.UTF-8")])
    if made.returncode:
        pytest.skip("no sources of locales")
    done = outcome_of(
        [sys.executable, "-I", "-c", COUNT_ROWS, str(tmp_path / "hive.db")],
        {"LC_ALL": "tr_TR.UTF-8", "LOCPATH": str(tmp_path)},
        check=True,
    )
    assert done.stdout == "1\n0\n"


def test_modules_that_write_rows_use_the_common_connection() -> None:
    for path in (ROOT / "hivepipe").rglob("*.py"):
        text = path.read_text()
        assert not (CONNECTS.search(text) and WRITES.search(text)), path


def test_a_full_disk_is_reported_as_full(tmp_path: Path) -> None:
    """On a full disk SQLite rolls the whole transaction back, and the savepoint is gone."""
    with closing(Database(tmp_path / "hive.db")) as db:
        allow_more_pages(db._connection, 5)
        with pytest.raises(sqlite3.OperationalError, match="full"), db.transaction():
            fill_in_a_savepoint(db)
        assert db.row("SELECT count(*) AS n FROM counters", {})["n"] == 0  # type: ignore[index]


def test_a_damaged_database_is_reported_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "hive.db").write_bytes(b"torn" * 5_000)
    with (
        pytest.raises(StoreError, match="cannot be used: file is not a database"),
        opened_file(tmp_path / "hive.db"),
    ):
        pass


def allow_more_pages(connection: sqlite3.Connection, pages: int) -> None:
    (there,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count={there + pages}")


def fill_in_a_savepoint(db: Database) -> None:
    with db.savepoint():
        for number in range(100):
            name = f"{number}{'x' * 3000}"
            db.execute("INSERT INTO counters VALUES (:name, 1)", {"name": name})


def test_a_migration_strips_the_frame_of_compaction_summaries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, known = tmp_path / "hive.db", migrations.MIGRATIONS
    monkeypatch.setattr(migrations, "MIGRATIONS", before("0093", known))
    Database(path).close()
    head = "This session is being continued from a previous conversation that ran out.\n\n"
    end = "\n\nIf you need specific details from before compaction, read it.\nContinue it."
    own = f"{head}Summary:\n1. Mended.{end}"
    plain = f"A session of 3 messages\nClaude Code's own summary: {own}\nOutcome: success."
    summaries = [("compaction", own), ("", plain), ("", "Mended."), ("compaction", f"{head}Short")]
    with closing(sqlite3.connect(path)) as connection, connection:
        sql = """
            INSERT INTO summaries (session_id, state, made_at, kind, provider, model, reason,
              harness, summary, key_learnings, files, open_ends, requests)
            VALUES ('s', ?, 'now', 'plain', ?, '', '', '', ?, '[]', '[]', '[]', 0)
        """
        rows = [(str(number), *each) for number, each in enumerate(summaries)]
        connection.executemany(sql, rows)
    monkeypatch.setattr(migrations, "MIGRATIONS", known)
    Database(path).close()
    with closing(sqlite3.connect(path)) as connection:
        found = [row[0] for row in connection.execute("SELECT summary FROM summaries")]
    assert found == [
        "1. Mended.",
        "A session of 3 messages\nClaude Code's own summary: 1. Mended.\nOutcome: success.",
        "Mended.",
        f"{head}Short",
    ]


def before(number: str, steps: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple(step for step in steps if step[0] < number)
