-- Administration: setting policies, listing members, revoking, forgetting.

CREATE FUNCTION hivepipe.terms_of_machine() RETURNS jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  me hivepipe.machines := hivepipe.this_machine();
BEGIN
  RETURN hivepipe.terms(me.member) || jsonb_build_object('machine', me.name);
END
$$;

-- Like a shell's glob over a whole name: `*` and `?`.
CREATE FUNCTION hivepipe.fits(_name text, _pattern text) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(_name, '') ~ ('^(?:' || replace(replace(
    regexp_replace(_pattern, '([.^$+(){}|\\\[\]])', '\\\1', 'g'), '*', '.*'), '?', '.') || ')$')
$$;

CREATE FUNCTION hivepipe.team_level(_project text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce((SELECT level FROM hivepipe.policies WHERE hivepipe.fits(_project, pattern)
    ORDER BY length(pattern) DESC, pattern DESC LIMIT 1), 'metadata')
$$;

-- The columns that hold texts, and the level that shares them.
CREATE TABLE hivepipe.hidden_columns (
  tbl text NOT NULL REFERENCES hivepipe.shared_tables, name text NOT NULL,
  PRIMARY KEY (tbl, name));
INSERT INTO hivepipe.hidden_columns VALUES
  ('sessions', 'objective'), ('agents', 'name'), ('agents', 'role'), ('agents', 'error'),
  ('skill_uses', 'arguments');
ALTER TABLE hivepipe.shared_tables ADD COLUMN level text NOT NULL DEFAULT 'metadata';
UPDATE hivepipe.shared_tables SET level = 'prompts' WHERE tbl IN ('prompts', 'summaries');
UPDATE hivepipe.shared_tables SET level = 'everything' WHERE tbl = 'session_logs';

CREATE FUNCTION hivepipe.rank(_level text) RETURNS int
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT array_position(ARRAY['nothing', 'metadata', 'prompts', 'everything'], _level)
$$;

CREATE VIEW hivepipe.v_members AS
  SELECT m.name AS member, m.team, m.sees, c.name AS machine, c.hivepipe,
    CASE WHEN c.revoked_at IS NULL THEN 'joined' ELSE 'revoked' END AS state,
    c.last_seen_at AS seen_at, (SELECT count(*) FROM hivepipe.homes WHERE machine = c.id) AS homes
  FROM hivepipe.members m JOIN hivepipe.machines c ON c.member = m.id
  UNION ALL
  SELECT m.name, m.team, m.sees, '', '',
    CASE WHEN i.expires_at < now() THEN 'invite expired' ELSE 'invited' END, NULL, 0
  FROM hivepipe.invites i JOIN hivepipe.members m ON m.id = i.member WHERE i.used_at IS NULL
  ORDER BY 1, 4;
GRANT SELECT ON hivepipe.v_members TO hivepipe_admin;

-- Delete the sessions of this id of all members; return the proof.
CREATE FUNCTION hivepipe.forget_session(_session text) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  each int;
  places jsonb := '{}';
BEGIN
  FOR each IN SELECT id FROM hivepipe.members LOOP
    places := hivepipe.added(places, hivepipe.delete_session(each, _session));
  END LOOP;
  RETURN hivepipe.proof('forgotten by an administrator', NULL, _session, places);
END
$$;

CREATE FUNCTION hivepipe.added(_one jsonb, _other jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(jsonb_object_agg(key, number), '{}') FROM (
    SELECT key, sum(value::bigint) AS number FROM (
      SELECT * FROM jsonb_each_text(_one) UNION ALL SELECT * FROM jsonb_each_text(_other)) p
    GROUP BY key) s
$$;

CREATE FUNCTION hivepipe.proof(_cause text, _member int, _session text, _places jsonb) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  made hivepipe.deletions;
BEGIN
  INSERT INTO hivepipe.deletions (by_role, cause, member, session_id, places)
    VALUES (session_user, _cause, _member, _session, _places) RETURNING * INTO made;
  RETURN to_jsonb(made);
END
$$;

GRANT EXECUTE ON FUNCTION hivepipe.terms_of_machine() TO hivepipe_machine;
GRANT EXECUTE ON FUNCTION hivepipe.team_policies(), hivepipe.forget_session(text)
  TO hivepipe_admin;

CREATE FUNCTION hivepipe.sessions_beginning(_start text) RETURNS text[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(array_agg(DISTINCT id), '{}') FROM hivepipe.sessions
  WHERE length(_start) >= 4 AND starts_with(id, _start)
$$;

-- Rows of a member in one table, exported for the member; recorded in the audit table.
CREATE FUNCTION hivepipe.export_member(_member int, _tbl text) RETURNS SETOF jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF _tbl = 'members' THEN
    INSERT INTO hivepipe.audit (role, owner, session_id, what)
      VALUES (session_user, _member, '*', 'export');
    RETURN QUERY SELECT to_jsonb(m) FROM hivepipe.members m WHERE id = _member;
  ELSIF _tbl IN ('machines', 'homes') THEN
    RETURN QUERY EXECUTE format('SELECT to_jsonb(t) FROM hivepipe.%I t WHERE member = $1', _tbl)
      USING _member;
  ELSIF _tbl = 'audit' THEN
    RETURN QUERY SELECT to_jsonb(a) FROM hivepipe.audit a WHERE owner = _member OR reader = _member;
  ELSIF EXISTS (SELECT FROM hivepipe.shared_tables WHERE tbl = _tbl) THEN
    RETURN QUERY EXECUTE format('SELECT to_jsonb(t) FROM hivepipe.%I t WHERE home IN (
      SELECT id FROM hivepipe.homes WHERE member = $1)', _tbl) USING _member;
  END IF;
END
$$;

GRANT EXECUTE ON FUNCTION hivepipe.sessions_beginning(text), hivepipe.export_member(int, text)
  TO hivepipe_admin;
