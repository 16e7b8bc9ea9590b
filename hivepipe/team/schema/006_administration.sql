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

-- Set or remove (NULL) the team's level of a pattern. What a stricter level does not allow is
-- deleted at once. Machines must read the new policies before their next batch is stored.
CREATE FUNCTION hivepipe.set_policy(_pattern text, _level text) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF _pattern !~ '^[^[:cntrl:]]{1,200}$' OR _pattern ~ '[\[\]]' THEN
    RAISE invalid_parameter_value USING MESSAGE = 'a pattern is a name of a project with * and ?';
  END IF;
  UPDATE hivepipe.settings SET value = (value::bigint + 1)::text WHERE name = 'policy_version';
  IF _level IS NULL THEN
    DELETE FROM hivepipe.policies WHERE pattern = _pattern;
  ELSE
    INSERT INTO hivepipe.policies VALUES (_pattern, _level)
      ON CONFLICT (pattern) DO UPDATE SET level = excluded.level;
  END IF;
  RETURN hivepipe.remove_unshared();
END
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

CREATE FUNCTION hivepipe.remove_unshared() RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  each record;
  gone bigint;
  places jsonb := '{}';
BEGIN
  CREATE TEMP TABLE unshared ON COMMIT DROP AS
    SELECT home, id, hivepipe.rank(level) AS rank FROM hivepipe.sessions, LATERAL (
      SELECT hivepipe.team_level(project) AS level) l WHERE level <> 'everything';
  CREATE INDEX ON pg_temp.unshared (home, id);
  FOR each IN SELECT t.*, (SELECT string_agg(format('%I = NULL', name), ', ')
      FROM hivepipe.hidden_columns c WHERE c.tbl = t.tbl) AS sets
    FROM hivepipe.shared_tables t ORDER BY tbl = 'sessions'
  LOOP
    EXECUTE format('DELETE FROM hivepipe.%I t USING pg_temp.unshared u
      WHERE t.home = u.home AND t.%I = u.id AND u.rank < $1', each.tbl, each.session_column)
      USING hivepipe.rank(each.level);
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF gone > 0 THEN
      places := places || jsonb_build_object('table ' || each.tbl, gone);
    END IF;
    IF each.sets IS NOT NULL THEN
      EXECUTE format('UPDATE hivepipe.%I t SET %s FROM pg_temp.unshared u
        WHERE t.home = u.home AND t.%I = u.id AND u.rank < 3', each.tbl, each.sets,
        each.session_column);
    END IF;
  END LOOP;
  DROP TABLE pg_temp.unshared;
  IF places <> '{}' THEN
    INSERT INTO hivepipe.deletions (by_role, cause, places)
      VALUES (session_user, 'a stricter policy', places);
  END IF;
  RETURN places;
END
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

-- Revoke a machine (MACHINE or MEMBER/MACHINE), or the open invites of a member.
CREATE FUNCTION hivepipe.revoke(_what text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  found int[];
  each record;
  number int := 0;
BEGIN
  SELECT array_agg(c.id) INTO found FROM hivepipe.machines c JOIN hivepipe.members m
    ON m.id = c.member WHERE c.revoked_at IS NULL AND (c.name = _what OR m.name || '/' || c.name = _what);
  IF cardinality(found) > 1 THEN
    RAISE invalid_parameter_value USING MESSAGE = 'several members have a machine of this name: MEMBER/MACHINE';
  END IF;
  IF found IS NOT NULL THEN
    PERFORM hivepipe.end_machine(found[1]);
    RETURN 'machine ' || _what;
  END IF;
  FOR each IN SELECT i.role FROM hivepipe.invites i JOIN hivepipe.members m ON m.id = i.member
    WHERE i.used_at IS NULL AND m.name = _what
  LOOP
    DELETE FROM hivepipe.invites WHERE role = each.role;
    EXECUTE format('DROP ROLE %I', each.role);
    number := number + 1;
  END LOOP;
  RETURN CASE WHEN number > 0 THEN number || ' open invites of ' || _what END;
END
$$;

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

-- Delete a member: rows, homes, logins, name. Audit entries of its reads stay without a name.
CREATE FUNCTION hivepipe.forget_member(_name text) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  number int;
  each record;
  places jsonb;
BEGIN
  SELECT id INTO number FROM hivepipe.members WHERE name = _name FOR UPDATE;
  IF number IS NULL THEN
    RAISE invalid_parameter_value USING MESSAGE = 'there is no member of this name';
  END IF;
  places := hivepipe.delete_homes(ARRAY(SELECT id FROM hivepipe.homes WHERE member = number));
  FOR each IN SELECT r.role FROM hivepipe.readers r WHERE r.member = number
    UNION SELECT m.role FROM hivepipe.machines m WHERE m.member = number
    UNION SELECT i.role FROM hivepipe.invites i WHERE i.member = number
  LOOP
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = each.role) THEN
      EXECUTE format('DROP ROLE %I', each.role);
      places := hivepipe.added(places, '{"logins": 1}');
    END IF;
  END LOOP;
  DELETE FROM hivepipe.readers WHERE member = number;
  DELETE FROM hivepipe.invites WHERE member = number;
  DELETE FROM hivepipe.machines WHERE member = number;
  DELETE FROM hivepipe.forgotten WHERE member = number;
  DELETE FROM hivepipe.audit WHERE owner = number;
  UPDATE hivepipe.audit SET reader = NULL WHERE reader = number;
  DELETE FROM hivepipe.members WHERE id = number;
  RETURN hivepipe.proof('forgotten by an administrator', number, NULL, places);
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
GRANT EXECUTE ON FUNCTION hivepipe.set_policy(text, text), hivepipe.team_policies(),
  hivepipe.revoke(text), hivepipe.forget_session(text), hivepipe.forget_member(text)
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
