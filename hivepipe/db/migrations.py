"""The schema: an append-only list of migrations, each committed together with its record.

Times are TEXT, UTC with milliseconds. A `*_time_ns` column is the time of the event that set the
related columns. So an older event that arrives late never replaces a newer one.
"""

import os
import re
import sqlite3
from pathlib import Path

from hivepipe.db.usage_sums import USAGE_SUMS
from hivepipe.errors import StoreError
from hivepipe.files.sqlite_file import statements, transaction

_STEPS: dict[str, str] = {}

_STEPS["0001 initial"] = """
CREATE TABLE swarms (
  id TEXT PRIMARY KEY, name TEXT, objective TEXT, status TEXT NOT NULL DEFAULT 'active',
  created_at TEXT, updated_at TEXT, deleted_at TEXT);

-- swarm_id is no foreign key: a session outlives its swarm.
CREATE TABLE sessions (
  id TEXT PRIMARY KEY, swarm_id TEXT, swarm_name TEXT, objective TEXT,
  status TEXT NOT NULL CHECK (status IN ('active', 'paused', 'ended', 'inferred')),
  checkpoint_data TEXT, metadata TEXT, child_pids TEXT, created_at TEXT, updated_at TEXT,
  project TEXT, transcript_path TEXT, model TEXT, source TEXT,
  paused_at TEXT, ended_at TEXT, end_reason TEXT,
  state_time_ns INTEGER NOT NULL DEFAULT 0,
  checkpoint_time_ns INTEGER NOT NULL DEFAULT 0);

-- A deleted session stays deleted, even if the sqlite3 shell deleted it. Without this table a
-- deleted session would look like one that does not exist yet.
CREATE TABLE deleted_sessions (id TEXT PRIMARY KEY, deleted_at TEXT NOT NULL);
CREATE TRIGGER remember_deleted_sessions AFTER DELETE ON sessions BEGIN
  INSERT OR REPLACE INTO deleted_sessions
  VALUES (old.id, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'));
END;

CREATE TABLE instances (
  id TEXT PRIMARY KEY, pid INTEGER, pid_started TEXT, host TEXT,
  status TEXT NOT NULL DEFAULT 'running', started_at TEXT, last_seen TEXT);

CREATE TABLE instance_sessions (
  id TEXT PRIMARY KEY,
  session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
  instance_id TEXT NOT NULL, pid INTEGER, tty TEXT, started_at TEXT, last_seen TEXT,
  checkpoint_count INTEGER NOT NULL DEFAULT 0, operation_count INTEGER NOT NULL DEFAULT 0,
  status TEXT NOT NULL CHECK (status IN ('active', 'detached')),
  assigned_time_ns INTEGER NOT NULL DEFAULT 0, detached_time_ns INTEGER NOT NULL DEFAULT 0,
  UNIQUE (instance_id, session_id));
CREATE UNIQUE INDEX one_active_session_per_instance
  ON instance_sessions (instance_id) WHERE status = 'active';
CREATE INDEX instance_sessions_by_session ON instance_sessions (session_id);

CREATE TABLE agents (
  id TEXT PRIMARY KEY, swarm_id TEXT NOT NULL REFERENCES swarms (id),
  name TEXT, type TEXT, role TEXT, metadata TEXT,
  status TEXT NOT NULL CHECK (status IN ('spawned', 'running', 'completed', 'failed', 'deleted')),
  created_at TEXT, last_active TEXT, deleted_at TEXT,
  session_id TEXT, tool_use_id TEXT, model TEXT, completed_at TEXT);
CREATE INDEX agents_by_session ON agents (session_id);

-- History keeps its session's id without a key and outlives the session.
CREATE TABLE session_logs (
  id INTEGER PRIMARY KEY, session_id TEXT, log_level TEXT NOT NULL, message TEXT, data TEXT,
  created_at TEXT, job_id TEXT UNIQUE);
CREATE INDEX session_logs_by_session ON session_logs (session_id, created_at);

CREATE TABLE prompts (
  id INTEGER PRIMARY KEY, session_id TEXT, prompt_id TEXT, prompt TEXT, created_at TEXT,
  job_id TEXT UNIQUE);
CREATE TABLE skill_uses (
  id INTEGER PRIMARY KEY, session_id TEXT, skill TEXT NOT NULL, kind TEXT NOT NULL,
  arguments TEXT, success INTEGER NOT NULL, created_at TEXT, job_id TEXT UNIQUE);
CREATE INDEX skill_uses_by_skill ON skill_uses (skill, created_at);

-- What went well without effect, by name: no_session:<operation>, zero_rows:<operation>.
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""

# One row per message of Claude, however many files have it, with the highest counts.
_STEPS["0002 usage"] = """
CREATE TABLE usage (
  message_id TEXT NOT NULL, request_id TEXT NOT NULL,
  session_id TEXT NOT NULL, agent_id TEXT NOT NULL,
  is_sidechain INTEGER NOT NULL, is_replay INTEGER NOT NULL, created_at TEXT NOT NULL,
  model TEXT NOT NULL, speed TEXT NOT NULL, region TEXT NOT NULL,
  input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL,
  cache_write_5m INTEGER NOT NULL, cache_write_1h INTEGER NOT NULL,
  web_searches INTEGER NOT NULL,
  PRIMARY KEY (message_id, request_id));
CREATE INDEX usage_by_time ON usage (created_at);
CREATE INDEX usage_by_session ON usage (session_id);
"""

# The prompt of a use: a typed skill that Claude then calls counts as one use.
_STEPS["0003 skill prompts"] = """
ALTER TABLE skill_uses ADD COLUMN prompt_id TEXT;
"""

# The *_time_ns columns are the times of the newest events for state, progress and session.
_STEPS["0004 tasks"] = """
CREATE TABLE tasks (
  id TEXT PRIMARY KEY, text TEXT,
  status TEXT NOT NULL CHECK (status IN ('open', 'done', 'cancelled')),
  progress TEXT, reason TEXT, session_id TEXT,
  created_at TEXT, updated_at TEXT, progress_at TEXT, finished_at TEXT,
  state_time_ns INTEGER NOT NULL DEFAULT 0, progress_time_ns INTEGER NOT NULL DEFAULT 0,
  assigned_time_ns INTEGER NOT NULL DEFAULT 0);
"""

# History, without a foreign key. One row for each start of a session's totals.
_STEPS["0005 activity"] = """
CREATE TABLE activity (
  session_id TEXT NOT NULL, since_ms INTEGER NOT NULL, last_active_at TEXT NOT NULL,
  calls INTEGER NOT NULL, failed INTEGER NOT NULL, denied INTEGER NOT NULL,
  warned INTEGER NOT NULL, open_calls INTEGER NOT NULL, turn_is_open INTEGER NOT NULL,
  task_id TEXT, profile TEXT,
  PRIMARY KEY (session_id, since_ms));
"""

# Unlike a deleted session, a forgotten one does not come back when it is resumed.
_STEPS["0009 forgotten sessions"] = """
CREATE TABLE forgotten_sessions (id TEXT PRIMARY KEY, forgotten_at TEXT NOT NULL);
"""

# Executed slots of periodic rows; `executions` shows whether a slot ran twice.
_STEPS["0010 slots"] = """
CREATE TABLE slots (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, slot INTEGER NOT NULL, executed_at TEXT NOT NULL,
  executions INTEGER NOT NULL DEFAULT 1, UNIQUE (name, slot));
"""

# Agents are soft-deleted: the row keeps the time, the reason and the run.
_STEPS["0011 cleanups"] = """
ALTER TABLE agents ADD COLUMN began_at TEXT;
ALTER TABLE agents ADD COLUMN deleted_reason TEXT;
ALTER TABLE agents ADD COLUMN deleted_by TEXT;
CREATE INDEX agents_by_deletion ON agents (deleted_by);
CREATE TABLE cleanups (
  id INTEGER PRIMARY KEY, job_id TEXT NOT NULL UNIQUE, cause TEXT NOT NULL,
  created_at TEXT NOT NULL, expired INTEGER NOT NULL, completed INTEGER NOT NULL,
  orphaned INTEGER NOT NULL, kept INTEGER NOT NULL);
"""

# The boot and pid namespace in which a pid is valid, and the end of the process.
_STEPS["0012 machines"] = """
ALTER TABLE instances ADD COLUMN boot TEXT;
ALTER TABLE instances ADD COLUMN pid_space TEXT;
ALTER TABLE instances ADD COLUMN gone_at TEXT;
"""

# An alert without an end is active.
_STEPS["0013 alerts"] = """
CREATE TABLE alerts (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, text TEXT, raised_at TEXT NOT NULL, ended_at TEXT,
  UNIQUE (name, raised_at));
"""

# Each briefing queries the last prompt of a session.
_STEPS["0018 prompts by session"] = """
CREATE INDEX prompts_by_session ON prompts (session_id, created_at);
"""

# History, without a foreign key. One row for each summarised state of a session.
_STEPS["0020 summaries"] = """
CREATE TABLE summaries (
  session_id TEXT NOT NULL, state TEXT NOT NULL, made_at TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('llm', 'plain')),
  provider TEXT NOT NULL, model TEXT NOT NULL, reason TEXT NOT NULL, harness TEXT NOT NULL,
  summary TEXT NOT NULL, key_learnings TEXT NOT NULL, files TEXT NOT NULL, open_ends TEXT NOT NULL,
  requests INTEGER NOT NULL, input_tokens INTEGER, output_tokens INTEGER, cost_usd REAL,
  PRIMARY KEY (session_id, state));
"""

# Memories recalled into a session, and whether they were useful there.
_STEPS["0021 memory ratings"] = """
CREATE TABLE retrievals (
  session_id TEXT NOT NULL, memory TEXT NOT NULL, text TEXT NOT NULL, retrieved_at TEXT NOT NULL,
  PRIMARY KEY (session_id, memory));
CREATE TABLE memory_ratings (
  session_id TEXT NOT NULL, memory TEXT NOT NULL, source TEXT NOT NULL, useful INTEGER NOT NULL,
  rated_at TEXT NOT NULL, PRIMARY KEY (session_id, memory, source));
"""

# History, without a foreign key: hive workers, their runs and statuses, kept after their folders.
_STEPS["0030 hive"] = """
CREATE TABLE hive_workers (
  id TEXT PRIMARY KEY, session_id TEXT, hive TEXT NOT NULL, project TEXT, project_path TEXT,
  task_id TEXT, profile TEXT, respawn_of TEXT, created_at TEXT,
  status TEXT, status_at TEXT, status_ns INTEGER NOT NULL DEFAULT 0,
  archived_at TEXT, deleted_at TEXT);
CREATE TABLE hive_runs (
  worker_id TEXT NOT NULL, session_id TEXT, number INTEGER NOT NULL, kind TEXT NOT NULL,
  machine TEXT, pid INTEGER, pid_started TEXT, started_at TEXT, ended_at TEXT, exit_code INTEGER,
  is_lost INTEGER NOT NULL, outcome TEXT, cost_micro_usd INTEGER NOT NULL,
  PRIMARY KEY (worker_id, number));
CREATE TABLE hive_statuses (
  worker_id TEXT NOT NULL, session_id TEXT, changed_ns INTEGER NOT NULL, sha256 TEXT NOT NULL,
  status TEXT NOT NULL, content TEXT, changed_at TEXT,
  PRIMARY KEY (worker_id, changed_ns, sha256));
"""

# The state of a worker as of the last check: its own status compared with its process.
_STEPS["0031 hive states"] = """
ALTER TABLE hive_workers ADD COLUMN state TEXT;
"""

# The sessions of a profile with the folder of its files; the profile is online while one is open.
# Every version of an identity file is kept; a baseline is the last known content of a folder.
_STEPS["0040 profiles"] = """
CREATE TABLE profiles (
  id TEXT PRIMARY KEY, role TEXT NOT NULL DEFAULT 'worker' CHECK (role IN ('lead', 'worker')),
  write_claude_md INTEGER NOT NULL DEFAULT 0, created_at TEXT, updated_at TEXT);
CREATE TABLE profile_sessions (
  profile_id TEXT NOT NULL, session_id TEXT NOT NULL, swarm_id TEXT, folder TEXT NOT NULL,
  entered_at TEXT NOT NULL, PRIMARY KEY (profile_id, session_id));
CREATE INDEX profile_sessions_by_session ON profile_sessions (session_id);
CREATE TABLE identity_versions (
  id INTEGER PRIMARY KEY, profile_id TEXT NOT NULL, name TEXT NOT NULL, sha256 TEXT NOT NULL,
  text TEXT NOT NULL, change_source TEXT NOT NULL, session_id TEXT, created_at TEXT NOT NULL,
  time_ns INTEGER NOT NULL, job_id TEXT UNIQUE);
CREATE INDEX identity_versions_by_profile ON identity_versions (profile_id, name, time_ns);
CREATE TABLE identity_baselines (
  profile_id TEXT NOT NULL, folder TEXT NOT NULL, name TEXT NOT NULL, sha256 TEXT NOT NULL,
  time_ns INTEGER NOT NULL, PRIMARY KEY (profile_id, folder, name));
"""

# Without it `session show` reads all skill uses to count them.
_STEPS["0050 skill uses by session"] = """
CREATE INDEX skill_uses_by_session ON skill_uses (session_id);
"""

# Views for users who open the database. Their names and columns stay when tables change. A column
# may be added at the end; a migration that changes a table recreates its view. Later migrations
# make the views of sessions and agents.
_STEPS["0060 views"] = """
CREATE VIEW v_prompts AS SELECT session_id, created_at AS at, prompt FROM prompts;

CREATE VIEW v_skill_uses AS SELECT
  session_id, created_at AS at, skill, kind, arguments, success
FROM skill_uses;

CREATE VIEW v_log AS SELECT
  session_id, created_at AS at, log_level AS level, message
FROM session_logs;

CREATE VIEW v_usage AS SELECT
  session_id, agent_id, created_at AS at, model, input AS input_tokens, output AS output_tokens,
  cache_read AS cache_read_tokens, cache_write_5m + cache_write_1h AS cache_write_tokens
FROM usage;

CREATE VIEW v_summaries AS SELECT
  session_id, made_at AS at, kind, model, summary, key_learnings, files, open_ends
FROM summaries;

CREATE VIEW v_tasks AS SELECT
  id AS task_id, session_id, status, text, progress, reason, created_at, updated_at, finished_at
FROM tasks;

CREATE VIEW v_alerts AS SELECT name, text, raised_at, ended_at FROM alerts;
"""

# The writer reads all live agents when an agent ends. Deleted agents stay for a month.
_STEPS["0070 live agents"] = """
CREATE INDEX live_agents ON agents (created_at) WHERE status <> 'deleted';
"""

# Rows and entries imported by `import-db`, `import-queue` and `migrate`, by a hash of their
# content. Unlike `applied` it is never pruned, because a later import would restore the rows.
_STEPS["0080 imported"] = """
CREATE TABLE imported (id TEXT PRIMARY KEY, imported_at TEXT NOT NULL) WITHOUT ROWID;
"""

# A session ends with its last instance. The newest activity and the newest end have separate
# columns. `concluded_ns` is the end for which the follow-up work (summary, cleanup) was done.
_STEPS["0081 session ends"] = """
ALTER TABLE sessions ADD COLUMN turn TEXT;
ALTER TABLE sessions ADD COLUMN last_end_ns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN last_end_reason TEXT;
ALTER TABLE sessions ADD COLUMN process_end_ns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN concluded_ns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN concluded_before_ns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN concluded_by TEXT;
UPDATE sessions SET turn = CASE WHEN status = 'paused' THEN 'paused' ELSE 'active' END;
UPDATE sessions SET last_end_ns = state_time_ns, last_end_reason = end_reason,
  concluded_ns = state_time_ns, state_time_ns = state_time_ns - 1 WHERE status = 'ended';
CREATE INDEX unconcluded_sessions ON sessions (last_end_ns)
  WHERE status = 'ended' AND concluded_ns < last_end_ns;
"""

# Claude Code's own prompts were stored as the user's before 1.1.
_STEPS["0082 users prompts"] = """
DELETE FROM prompts WHERE ltrim(prompt) LIKE '<task-notification>%';
"""

# The cleanup keeps the outcome of an agent and sets only deleted_at. It is unknown whether agents
# that were cleaned up as completed before had failed.
_STEPS["0083 outcomes"] = """
ALTER TABLE agents ADD COLUMN outcome TEXT;
ALTER TABLE agents ADD COLUMN error TEXT;
UPDATE agents SET outcome = status WHERE status IN ('completed', 'failed');
UPDATE agents SET outcome = 'lost' WHERE deleted_reason IN ('orphaned', 'expired');
UPDATE agents SET deleted_at = last_active WHERE status = 'deleted' AND deleted_at IS NULL;
DROP INDEX live_agents;
CREATE INDEX live_agents ON agents (created_at) WHERE deleted_at IS NULL;
DROP VIEW IF EXISTS v_agents;
CREATE VIEW v_agents AS SELECT
  id AS agent_id, session_id, status, type, name, model,
  created_at AS started_at, last_active AS last_active_at, completed_at AS ended_at,
  deleted_at, deleted_reason, outcome, error
FROM agents;
"""

# Totals of a predecessor's skill-usage.json. Its listed uses are rows of `skill_uses` of the kind
# `imported`, and are included in these totals.
_STEPS["0090 imported skills"] = """
CREATE TABLE imported_skills (
  skill TEXT PRIMARY KEY, uses INTEGER NOT NULL, successes INTEGER NOT NULL,
  last_used TEXT NOT NULL, days TEXT NOT NULL);
CREATE TABLE imported_skill_sessions (
  skill TEXT NOT NULL, session_id TEXT NOT NULL, PRIMARY KEY (skill, session_id));
"""

# session.yaml shows the end of the last turn, even during the next turn.
_STEPS["0091 turn ends"] = """
ALTER TABLE sessions ADD COLUMN turn_ended_at TEXT;
UPDATE sessions SET turn_ended_at = paused_at;
"""

# A heartbeat after the end of a turn makes a session active again; a repeated end does not.
_STEPS["0092 work"] = "ALTER TABLE activity ADD COLUMN last_work_at TEXT;"

# Before 1.1 the summary of a compaction was stored with Claude Code's text around it: from `This
# session is being continued` to `Summary:`, and from `If you need` to the end of the paragraph.
_FRAME = "'This session is being continued from a previous conversation'"
_HEADING = "char(10) || 'Summary:' || char(10)"
_TRANSCRIPT = "char(10) || 'If you need specific details from before compaction'"
_OUTCOME = "char(10) || 'Outcome: '"
_STEPS["0093 frames"] = f"""
UPDATE summaries SET summary = substr(summary, 1, instr(summary, {_FRAME}) - 1)
    || substr(summary, instr(summary, {_HEADING}) + 10)
  WHERE kind = 'plain' AND instr(summary, {_FRAME}) > 0
    AND instr(summary, {_HEADING}) > instr(summary, {_FRAME});
UPDATE summaries SET summary =
    rtrim(substr(summary, 1, instr(summary, {_TRANSCRIPT}) - 1), char(10))
    || CASE WHEN instr(summary, {_OUTCOME}) > instr(summary, {_TRANSCRIPT})
      THEN substr(summary, instr(summary, {_OUTCOME})) ELSE '' END
  WHERE kind = 'plain' AND instr(summary, {_TRANSCRIPT}) > 0;
"""

# NULL means Claude Code. Other programs run the hooks of its settings too.
_STEPS["0094 clients"] = """
ALTER TABLE sessions ADD COLUMN client TEXT;
DROP VIEW IF EXISTS v_sessions;
CREATE VIEW v_sessions AS SELECT
  id AS session_id, status, project, objective AS title, model, source,
  created_at AS started_at, paused_at, ended_at, end_reason,
  (SELECT max(last_active_at) FROM activity WHERE session_id = sessions.id) AS last_active_at,
  (SELECT coalesce(sum(calls), 0) FROM activity WHERE session_id = sessions.id) AS calls,
  (SELECT coalesce(sum(failed), 0) FROM activity WHERE session_id = sessions.id) AS failed_calls,
  (SELECT count(*) FROM agents WHERE session_id = sessions.id) AS agents,
  (SELECT count(*) FROM prompts WHERE session_id = sessions.id) AS prompts,
  (SELECT count(*) FROM skill_uses WHERE session_id = sessions.id) AS skill_uses,
  (SELECT summary FROM summaries WHERE session_id = sessions.id
    ORDER BY made_at DESC LIMIT 1) AS summary,
  transcript_path, coalesce(client, 'claude-code') AS client
FROM sessions;
"""

# The model of a session or agent is taken from its messages, because hooks rarely name it.
_STEPS["0095 models"] = """
ALTER TABLE sessions ADD COLUMN effort TEXT;
UPDATE sessions SET model = COALESCE((SELECT model FROM usage
    WHERE session_id = sessions.id AND agent_id = '' AND NOT is_sidechain
    ORDER BY created_at DESC LIMIT 1), model);
UPDATE agents SET model = COALESCE((SELECT model FROM usage
    WHERE session_id = agents.session_id AND agent_id = agents.id
    ORDER BY created_at DESC LIMIT 1), model)
  WHERE COALESCE(model, 'default') = 'default';
"""

# Claude Code's own counts of a session, in addition to the usage of its messages.
_STEPS["0096 cost states"] = """
CREATE TABLE cost_states (
  session_id TEXT NOT NULL, started_ms INTEGER NOT NULL, duration_ms INTEGER NOT NULL,
  model TEXT NOT NULL, created_at TEXT NOT NULL,
  input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL,
  cache_write_5m INTEGER NOT NULL, cache_write_1h INTEGER NOT NULL,
  web_searches INTEGER NOT NULL,
  PRIMARY KEY (session_id, started_ms, duration_ms, model)) WITHOUT ROWID;
"""

# What a session waits for from a person, or NULL.
_STEPS["0097 waits"] = "ALTER TABLE activity ADD COLUMN waits_for TEXT;"

# A session's cost looks up other sessions with the same start time.
_STEPS["0098 cost states by start"] = """
CREATE INDEX cost_states_by_start ON cost_states (started_ms);
"""

# The newest agents of all sessions are listed on the page.
_STEPS["0099 agents by start"] = "CREATE INDEX agents_by_start ON agents (created_at DESC, id);"

_STEPS["0100 usage sums"] = USAGE_SUMS

MIGRATIONS = tuple(_STEPS.items())

_CHECKED = re.findall(r"CHECK \(\w+ IN \(([^)]*)\)", "".join(_STEPS.values()))
# The words that columns with a CHECK accept
WORDS = frozenset(re.findall(r"'(\w+)'", "".join(_CHECKED)))


_RECORDS = """
CREATE TABLE IF NOT EXISTS schema_migrations (id TEXT PRIMARY KEY, applied_at TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS applied (job_id TEXT PRIMARY KEY, applied_at TEXT NOT NULL)
  WITHOUT ROWID;
"""
_NOW = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"


def migrate(connection: sqlite3.Connection, backups: Path) -> None:
    """Bring the schema up to date. Raise StoreError if a newer hivepipe made the database.

    A database with earlier migrations is first copied to the `backups` folder.
    """
    pending = _pending(connection)
    if pending:
        if len(pending) < len(MIGRATIONS):
            _back_up(connection, backups, pending[0][0])
        with transaction(connection):
            for statement in statements(_RECORDS):
                connection.execute(statement)
            # Checked again under the lock: another process may have migrated.
            for name, script in _pending(connection):
                for statement in statements(script):
                    connection.execute(statement)
                connection.execute(f"INSERT INTO schema_migrations VALUES (?, {_NOW})", (name,))


def _pending(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    # Read before `has_records`, because another process may be creating all tables.
    has_tables = _has_tables(connection)
    has_records = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations'"
    ).fetchone()
    done = (
        {row[0] for row in connection.execute("SELECT id FROM schema_migrations")}
        if has_records
        else set()
    )
    if not has_records and has_tables:
        raise StoreError(
            "the database was not made by hivepipe: `hivepipe migrate` takes over the one of the "
            "bash hooks"
        )
    if newer := made_by_newer(done):
        raise StoreError(newer)
    return [(name, script) for name, script in MIGRATIONS if name not in done]


def _has_tables(connection: sqlite3.Connection) -> bool:
    sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    return connection.execute(sql).fetchone() is not None


def made_by_newer(done: set[str]) -> str:
    """Return an error text if `done` has migrations unknown to this hivepipe, else ""."""
    unknown = done - {name for name, _ in MIGRATIONS}
    if not unknown:
        return ""
    return f"the database was made by a newer hivepipe (it has {max(unknown)!r}): upgrade hivepipe"


def made_by_older(done: set[str]) -> str:
    """Return an error text if `done` lacks migrations of this hivepipe, else ""."""
    if not {name for name, _ in MIGRATIONS} - done:
        return ""
    return "an older hivepipe made the database: `hivepipe up -d` or the next event updates it"


def _back_up(connection: sqlite3.Connection, folder: Path, step: str) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    copy = folder / f"hive-before-{step.partition(' ')[0]}-{os.getpid()}.db"
    copy.unlink(missing_ok=True)  # an earlier process with the same pid left it
    os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        connection.execute("VACUUM INTO ?", (str(copy),))
    except BaseException:
        copy.unlink()  # a partial copy would use scarce disk space
        raise
