-- The schema of hive.db: an append-only list of steps. A line `-- step <name>` begins a step, and
-- the names are in the order of the steps. `hivepipe.db.migrations` executes each step once.
--
-- Times are TEXT, UTC with milliseconds. A `*_time_ns` column is the time of the event that set the
-- related columns. So an older event that arrives late never replaces a newer one.

-- step 0001 initial
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

-- step 0002 usage
-- One row per message of Claude, however many files have it, with the highest counts.
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

-- step 0003 skill prompts
-- The prompt of a use: a typed skill that Claude then calls counts as one use.
ALTER TABLE skill_uses ADD COLUMN prompt_id TEXT;

-- step 0004 tasks
-- The *_time_ns columns are the times of the newest events for state, progress and session.
CREATE TABLE tasks (
  id TEXT PRIMARY KEY, text TEXT,
  status TEXT NOT NULL CHECK (status IN ('open', 'done', 'cancelled')),
  progress TEXT, reason TEXT, session_id TEXT,
  created_at TEXT, updated_at TEXT, progress_at TEXT, finished_at TEXT,
  state_time_ns INTEGER NOT NULL DEFAULT 0, progress_time_ns INTEGER NOT NULL DEFAULT 0,
  assigned_time_ns INTEGER NOT NULL DEFAULT 0);

-- step 0005 activity
-- History, without a foreign key. One row for each start of a session's totals.
CREATE TABLE activity (
  session_id TEXT NOT NULL, since_ms INTEGER NOT NULL, last_active_at TEXT NOT NULL,
  calls INTEGER NOT NULL, failed INTEGER NOT NULL, denied INTEGER NOT NULL,
  warned INTEGER NOT NULL, open_calls INTEGER NOT NULL, turn_is_open INTEGER NOT NULL,
  task_id TEXT, profile TEXT,
  PRIMARY KEY (session_id, since_ms));

-- step 0009 forgotten sessions
-- Unlike a deleted session, a forgotten one does not come back when it is resumed.
CREATE TABLE forgotten_sessions (id TEXT PRIMARY KEY, forgotten_at TEXT NOT NULL);

-- step 0010 slots
-- Executed slots of periodic rows; `executions` shows whether a slot ran twice.
CREATE TABLE slots (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, slot INTEGER NOT NULL, executed_at TEXT NOT NULL,
  executions INTEGER NOT NULL DEFAULT 1, UNIQUE (name, slot));

-- step 0011 cleanups
-- Agents are soft-deleted: the row keeps the time, the reason and the run.
ALTER TABLE agents ADD COLUMN began_at TEXT;
ALTER TABLE agents ADD COLUMN deleted_reason TEXT;
ALTER TABLE agents ADD COLUMN deleted_by TEXT;
CREATE INDEX agents_by_deletion ON agents (deleted_by);
CREATE TABLE cleanups (
  id INTEGER PRIMARY KEY, job_id TEXT NOT NULL UNIQUE, cause TEXT NOT NULL,
  created_at TEXT NOT NULL, expired INTEGER NOT NULL, completed INTEGER NOT NULL,
  orphaned INTEGER NOT NULL, kept INTEGER NOT NULL);

-- step 0012 machines
-- The boot and pid namespace in which a pid is valid, and the end of the process.
ALTER TABLE instances ADD COLUMN boot TEXT;
ALTER TABLE instances ADD COLUMN pid_space TEXT;
ALTER TABLE instances ADD COLUMN gone_at TEXT;

-- step 0013 alerts
-- An alert without an end is active.
CREATE TABLE alerts (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, text TEXT, raised_at TEXT NOT NULL, ended_at TEXT,
  UNIQUE (name, raised_at));

-- step 0018 prompts by session
-- Each briefing queries the last prompt of a session.
CREATE INDEX prompts_by_session ON prompts (session_id, created_at);

-- step 0020 summaries
-- History, without a foreign key. One row for each summarised state of a session.
CREATE TABLE summaries (
  session_id TEXT NOT NULL, state TEXT NOT NULL, made_at TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('llm', 'plain')),
  provider TEXT NOT NULL, model TEXT NOT NULL, reason TEXT NOT NULL, harness TEXT NOT NULL,
  summary TEXT NOT NULL, key_learnings TEXT NOT NULL, files TEXT NOT NULL, open_ends TEXT NOT NULL,
  requests INTEGER NOT NULL, input_tokens INTEGER, output_tokens INTEGER, cost_usd REAL,
  PRIMARY KEY (session_id, state));

-- step 0021 memory ratings
-- Memories recalled into a session, and whether they were useful there.
CREATE TABLE retrievals (
  session_id TEXT NOT NULL, memory TEXT NOT NULL, text TEXT NOT NULL, retrieved_at TEXT NOT NULL,
  PRIMARY KEY (session_id, memory));
CREATE TABLE memory_ratings (
  session_id TEXT NOT NULL, memory TEXT NOT NULL, source TEXT NOT NULL, useful INTEGER NOT NULL,
  rated_at TEXT NOT NULL, PRIMARY KEY (session_id, memory, source));

-- step 0030 hive
-- History, without a foreign key: hive workers, their runs and statuses, kept after their folders.
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

-- step 0031 hive states
-- The state of a worker as of the last check: its own status compared with its process.
ALTER TABLE hive_workers ADD COLUMN state TEXT;

-- step 0040 profiles
-- The sessions of a profile with the folder of its files; the profile is online while one is open.
-- Every version of an identity file is kept; a baseline is the last known content of a folder.
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

-- step 0050 skill uses by session
-- Without it `session show` reads all skill uses to count them.
CREATE INDEX skill_uses_by_session ON skill_uses (session_id);

-- step 0060 views
-- Views for users who open the database. Their names and columns stay when tables change. A column
-- may be added at the end; a migration that changes a table recreates its view. Later migrations
-- make the views of sessions and agents.
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

-- step 0070 live agents
-- The writer reads all live agents when an agent ends. Deleted agents stay for a month.
CREATE INDEX live_agents ON agents (created_at) WHERE status <> 'deleted';

-- step 0080 imported
-- Rows and entries imported by `import-db`, `import-queue` and `migrate`, by a hash of their
-- content. Unlike `applied` it is never pruned, because a later import would restore the rows.
CREATE TABLE imported (id TEXT PRIMARY KEY, imported_at TEXT NOT NULL) WITHOUT ROWID;

-- step 0081 session ends
-- A session ends with its last instance. The newest activity and the newest end have separate
-- columns. `concluded_ns` is the end for which the follow-up work (summary, cleanup) was done.
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

-- step 0082 users prompts
-- Claude Code's own prompts were stored as the user's before 1.1.
DELETE FROM prompts WHERE ltrim(prompt) LIKE '<task-notification>%';

-- step 0083 outcomes
-- The cleanup keeps the outcome of an agent and sets only deleted_at. It is unknown whether agents
-- that were cleaned up as completed before had failed.
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

-- step 0090 imported skills
-- Totals of a predecessor's skill-usage.json. Its listed uses are rows of `skill_uses` of the kind
-- `imported`, and are included in these totals.
CREATE TABLE imported_skills (
  skill TEXT PRIMARY KEY, uses INTEGER NOT NULL, successes INTEGER NOT NULL,
  last_used TEXT NOT NULL, days TEXT NOT NULL);
CREATE TABLE imported_skill_sessions (
  skill TEXT NOT NULL, session_id TEXT NOT NULL, PRIMARY KEY (skill, session_id));

-- step 0091 turn ends
-- session.yaml shows the end of the last turn, even during the next turn.
ALTER TABLE sessions ADD COLUMN turn_ended_at TEXT;
UPDATE sessions SET turn_ended_at = paused_at;

-- step 0092 work
-- A heartbeat after the end of a turn makes a session active again; a repeated end does not.
ALTER TABLE activity ADD COLUMN last_work_at TEXT;

-- step 0093 frames
-- Before 1.1 the summary of a compaction was stored with Claude Code's text around it: from `This
-- session is being continued` to `Summary:`, and from `If you need` to the end of the paragraph.
UPDATE summaries SET summary =
    substr(summary, 1,
      instr(summary, 'This session is being continued from a previous conversation') - 1)
    || substr(summary, instr(summary, char(10) || 'Summary:' || char(10)) + 10)
  WHERE kind = 'plain'
    AND instr(summary, 'This session is being continued from a previous conversation') > 0
    AND instr(summary, char(10) || 'Summary:' || char(10))
      > instr(summary, 'This session is being continued from a previous conversation');
UPDATE summaries SET summary =
    rtrim(substr(summary, 1,
      instr(summary, char(10) || 'If you need specific details from before compaction') - 1),
      char(10))
    || CASE WHEN instr(summary, char(10) || 'Outcome: ')
        > instr(summary, char(10) || 'If you need specific details from before compaction')
      THEN substr(summary, instr(summary, char(10) || 'Outcome: ')) ELSE '' END
  WHERE kind = 'plain'
    AND instr(summary, char(10) || 'If you need specific details from before compaction') > 0;

-- step 0094 clients
-- NULL means Claude Code. Other programs run the hooks of its settings too.
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

-- step 0095 models
-- The model of a session or agent is taken from its messages, because hooks rarely name it.
ALTER TABLE sessions ADD COLUMN effort TEXT;
UPDATE sessions SET model = COALESCE((SELECT model FROM usage
    WHERE session_id = sessions.id AND agent_id = '' AND NOT is_sidechain
    ORDER BY created_at DESC LIMIT 1), model);
UPDATE agents SET model = COALESCE((SELECT model FROM usage
    WHERE session_id = agents.session_id AND agent_id = agents.id
    ORDER BY created_at DESC LIMIT 1), model)
  WHERE COALESCE(model, 'default') = 'default';

-- step 0096 cost states
-- Claude Code's own counts of a session, in addition to the usage of its messages.
CREATE TABLE cost_states (
  session_id TEXT NOT NULL, started_ms INTEGER NOT NULL, duration_ms INTEGER NOT NULL,
  model TEXT NOT NULL, created_at TEXT NOT NULL,
  input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL,
  cache_write_5m INTEGER NOT NULL, cache_write_1h INTEGER NOT NULL,
  web_searches INTEGER NOT NULL,
  PRIMARY KEY (session_id, started_ms, duration_ms, model)) WITHOUT ROWID;

-- step 0097 waits
-- What a session waits for from a person, or NULL.
ALTER TABLE activity ADD COLUMN waits_for TEXT;

-- step 0098 cost states by start
-- A session's cost looks up other sessions with the same start time.
CREATE INDEX cost_states_by_start ON cost_states (started_ms);

-- step 0099 agents by start
-- The newest agents of all sessions are listed on the page.
CREATE INDEX agents_by_start ON agents (created_at DESC, id);

-- step 0100 usage sums
-- Sums of the stored usage, updated by triggers. So a page need not add up all messages. A sum
-- covers the messages of one session, agent and rate within a quarter of an hour, because the days
-- of all time zones begin at a quarter. The table `repeated_messages` lists messages that have rows
-- of several requests. `hivepipe.db.usage_sums` computes the same columns.
CREATE TABLE usage_sums (
  session_id TEXT NOT NULL, began TEXT NOT NULL, agent_id TEXT NOT NULL, model TEXT NOT NULL,
  speed TEXT NOT NULL, region TEXT NOT NULL, band INTEGER NOT NULL, messages INTEGER NOT NULL,
  input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL,
  cache_write_5m INTEGER NOT NULL, cache_write_1h INTEGER NOT NULL,
  web_searches INTEGER NOT NULL,
  PRIMARY KEY (session_id, began, agent_id, model, speed, region, band)) WITHOUT ROWID;
CREATE INDEX usage_sums_by_time ON usage_sums (began);
CREATE TABLE repeated_messages (message_id TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT INTO usage_sums
  SELECT session_id, began, agent_id, model, speed, region, band, sum(messages), sum(input),
    sum(output), sum(cache_read), sum(cache_write_5m), sum(cache_write_1h), sum(web_searches)
  FROM (SELECT usage.session_id AS session_id,
    CASE WHEN usage.created_at GLOB '*-*-*T??:??:*'
      THEN substr(usage.created_at, 1, 14)
        || printf('%02d', CAST(substr(usage.created_at, 15, 2) AS INT) / 15 * 15) || ':00.000Z'
      ELSE usage.created_at END AS began,
    usage.agent_id AS agent_id, usage.model AS model, usage.speed AS speed, usage.region AS region,
    CASE
      WHEN usage.input + usage.cache_read + usage.cache_write_5m + usage.cache_write_1h > 200000
        THEN 200000
      WHEN usage.input + usage.cache_read + usage.cache_write_5m + usage.cache_write_1h > 100000
        THEN 100000
      ELSE 0 END AS band,
    1 AS messages, usage.input, usage.output, usage.cache_read,
    usage.cache_write_5m, usage.cache_write_1h, usage.web_searches FROM usage)
  GROUP BY session_id, began, agent_id, model, speed, region, band;
INSERT INTO repeated_messages
  SELECT message_id FROM usage GROUP BY message_id HAVING count(*) > 1 AND max(is_sidechain);
CREATE TRIGGER usage_added AFTER INSERT ON usage BEGIN
  INSERT INTO usage_sums SELECT new.session_id AS session_id,
    CASE WHEN new.created_at GLOB '*-*-*T??:??:*'
      THEN substr(new.created_at, 1, 14)
        || printf('%02d', CAST(substr(new.created_at, 15, 2) AS INT) / 15 * 15) || ':00.000Z'
      ELSE new.created_at END AS began,
    new.agent_id AS agent_id, new.model AS model, new.speed AS speed, new.region AS region,
    CASE
      WHEN new.input + new.cache_read + new.cache_write_5m + new.cache_write_1h > 200000
        THEN 200000
      WHEN new.input + new.cache_read + new.cache_write_5m + new.cache_write_1h > 100000
        THEN 100000
      ELSE 0 END AS band,
    1 AS messages, new.input, new.output, new.cache_read,
    new.cache_write_5m, new.cache_write_1h, new.web_searches
  WHERE true
    ON CONFLICT (session_id, began, agent_id, model, speed, region, band) DO UPDATE SET
      messages = messages + 1,
      input = input + excluded.input,
      output = output + excluded.output,
      cache_read = cache_read + excluded.cache_read,
      cache_write_5m = cache_write_5m + excluded.cache_write_5m,
      cache_write_1h = cache_write_1h + excluded.cache_write_1h,
      web_searches = web_searches + excluded.web_searches;
  INSERT INTO repeated_messages SELECT new.message_id WHERE EXISTS (
      SELECT 1 FROM usage WHERE message_id = new.message_id AND request_id <> new.request_id
        AND (is_sidechain OR new.is_sidechain))
    ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER usage_removed AFTER DELETE ON usage BEGIN
  UPDATE usage_sums SET messages = messages - 1,
      input = input - old.input,
      output = output - old.output,
      cache_read = cache_read - old.cache_read,
      cache_write_5m = cache_write_5m - old.cache_write_5m,
      cache_write_1h = cache_write_1h - old.cache_write_1h,
      web_searches = web_searches - old.web_searches
  WHERE session_id = old.session_id
    AND began = CASE WHEN old.created_at GLOB '*-*-*T??:??:*'
      THEN substr(old.created_at, 1, 14)
        || printf('%02d', CAST(substr(old.created_at, 15, 2) AS INT) / 15 * 15) || ':00.000Z'
      ELSE old.created_at END
    AND agent_id = old.agent_id AND model = old.model AND speed = old.speed
    AND region = old.region AND band = CASE
      WHEN old.input + old.cache_read + old.cache_write_5m + old.cache_write_1h > 200000
        THEN 200000
      WHEN old.input + old.cache_read + old.cache_write_5m + old.cache_write_1h > 100000
        THEN 100000
      ELSE 0 END;
  DELETE FROM usage_sums WHERE messages = 0 AND session_id = old.session_id
    AND began = CASE WHEN old.created_at GLOB '*-*-*T??:??:*'
      THEN substr(old.created_at, 1, 14)
        || printf('%02d', CAST(substr(old.created_at, 15, 2) AS INT) / 15 * 15) || ':00.000Z'
      ELSE old.created_at END
    AND agent_id = old.agent_id AND model = old.model AND speed = old.speed
    AND region = old.region AND band = CASE
      WHEN old.input + old.cache_read + old.cache_write_5m + old.cache_write_1h > 200000
        THEN 200000
      WHEN old.input + old.cache_read + old.cache_write_5m + old.cache_write_1h > 100000
        THEN 100000
      ELSE 0 END;
END;
CREATE TRIGGER usage_changed AFTER UPDATE ON usage BEGIN
  UPDATE usage_sums SET messages = messages - 1,
      input = input - old.input,
      output = output - old.output,
      cache_read = cache_read - old.cache_read,
      cache_write_5m = cache_write_5m - old.cache_write_5m,
      cache_write_1h = cache_write_1h - old.cache_write_1h,
      web_searches = web_searches - old.web_searches
  WHERE session_id = old.session_id
    AND began = CASE WHEN old.created_at GLOB '*-*-*T??:??:*'
      THEN substr(old.created_at, 1, 14)
        || printf('%02d', CAST(substr(old.created_at, 15, 2) AS INT) / 15 * 15) || ':00.000Z'
      ELSE old.created_at END
    AND agent_id = old.agent_id AND model = old.model AND speed = old.speed
    AND region = old.region AND band = CASE
      WHEN old.input + old.cache_read + old.cache_write_5m + old.cache_write_1h > 200000
        THEN 200000
      WHEN old.input + old.cache_read + old.cache_write_5m + old.cache_write_1h > 100000
        THEN 100000
      ELSE 0 END;
  DELETE FROM usage_sums WHERE messages = 0 AND session_id = old.session_id
    AND began = CASE WHEN old.created_at GLOB '*-*-*T??:??:*'
      THEN substr(old.created_at, 1, 14)
        || printf('%02d', CAST(substr(old.created_at, 15, 2) AS INT) / 15 * 15) || ':00.000Z'
      ELSE old.created_at END
    AND agent_id = old.agent_id AND model = old.model AND speed = old.speed
    AND region = old.region AND band = CASE
      WHEN old.input + old.cache_read + old.cache_write_5m + old.cache_write_1h > 200000
        THEN 200000
      WHEN old.input + old.cache_read + old.cache_write_5m + old.cache_write_1h > 100000
        THEN 100000
      ELSE 0 END;
  INSERT INTO usage_sums SELECT new.session_id AS session_id,
    CASE WHEN new.created_at GLOB '*-*-*T??:??:*'
      THEN substr(new.created_at, 1, 14)
        || printf('%02d', CAST(substr(new.created_at, 15, 2) AS INT) / 15 * 15) || ':00.000Z'
      ELSE new.created_at END AS began,
    new.agent_id AS agent_id, new.model AS model, new.speed AS speed, new.region AS region,
    CASE
      WHEN new.input + new.cache_read + new.cache_write_5m + new.cache_write_1h > 200000
        THEN 200000
      WHEN new.input + new.cache_read + new.cache_write_5m + new.cache_write_1h > 100000
        THEN 100000
      ELSE 0 END AS band,
    1 AS messages, new.input, new.output, new.cache_read,
    new.cache_write_5m, new.cache_write_1h, new.web_searches
  WHERE true
    ON CONFLICT (session_id, began, agent_id, model, speed, region, band) DO UPDATE SET
      messages = messages + 1,
      input = input + excluded.input,
      output = output + excluded.output,
      cache_read = cache_read + excluded.cache_read,
      cache_write_5m = cache_write_5m + excluded.cache_write_5m,
      cache_write_1h = cache_write_1h + excluded.cache_write_1h,
      web_searches = web_searches + excluded.web_searches;
  INSERT INTO repeated_messages SELECT new.message_id WHERE EXISTS (
      SELECT 1 FROM usage WHERE message_id = new.message_id AND request_id <> new.request_id
        AND (is_sidechain OR new.is_sidechain))
    ON CONFLICT DO NOTHING;
END;

-- step 0101 agents by start and type
-- The page filters by type. A type in the index spares reading the rows of other types.
DROP INDEX agents_by_start;
CREATE INDEX agents_by_start ON agents (created_at DESC, id, type);
