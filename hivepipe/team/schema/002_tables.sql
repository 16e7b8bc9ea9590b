-- Members, machines, homes and settings
CREATE TABLE hivepipe.settings (name text PRIMARY KEY, value text NOT NULL);
INSERT INTO hivepipe.settings VALUES ('policy_version', '1');

CREATE TABLE hivepipe.members (
  id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL UNIQUE CHECK (name ~ '^[[:alnum:]][[:alnum:]@._ -]{0,99}$'),
  team text NOT NULL DEFAULT '',
  sees text NOT NULL DEFAULT 'self' CHECK (sees IN ('self', 'team', 'all')),
  created_at timestamptz NOT NULL DEFAULT now());

CREATE TABLE hivepipe.machines (
  id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  member int NOT NULL REFERENCES hivepipe.members,
  name text NOT NULL, role name NOT NULL UNIQUE,
  created_at timestamptz NOT NULL DEFAULT now(), revoked_at timestamptz,
  last_seen_at timestamptz, hivepipe text,
  UNIQUE (member, name));

-- A login that reads. Its own `sees` takes precedence over that of its member.
CREATE TABLE hivepipe.readers (
  role name PRIMARY KEY, member int REFERENCES hivepipe.members,
  machine int REFERENCES hivepipe.machines,
  sees text CHECK (sees IN ('self', 'team', 'all')),
  created_at timestamptz NOT NULL DEFAULT now());

-- A machine has a home for each project. `mark` is the version up to which the server has its rows.
CREATE TABLE hivepipe.homes (
  id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  member int NOT NULL REFERENCES hivepipe.members,
  machine int NOT NULL REFERENCES hivepipe.machines,
  uuid text NOT NULL, mark bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now(), shipped_at timestamptz,
  UNIQUE (member, uuid));

CREATE TABLE hivepipe.invites (
  id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  member int NOT NULL REFERENCES hivepipe.members, role name NOT NULL UNIQUE,
  created_by name NOT NULL DEFAULT session_user, created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL, used_at timestamptz, machine int REFERENCES hivepipe.machines);

-- What the team shares of a project. A pattern is a glob over project names; the longest match wins.
CREATE TABLE hivepipe.policies (
  pattern text PRIMARY KEY,
  level text NOT NULL CHECK (level IN ('nothing', 'metadata', 'prompts', 'everything')));

-- Deleted rows: an older state of a row from a backup must not restore it.
CREATE TABLE hivepipe.tombstones (
  home int NOT NULL, tbl text NOT NULL, key text NOT NULL, version bigint NOT NULL,
  PRIMARY KEY (home, tbl, key));
CREATE TABLE hivepipe.forgotten (
  member int NOT NULL, session_id text NOT NULL, at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (member, session_id));

-- Proofs of deletion: counts by place, never contents.
CREATE TABLE hivepipe.deletions (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(),
  by_role name NOT NULL, cause text NOT NULL, member int, session_id text,
  places jsonb NOT NULL);

-- Reads of other members' sessions.
CREATE TABLE hivepipe.audit (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(),
  role name NOT NULL, reader int, owner int NOT NULL, session_id text NOT NULL,
  what text NOT NULL);
CREATE INDEX audit_by_owner ON hivepipe.audit (owner, at);

-- Rows of the machines: the same columns as in a home's database, times as text in UTC.
CREATE TABLE hivepipe.sessions (
  home int NOT NULL, key text NOT NULL, version bigint NOT NULL,
  id text, status text, project text, objective text, model text, effort text, source text,
  client text, swarm_id text, created_at text, updated_at text, paused_at text, ended_at text,
  end_reason text, turn text, turn_ended_at text,
  PRIMARY KEY (home, key));
CREATE INDEX sessions_by_id ON hivepipe.sessions (id);
CREATE INDEX sessions_by_time ON hivepipe.sessions (updated_at);

CREATE TABLE hivepipe.instance_sessions (
  home int NOT NULL, key text NOT NULL, version bigint NOT NULL,
  id text, session_id text, instance_id text, status text, started_at text, last_seen text,
  operation_count bigint, checkpoint_count bigint,
  PRIMARY KEY (home, key));
CREATE INDEX instance_sessions_by_session ON hivepipe.instance_sessions (session_id);

CREATE TABLE hivepipe.agents (
  home int NOT NULL, key text NOT NULL, version bigint NOT NULL,
  id text, session_id text, swarm_id text, name text, type text, role text, status text,
  model text, metadata text, created_at text, began_at text, last_active text, completed_at text,
  deleted_at text, deleted_reason text, outcome text, error text, tool_use_id text,
  PRIMARY KEY (home, key));
CREATE INDEX agents_by_session ON hivepipe.agents (session_id);
CREATE INDEX agents_by_time ON hivepipe.agents (created_at);

CREATE TABLE hivepipe.activity (
  home int NOT NULL, key text NOT NULL, version bigint NOT NULL,
  session_id text, since_ms bigint, last_active_at text, last_work_at text, calls bigint,
  failed bigint, denied bigint, warned bigint, open_calls bigint, turn_is_open bigint,
  waits_for text,
  PRIMARY KEY (home, key));
CREATE INDEX activity_by_session ON hivepipe.activity (session_id);

CREATE TABLE hivepipe.cost_states (
  home int NOT NULL, key text NOT NULL, version bigint NOT NULL,
  session_id text, started_ms bigint, duration_ms bigint, model text, created_at text,
  input bigint, output bigint, cache_read bigint, cache_write_5m bigint, cache_write_1h bigint,
  web_searches bigint,
  PRIMARY KEY (home, key));
CREATE INDEX cost_states_by_session ON hivepipe.cost_states (session_id);

CREATE TABLE hivepipe.summaries (
  home int NOT NULL, key text NOT NULL, version bigint NOT NULL,
  session_id text, state text, made_at text, kind text, provider text, model text, reason text,
  harness text, summary text, key_learnings text, files text, open_ends text,
  requests bigint, input_tokens bigint, output_tokens bigint, cost_usd double precision,
  PRIMARY KEY (home, key));
CREATE INDEX summaries_by_session ON hivepipe.summaries (session_id);

-- History, partitioned by month for retention. The month is also part of the key on the machine.
CREATE TABLE hivepipe.usage (
  home int NOT NULL, key text NOT NULL, version bigint NOT NULL, month date NOT NULL,
  message_id text, request_id text, session_id text, agent_id text, is_sidechain bigint,
  is_replay bigint, created_at text, model text, speed text, region text,
  input bigint, output bigint, cache_read bigint, cache_write_5m bigint, cache_write_1h bigint,
  web_searches bigint,
  PRIMARY KEY (home, key, month)) PARTITION BY LIST (month);
CREATE INDEX usage_by_time ON hivepipe.usage (created_at);
CREATE INDEX usage_by_session ON hivepipe.usage (session_id);

CREATE TABLE hivepipe.prompts (
  home int NOT NULL, key text NOT NULL, version bigint NOT NULL, month date NOT NULL,
  session_id text, prompt_id text, prompt text, created_at text, job_id text,
  PRIMARY KEY (home, key, month)) PARTITION BY LIST (month);
CREATE INDEX prompts_by_session ON hivepipe.prompts (session_id, created_at);

CREATE TABLE hivepipe.skill_uses (
  home int NOT NULL, key text NOT NULL, version bigint NOT NULL, month date NOT NULL,
  session_id text, skill text, kind text, arguments text, success bigint, created_at text,
  prompt_id text, job_id text,
  PRIMARY KEY (home, key, month)) PARTITION BY LIST (month);
CREATE INDEX skill_uses_by_skill ON hivepipe.skill_uses (skill, created_at);
CREATE INDEX skill_uses_by_session ON hivepipe.skill_uses (session_id);

CREATE TABLE hivepipe.session_logs (
  home int NOT NULL, key text NOT NULL, version bigint NOT NULL, month date NOT NULL,
  session_id text, log_level text, message text, data text, created_at text, job_id text,
  PRIMARY KEY (home, key, month)) PARTITION BY LIST (month);
CREATE INDEX session_logs_by_session ON hivepipe.session_logs (session_id, created_at);

-- The tables that machines ship to. If `holds_text`, a reader gets the rows of other members only
-- from functions that write to the audit table.
CREATE TABLE hivepipe.shared_tables (
  tbl text PRIMARY KEY, by_month boolean NOT NULL, holds_text boolean NOT NULL,
  session_column text NOT NULL, time_column text NOT NULL);
INSERT INTO hivepipe.shared_tables VALUES
  ('sessions', false, false, 'id', 'updated_at'),
  ('instance_sessions', false, false, 'session_id', 'last_seen'),
  ('agents', false, false, 'session_id', 'created_at'),
  ('activity', false, false, 'session_id', 'last_active_at'),
  ('cost_states', false, false, 'session_id', 'created_at'),
  ('summaries', false, true, 'session_id', 'made_at'),
  ('usage', true, false, 'session_id', 'created_at'),
  ('prompts', true, true, 'session_id', 'created_at'),
  ('skill_uses', true, false, 'session_id', 'created_at'),
  ('session_logs', true, true, 'session_id', 'created_at');

DO $$
DECLARE
  each text;
BEGIN
  FOR each IN SELECT tbl FROM hivepipe.shared_tables WHERE by_month LOOP
    EXECUTE format('CREATE TABLE hivepipe.%I PARTITION OF hivepipe.%I DEFAULT',
      each || '_other', each);
  END LOOP;
END
$$;
