"""The predecessor's queue and database are imported, and no hostile entry is executed."""

import codecs
import json
import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hivepipe.db.agents import AgentSignal, merge
from hivepipe.db.legacy_sql import LegacySql, RefusedError
from hivepipe.jobs.envelope import Envelope
from hivepipe.migration.legacy_queue import entries
from tests.conftest import Home
from tests.old_project import TABLES, OldProject

QUEUED = "2026-01-02T04:00:00Z"
SECRET = "sk-ant-api03-" + "A1b2C3d4" * 10
AGENT = """INSERT OR REPLACE INTO agents
  (id, swarm_id, name, type, role, metadata, status, created_at) VALUES
  ('{id}', '{swarm}', '{name}', 'Explore', 'task-agent', '{{"ttl": 1}}', 'spawned', '{time}');"""
CHECKPOINT = """UPDATE sessions SET checkpoint_data =
  json_set(coalesce(checkpoint_data, '{{}}'), '$.savedBy', '{by}'), updated_at = datetime('now')
  WHERE id = '{session}'"""
LOG = """INSERT INTO session_logs (session_id, log_level, message, data)
  SELECT 'old-1', 'INFO', 'Auto-checkpoint: Edit', json_object('tool', 'Edit')
  WHERE EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'session_logs')"""


@pytest.fixture
def queue(private_home: Home) -> OldProject:
    """A project of the predecessor that has only an empty queue."""
    project = OldProject(private_home.root / "old")
    for part in ("pending", "processing", "completed", "failed", ".tmp"):
        (project.queue / part).mkdir(parents=True)
    return project


def name_of(entry: Path) -> str:
    return f"{entry.parent.name}/{entry.name}"


def raw_entry(queue: OldProject, text: str) -> Path:
    path = queue.entry("")
    path.write_text(text)
    return path


def run(home: Home, *arguments: str, expect: int = 0) -> dict[str, Any]:
    output = text(home, *arguments, "--json", expect=expect)
    found = json.loads(output)
    assert isinstance(found, dict)
    return found


def text(home: Home, *arguments: str, expect: int = 0) -> str:
    return home.command(*arguments, expect=expect, TZ="Europe/Berlin")


OLD = """
CREATE TABLE session_logs (id INTEGER PRIMARY KEY, session_id TEXT, log_level TEXT, message TEXT,
  data TEXT, created_at TEXT);
INSERT INTO swarms VALUES ('w-1', 'shop', NULL, 'active', '2026-01-01 09:00:00');
INSERT INTO sessions VALUES ('old-1', 'w-1', 'shop', 'active', '{"operationCount": 4}',
  '2026-01-01 09:00:00', '2026-01-01 10:00:00');
INSERT INTO instance_sessions VALUES (1, 'old-1', 'tty-3', 77, 'active', 2, 9);
INSERT INTO session_logs VALUES (1, 'old-1', 'INFO', 'first', NULL, '2026-01-01 09:30:00');
"""
SHAPES = {
    "seed": """
CREATE TABLE agents (id TEXT PRIMARY KEY, swarm_id TEXT, session_id TEXT, name TEXT, type TEXT,
  role TEXT, metadata TEXT, status TEXT, created_at TEXT, deleted_at TEXT);
INSERT INTO agents VALUES ('a-1', 'w-1', 'old-1', 'finder', 'Explore', 'task-agent',
  '{"lifecycle": {"type": "permanent"}}', 'spawned', '2026-01-01 09:10:00', NULL);
""",
    "claude-flow": """
CREATE TABLE agents (id TEXT PRIMARY KEY, swarm_id TEXT, name TEXT, type TEXT, role TEXT,
  capabilities TEXT, status TEXT, performance_score REAL, task_count INTEGER, metadata TEXT,
  created_at TEXT);
INSERT INTO agents VALUES ('a-1', 'w-1', 'finder', 'Explore', 'task-agent', '[]', 'idle', 0.5, 3,
  '{"lifecycle": {"type": "permanent"}}', '2026-01-01 09:10:00');
""",
}


def old_database(home: Home, shape: str = "seed", more: str = "") -> Path:
    path = home.root / "old.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(TABLES + OLD + SHAPES[shape] + more)
    return path


def other_database(home: Home, statements: str) -> str:
    """Make a database with another schema and return its path."""
    path = home.root / "old.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(statements)
    return str(path)


def refusals(output: dict[str, Any]) -> list[str]:
    return [each["reason"] for each in output["entries"] if each["outcome"] == "refused"]


# ---- the queue
def test_valid_broken_repeated_and_hostile_entries(private_home: Home, queue: OldProject) -> None:
    run(private_home, "import-db", str(old_database(private_home)))
    witness = private_home.root / "ran"
    good = AGENT.format(id="t-1", swarm="w-1", name="it''s a, \"b\"", time="2026-01-02 05:00:00")
    injected = "x','r','{}','s','now'); UPDATE sessions SET status='pwned'; --"
    checkpoint = CHECKPOINT.format(by="tty-3", session="old-1")
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
    refused = {
        f"ATTACH '{witness}' AS x": "ATTACH is not INSERT, UPDATE or DELETE",
        "PRAGMA journal_mode = OFF": "PRAGMA is not INSERT, UPDATE or DELETE",
        f".shell touch {witness}": ".shell is a command of the sqlite3 shell",
        "DELETE FROM session_logs; DROP TABLE agents": "more than one statement",
        "DROP TABLE agents": "DROP is not INSERT, UPDATE or DELETE",
        f"INSERT INTO agents (id, type) VALUES ('t-9', '{injected}')": "6 values for 2 columns",
        f"INSERT INTO session_logs (message) SELECT writefile('{witness}', 'x')": (
            "no such function: writefile"
        ),
        "INSERT INTO session_logs (message) SELECT load_extension('/tmp/x.so')": (
            "the function load_extension is not allowed"
        ),
        "UPDATE sqlite_master SET sql = ''": "table sqlite_master may not be modified",
        "INSERT INTO changed_rows VALUES ('agents', 1)": "INSERT into changed_rows is not allowed",
        f"INSERT INTO session_logs (message) {endless}": "",
        "INSERT INTO projects (id) VALUES (1)": "no such table: projects",
    }
    expected = {
        queue.entry(good, created_at=QUEUED): ("taken", ""),
        queue.entry(checkpoint, priority=3, created_at=QUEUED): ("taken", ""),
        queue.entry(LOG, priority=10): ("taken", ""),
        queue.entry(good, created_at=QUEUED): ("double", ""),
        queue.entry(CHECKPOINT.format(by="x", session="never")): ("no such row", ""),
        raw_entry(queue, "{not json"): ("broken", "broken JSON"),
        raw_entry(queue, '{"operation": "insert_log"}'): ("broken", "no SQL in it"),
        **{queue.entry(sql): ("refused", reason) for sql, reason in refused.items()},
    }
    processing = queue.entry(good.replace("t-1", "t-2"), part="processing")
    queue.entry(good.replace("t-1", "t-3"), part="completed")
    before = sorted(path.name for path in private_home.path.iterdir())

    output = run(private_home, "import-queue", str(queue.queue), "--dry-run", expect=1)
    outcomes = {each["name"]: (each["outcome"], each["reason"]) for each in output["entries"]}
    for entry, (outcome, reason) in expected.items():
        assert outcomes[name_of(entry)][0] == outcome, entry
        assert reason in outcomes[name_of(entry)][1], entry
    assert outcomes.keys() == {*map(name_of, expected)}
    assert {each["name"]: each["rows"] for each in output["left_out"]} == {
        "completed": 1, "processing": 1, "failed": 0, ".tmp": 0,
    }  # fmt: skip
    assert [row["id"] for row in private_home.rows("SELECT id FROM agents")] == ["a-1"]

    output = run(private_home, "import-queue", str(queue.queue), expect=1)
    assert output["totals"] == {
        "taken": 3,
        "double": 1,
        "no such row": 1,
        "broken": 2,
        "refused": 12,
    }
    assert not witness.exists()
    assert sorted(path.name for path in private_home.path.iterdir()) == before
    (agent,) = private_home.rows("SELECT * FROM agents WHERE id = 't-1'")
    assert agent["name"] == 'it\'s a, "b"'
    assert agent["created_at"] == "2026-01-02T04:00:00.000Z"  # 05:00 in Berlin
    (session,) = private_home.rows("SELECT * FROM sessions")
    assert json.loads(session["checkpoint_data"]) == {"operationCount": 4, "savedBy": "tty-3"}
    assert session["updated_at"] == "2026-01-02T04:00:00.000Z"  # the time when it was queued
    assert session["status"] == "ended"
    messages = [row["message"] for row in private_home.rows("SELECT message FROM session_logs")]
    assert sorted(messages) == ["Auto-checkpoint: Edit", "first"]

    again = run(private_home, "import-queue", str(queue.queue), expect=1)
    assert again["totals"] == {
        "here already": 3, "double": 1, "no such row": 1, "broken": 2, "refused": 12,
    }  # fmt: skip
    assert private_home.count("agents") == 2
    assert private_home.count("session_logs") == 2
    with_processing = ("import-queue", str(queue.queue), "--include-processing")
    output = run(private_home, *with_processing, expect=1)
    assert {each["name"] for each in output["entries"]} >= {name_of(processing)}
    assert private_home.count("agents") == 3
    shown = text(private_home, *with_processing, expect=1)
    assert "ATTACH is not INSERT, UPDATE or DELETE" in shown


def test_entries_are_ordered_by_priority_time_and_counter(queue: OldProject) -> None:
    for name in ("10_1767327600N_1", "3_1767327700N_2", "3_1767327600N_10", "3_1767327600N_9"):
        (queue.queue / "pending" / f"{name}.json").write_text("{}")
    names = [entry.path.stem for entry in entries(queue.queue, ("pending",))]
    assert names == ["3_1767327600N_9", "3_1767327600N_10", "3_1767327700N_2", "10_1767327600N_1"]


def test_entries_that_the_old_queue_broke_are_repaired(queue: OldProject) -> None:
    raw_entry(queue, '{"operation": "x", "sql": "DELETE FROM agents", "retries":1 0}')
    raw_entry(queue, '{"sql": "DELETE FROM agents", "retries":0,"error":"near "x": syntax error"}')
    raw_entry(queue, '\ufeff{"sql": "DELETE FROM agents"}')  # a byte order mark
    found = list(entries(queue.queue, ("pending",)))
    assert [(entry.sql, entry.problem) for entry in found] == [("DELETE FROM agents", "")] * 3


def test_links_and_large_files_in_the_queue_are_refused(queue: OldProject) -> None:
    secret = queue.folder / "secret.json"
    secret.write_text('{"sql": "DELETE FROM agents"}')
    (queue.queue / "pending" / "1_1.json").symlink_to(secret)
    (queue.queue / "pending" / "2_2.json").write_bytes(b"x" * ((1 << 20) + 1))
    problems = [entry.problem for entry in entries(queue.queue, ("pending",))]
    assert problems == ["no regular file", "larger than any entry"]


def test_an_unreadable_entry_does_not_affect_others(private_home: Home, queue: OldProject) -> None:
    theirs, ours = raw_entry(queue, "{}"), raw_entry(queue, "{}")
    theirs.chmod(0)
    for folder in (private_home.root, queue.folder, queue.home, queue.queue, ours.parent):
        folder.chmod(0o755)
    uid = os.geteuid()
    codecs.lookup("utf-8-sig")  # load the module, which the other user may not be able to import
    try:
        if uid == 0:
            os.seteuid(65534)
        with pytest.raises(PermissionError):
            theirs.read_bytes()
        found = {each.path.name: each.problem for each in entries(queue.queue, ("pending",))}
    finally:
        os.seteuid(uid)
    assert found == {theirs.name: "it cannot be read: Permission denied", ours.name: "no SQL in it"}


def test_an_endless_statement_is_stopped_and_rolled_back() -> None:
    sandbox = LegacySql({"swarms": [{"id": str(number)} for number in range(300)]})
    cross = "SELECT a.id || b.id || c.id || d.id FROM swarms a, swarms b, swarms c, swarms d"
    with pytest.raises(RefusedError, match="takes too long"):
        sandbox.run(f"INSERT OR IGNORE INTO swarms (id) {cross}", "2026-01-01")
    assert list(sandbox.rows()) == []
    assert sandbox.run("INSERT INTO swarms (id) VALUES ('next')", "2026-01-01") == 1
    assert [row["id"] for _, row in sandbox.rows()] == ["next"]
    sandbox.close()


# ---- the database
@pytest.mark.parametrize("shape", SHAPES)
def test_an_old_database_of_either_schema_is_imported(private_home: Home, shape: str) -> None:
    path = old_database(private_home, shape)
    before = path.read_bytes()
    assert run(private_home, "import-db", str(path), "--dry-run")["totals"] == {"taken": 5}
    assert not private_home.database.exists()
    output = run(private_home, "import-db", str(path))
    assert output["totals"] == {"taken": 5}
    assert output["local_times"] == 5
    assert path.read_bytes() == before
    shown = text(private_home.another("other"), "import-db", str(path))
    assert "5 times without a zone: read as local" in shown
    (agent,) = private_home.rows("SELECT * FROM agents")
    assert (agent["id"], agent["name"]) == ("a-1", "finder")
    assert agent["created_at"] == "2026-01-01T08:10:00.000Z"
    assert agent["status"] == ("spawned" if shape == "seed" else "completed")
    (instance,) = private_home.rows("SELECT * FROM instance_sessions")
    assert (instance["operation_count"], instance["status"]) == (9, "detached")
    assert run(private_home, "import-db", str(path))["totals"] == {"here already": 5}
    own = str(private_home.database)
    assert "own database" in text(private_home, "import-db", own, expect=1)


def test_counters_in_the_queue_are_added_once(private_home: Home, queue: OldProject) -> None:
    run(private_home, "import-db", str(old_database(private_home)))
    queue.entry(
        "UPDATE instance_sessions SET checkpoint_count = checkpoint_count + 1, "
        "operation_count = operation_count + 2 WHERE session_id = 'old-1'"
    )
    for expected in ("taken", "here already", "here already"):
        assert run(private_home, "import-queue", str(queue.queue))["totals"] == {expected: 1}
        (row,) = private_home.rows("SELECT * FROM instance_sessions")
        assert (row["checkpoint_count"], row["operation_count"]) == (3, 11)


def test_an_entry_whose_row_was_refused_is_tried_again(
    private_home: Home, queue: OldProject
) -> None:
    queue.entry(AGENT.format(id="t-1", swarm="w-1", name="late", time="2026-01-02 05:00:00"))
    run(private_home, "import-queue", str(queue.queue), expect=1)
    run(private_home, "import-db", str(old_database(private_home)))
    assert run(private_home, "import-queue", str(queue.queue))["totals"] == {"taken": 1}
    assert private_home.count("agents") == 2


def test_imported_rows_are_remembered_permanently(private_home: Home, queue: OldProject) -> None:
    """The rows of `applied` are deleted after 90 days."""
    path = old_database(private_home)
    queue.entry(LOG)
    run(private_home, "import-db", str(path))
    run(private_home, "import-queue", str(queue.queue))
    with closing(sqlite3.connect(private_home.database)) as db, db:
        db.execute("DELETE FROM applied")
        db.execute("UPDATE session_logs SET job_id = NULL")
        db.execute("DELETE FROM agents")
    assert run(private_home, "import-db", str(path))["totals"] == {"here already": 5}
    assert run(private_home, "import-queue", str(queue.queue))["totals"] == {"here already": 1}
    assert (private_home.count("agents"), private_home.count("session_logs")) == (0, 2)


TASKS = """
CREATE TABLE tasks (id TEXT PRIMARY KEY, swarm_id TEXT, description TEXT, status TEXT,
  priority INTEGER, result TEXT, created_at TEXT, completed_at TEXT);
INSERT INTO tasks VALUES
  ('t-1', 'w-1', 'fix the login', 'completed', 5, 'fixed', '2026-01-01 09:00', '2026-01-01 10:00'),
  ('t-2', 'w-1', 'write docs', 'in_progress', 5, NULL, '2026-01-01 09:00', NULL),
  ('t-3', 'w-1', 'deploy', 'failed', 5, NULL, '2026-01-01 09:00', '2026-01-01 10:00');
CREATE TABLE collective_memory (id TEXT, key TEXT, value TEXT);
INSERT INTO collective_memory VALUES ('m-1', 'a', 'b'), ('m-2', 'c', 'd');
CREATE TABLE empty (x TEXT);
"""


def test_tasks_are_imported_and_other_tables_named(private_home: Home) -> None:
    path = old_database(private_home, "claude-flow", TASKS)
    output = run(private_home, "import-db", str(path), expect=1)
    assert output["totals"] == {"taken": 8}
    tasks = private_home.rows("SELECT id, text, status, progress, reason FROM tasks ORDER BY id")
    assert [tuple(task.values()) for task in tasks] == [
        ("t-1", "fix the login", "done", "fixed", None),
        ("t-2", "write docs", "open", None, None),
        ("t-3", "deploy", "cancelled", None, "failed"),
    ]
    left_out = {each["name"]: (each["rows"], each["reason"]) for each in output["left_out"]}
    assert left_out["table collective_memory"] == (
        2,
        "hivepipe keeps memories as files, not as rows",
    )
    assert "capabilities, performance_score, task_count" in left_out["columns of agents"][1]
    assert "swarm_id, priority" in left_out["columns of tasks"][1]
    shown = text(private_home, "import-db", str(path), expect=1)
    assert "not imported: table collective_memory (2): hivepipe keeps memories as files" in shown
    assert "table empty" not in shown
    assert "/hive.db" in shown


def test_log_lines_with_a_timestamp_column_keep_their_time(private_home: Home) -> None:
    path = other_database(
        private_home,
        """
        CREATE TABLE session_logs (id INTEGER PRIMARY KEY, session_id TEXT, timestamp TEXT,
          log_level TEXT, message TEXT, data TEXT);
        INSERT INTO session_logs VALUES (1, 's', '2026-01-01T08:00:00Z', 'INFO', 'm', NULL);
        """,
    )
    run(private_home, "import-db", path)
    (line,) = private_home.rows("SELECT created_at FROM session_logs")
    assert line["created_at"] == "2026-01-01T08:00:00.000Z"


def imported_agents(home: Home, column: str, values: Iterable[str]) -> list[Any]:
    """Import an agent for each SQL value of a column of the old table; return the new values."""
    path = old_database(home, "claude-flow")
    with closing(sqlite3.connect(path)) as db, db:
        # Columns without a type store a number as it is.
        columns = [name for _, name, *_ in db.execute("PRAGMA table_info(agents)")]
        db.execute(f"CREATE TABLE copied ({', '.join(columns)})")
        for number, value in enumerate(values):
            db.execute("INSERT INTO copied SELECT * FROM agents")
            db.execute(
                f"UPDATE copied SET id = 'a-{number}', {column} = {value} "
                "WHERE rowid = last_insert_rowid()"
            )
        db.execute("DROP TABLE agents")
        db.execute("ALTER TABLE copied RENAME TO agents")
    run(home, "import-db", str(path))
    wanted = "session_id" if column == "metadata" else column
    return [row[wanted] for row in home.rows(f"SELECT {wanted} FROM agents ORDER BY id")]


METADATA = {
    '{"sessionId": "old-1"}': "old-1",
    '{"spawn_context": {"session_id": "old-1"}}': "old-1",
    "{torn": None,
    "[1]": None,
    '{"sessionId": 5}': None,
    '{"sessionId": "../x"}': None,
}


def test_the_session_of_an_agent_is_read_from_its_metadata(private_home: Home) -> None:
    texts = [f"'{text}'" for text in METADATA]
    assert imported_agents(private_home, "metadata", texts) == [*METADATA.values()]


def test_a_row_that_violates_a_constraint_does_not_affect_other_rows(private_home: Home) -> None:
    more = """
        INSERT INTO instance_sessions VALUES (2, 'old-1', NULL, 78, 'active', 1, 1);
        UPDATE agents SET swarm_id = NULL;
    """
    path = old_database(private_home, more=more)
    output = run(private_home, "import-db", str(path), expect=1)
    assert output["totals"] == {"taken": 4, "refused": 2}
    (without_swarm,) = (reason for reason in refusals(output) if "instance_id" not in reason)
    assert without_swarm == "it has no swarm"
    assert private_home.count("sessions") == 1


def test_what_a_database_of_hivepipe_also_has_is_named(private_home: Home) -> None:
    path = other_database(
        private_home,
        """
        CREATE TABLE schema_migrations (id TEXT);
        CREATE TABLE swarms (id TEXT, name TEXT, colour TEXT);
        CREATE TABLE prompts (id TEXT);
        CREATE VIEW v_prompts AS SELECT id FROM prompts;
        INSERT INTO swarms VALUES ('w-1', 'shop', 'red');
        INSERT INTO prompts VALUES ('p-1');
        """,
    )
    output = run(private_home, "import-db", path, expect=1)
    reasons = {each["name"]: each["reason"] for each in output["left_out"]}
    assert "only the tables of the bash hooks are imported" in reasons["table prompts"]
    assert reasons["columns of swarms"] == "the bash hooks did not have these columns: colour"
    assert "table v_prompts" not in reasons
    shown = text(private_home, "import-db", path, expect=1)
    assert "`hivepipe restore --replace` here" in shown


def test_names_of_tables_and_columns_are_case_insensitive(private_home: Home) -> None:
    path = other_database(
        private_home,
        """
        CREATE TABLE Swarms (ID TEXT PRIMARY KEY, Name TEXT);
        CREATE TABLE AGENTS (Id TEXT, SWARM_ID TEXT, Type TEXT, Status TEXT, Mood TEXT);
        CREATE TABLE Collective_Memory (key TEXT);
        INSERT INTO Swarms VALUES ('w-1', 'shop');
        INSERT INTO AGENTS VALUES ('a-1', 'w-1', 'Explore', 'spawned', 'good');
        INSERT INTO Collective_Memory VALUES ('style');
        """,
    )
    output = run(private_home, "import-db", path, expect=1)
    assert output["totals"] == {"taken": 2}
    left_out = [each["name"] for each in output["left_out"]]
    assert left_out == ["table Collective_Memory", "columns of AGENTS"]
    (agent,) = private_home.rows("SELECT * FROM agents")
    assert (agent["id"], agent["type"]) == ("a-1", "Explore")


TIMES = {
    "1736500000": "2025-01-10T09:06:40.000Z",
    "1736500000.25": "2025-01-10T09:06:40.250Z",
    "1736500000250": "2025-01-10T09:06:40.250Z",
    "1736500000250000000": "2025-01-10T09:06:40.250Z",
    "'1736500000'": "2025-01-10T09:06:40.000Z",
    "7": "7",
    "'some day'": "some day",
    "'0001-01-01 00:00:00+10:00'": "0001-01-01 00:00:00+10:00",
}


def test_numeric_times_are_converted(private_home: Home) -> None:
    assert imported_agents(private_home, "created_at", TIMES) == [*TIMES.values()]


def test_rows_in_the_wal_of_an_old_database_are_imported_without_changing_it(
    private_home: Home,
) -> None:
    path = old_database(private_home)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        with db:
            db.execute("INSERT INTO session_logs VALUES (2, 'old-1', 'INFO', 'second', NULL, NULL)")
        Path(f"{path}-shm").unlink()
        before = {name.name: name.read_bytes() for name in path.parent.glob("old.db*")}
        assert before.keys() == {"old.db", "old.db-wal"}
        assert run(private_home, "import-db", str(path))["totals"] == {"taken": 6}
        after = {name.name: name.read_bytes() for name in path.parent.glob("old.db*")}
    assert after == before


def test_what_is_no_queue_or_database_is_refused(private_home: Home, queue: OldProject) -> None:
    above = str(queue.queue.parent)
    assert "contains `pending`" in text(private_home, "import-queue", above, expect=1)
    empty = private_home.project / "empty.db"
    empty.touch()
    assert "it has no tables" in text(private_home, "import-db", str(empty), expect=1)
    assert not private_home.database.exists()


def test_a_link_to_an_old_database_is_refused(private_home: Home) -> None:
    link = private_home.root / "link.db"
    link.symlink_to(old_database(private_home))
    assert "is not a regular file" in text(private_home, "import-db", str(link), expect=1)


def test_an_old_database_is_not_trusted(private_home: Home) -> None:
    witness = private_home.root / "ran"
    path = old_database(private_home, more="DROP TABLE swarms;")
    with closing(sqlite3.connect(path)) as db:
        db.executescript(f"""
            CREATE VIEW swarms AS SELECT writefile('{witness}', 'x') AS id;
            CREATE TABLE evil (id TEXT);
            INSERT INTO evil VALUES ('x');
            UPDATE sessions SET checkpoint_data = 'key {SECRET}';
        """)
    output = run(private_home, "import-db", str(path), expect=1)
    assert {each["name"]: each["rows"] for each in output["left_out"]} == {
        "table swarms": None, "table evil": 1,
    }  # fmt: skip
    assert {*refusals(output)} == {"swarm w-1 does not exist"}
    assert not witness.exists()
    (session,) = private_home.rows("SELECT * FROM sessions")
    assert SECRET not in session["checkpoint_data"]
    (private_home.root / "no.db").write_text("no database")
    text(private_home, "import-db", str(private_home.root / "no.db"), expect=1)


def test_invalid_values_of_one_row_do_not_affect_other_rows(private_home: Home) -> None:
    path = other_database(
        private_home,
        """
        CREATE TABLE sessions (id, status, objective, created_at);
        INSERT INTO sessions VALUES
          ('endless', 'active', 'x', 9e999),
          ('torn', 'active', CAST(X'ff66' AS TEXT), '2025-13-45'),
          (NULL, 'active', 'x', 'x'),
          ('../../etc', 'active', 'x', 'x');
        """,
    )
    output = run(private_home, "import-db", path, expect=1)
    outcomes = {each["name"]: each["outcome"] for each in output["entries"]}
    assert outcomes == {
        "endless": "refused", "torn": "taken", "None": "refused", "../../etc": "refused",
    }  # fmt: skip
    rows = private_home.rows("SELECT id, objective FROM sessions")
    assert rows == [{"id": "torn", "objective": "\ufffdf"}]


def test_an_imported_agent_without_times_gets_those_of_its_next_event() -> None:
    job = Envelope(
        id="1" * 32,
        operation="finish_agent",
        priority=5,
        payload={},
        session="old-1",
        instance="i",
        project="/shop",
        event_time_ns=1_763_690_400 * 10**9,
    )
    names = (
        "name type model tool_use_id created_at last_active completed_at began_at metadata error"
    )
    known = dict.fromkeys(names.split()) | {"id": "a-1", "status": "spawned", "session_id": "old-1"}
    row = merge(known, job, AgentSignal(agent_id="a-1", status="completed"))
    assert row["created_at"] == row["last_active"] == row["completed_at"] == job.time
    assert row["metadata"]
