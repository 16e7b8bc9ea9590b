-- A deletion waits for the batches on their way, so that it also deletes their rows, and later batches
-- wait for it: `ship` and `add_segment` lock the row of their home before they read policies and
-- forgotten sessions. A function that locks several homes locks them in the order of their ids, so
-- that no two of them wait for each other. A change of policies locks all homes.

-- Store a batch of one home and its new mark in one transaction; return the server's mark.
--   _since            the mark that the machine knows; nothing is stored if the server's is different
--   _rows             {table: {column: [value of each row, ...]}}; unknown names are ignored
--   _gone             {table: [{key, version, month}, ...]}
--   _if_absent        for a restored machine: existing rows are not changed
--   _policy_version   nothing is stored if it is outdated: the machine must read the policies first
CREATE OR REPLACE FUNCTION hivepipe.ship(_home text, _since bigint, _upto bigint, _rows jsonb, _gone jsonb,
  _if_absent boolean, _policy_version bigint) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  me hivepipe.machines := hivepipe.this_machine();
  at hivepipe.homes;
  policy bigint;
BEGIN
  IF _rows -> 'forgotten_sessions' <> '[]' THEN
    PERFORM FROM hivepipe.homes WHERE member = me.member ORDER BY id FOR UPDATE;
  END IF;
  SELECT * INTO at FROM hivepipe.homes WHERE member = me.member AND uuid = _home FOR UPDATE;
  policy := hivepipe.policy_version();
  IF at.id IS NULL OR at.mark <> _since OR policy <> _policy_version THEN
    RETURN jsonb_build_object('mark', at.mark, 'policy_version', policy, 'stored', false);
  END IF;
  PERFORM hivepipe.store(at.id, me.member, _rows, _if_absent);
  PERFORM hivepipe.forget_shipped(at.id, me.member, _rows -> 'forgotten_sessions');
  PERFORM hivepipe.bury(at.id, _gone);
  UPDATE hivepipe.homes SET mark = greatest(_upto, mark), shipped_at = now(), machine = me.id
    WHERE id = at.id;
  RETURN jsonb_build_object('mark', greatest(_upto, at.mark), 'policy_version', policy,
    'stored', true);
END
$$;

-- Delete the rows and archives of one member's session; return the counts by place.
CREATE OR REPLACE FUNCTION hivepipe.delete_session(_member int, _session text) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  homes int[] := ARRAY(SELECT id FROM hivepipe.homes WHERE member = _member
    ORDER BY id FOR UPDATE);
  each record;
  gone bigint;
  places jsonb := '{}';
BEGIN
  INSERT INTO hivepipe.forgotten (member, session_id) VALUES (_member, _session)
    ON CONFLICT DO NOTHING;
  FOR each IN SELECT tbl, session_column FROM hivepipe.shared_tables LOOP
    EXECUTE format('DELETE FROM hivepipe.%I WHERE home = ANY ($1) AND %I = $2',
      each.tbl, each.session_column) USING homes, _session;
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF gone > 0 THEN
      places := places || jsonb_build_object('table ' || each.tbl, gone);
    END IF;
  END LOOP;
  RETURN hivepipe.added(places, hivepipe.delete_archives(ARRAY(
    SELECT id FROM hivepipe.archives WHERE member = _member AND session_id = _session)));
END
$$;

-- Delete homes with their rows and archives; return the counts by place.
CREATE OR REPLACE FUNCTION hivepipe.delete_homes(_homes int[]) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  each text;
  gone bigint;
  places jsonb;
BEGIN
  PERFORM FROM hivepipe.homes WHERE id = ANY (_homes) ORDER BY id FOR UPDATE;
  places := hivepipe.delete_archives(ARRAY(
    SELECT id FROM hivepipe.archives WHERE home = ANY (_homes)));
  FOR each IN SELECT tbl FROM hivepipe.shared_tables LOOP
    EXECUTE format('DELETE FROM hivepipe.%I WHERE home = ANY ($1)', each) USING _homes;
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF gone > 0 THEN
      places := places || jsonb_build_object('table ' || each, gone);
    END IF;
  END LOOP;
  DELETE FROM hivepipe.tombstones WHERE home = ANY (_homes);
  DELETE FROM hivepipe.homes WHERE id = ANY (_homes);
  GET DIAGNOSTICS gone = ROW_COUNT;
  RETURN places || jsonb_build_object('homes', gone);
END
$$;

-- Delete what the policies do not share; return the counts by place.
CREATE OR REPLACE FUNCTION hivepipe.remove_unshared() RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  each record;
  gone bigint;
  places jsonb := hivepipe.delete_archives(ARRAY(
    SELECT id FROM hivepipe.archives WHERE hivepipe.team_level(project) <> 'everything'));
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

-- Set or remove (NULL) the team's level of a pattern. What a stricter level does not allow is
-- deleted at once. Machines must read the new policies before their next batch is stored.
CREATE OR REPLACE FUNCTION hivepipe.set_policy(_pattern text, _level text) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF _pattern !~ '^[^[:cntrl:]]{1,200}$' OR _pattern ~ '[\[\]]' THEN
    RAISE invalid_parameter_value USING MESSAGE = 'a pattern is a name of a project with * and ?';
  END IF;
  LOCK TABLE hivepipe.homes IN EXCLUSIVE MODE;
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

-- Set another store: archives in the present one are deleted. A pass that is running is refused.
CREATE OR REPLACE FUNCTION hivepipe.set_archive_store(_store text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  LOCK TABLE hivepipe.homes IN EXCLUSIVE MODE;
  UPDATE hivepipe.settings SET value = _store WHERE name = 'archive_store';
  UPDATE hivepipe.settings SET value = (value::bigint + 1)::text WHERE name = 'policy_version';
  DELETE FROM hivepipe.archives;
  UPDATE hivepipe.archive_leftovers SET due_at = now();
END
$$;

-- A segment is no longer stored if its home was deleted meanwhile; earlier ones are deleted here.
DELETE FROM hivepipe.archives WHERE home NOT IN (SELECT id FROM hivepipe.homes);
ALTER TABLE hivepipe.archives ADD FOREIGN KEY (home) REFERENCES hivepipe.homes;

-- Older machines sent the text of a notification, which may be a question. Replace it.
UPDATE hivepipe.activity SET waits_for = 'an answer'
  WHERE waits_for <> '' AND waits_for !~ '^permission: [^ ]*$';

DROP FUNCTION IF EXISTS hivepipe.delete_rows_of_session(int, text),
  hivepipe.delete_rows_of_homes(int[]), hivepipe.remove_unshared_rows();
GRANT EXECUTE ON FUNCTION
  hivepipe.ship(text, bigint, bigint, jsonb, jsonb, boolean, bigint) TO hivepipe_machine;
GRANT EXECUTE ON FUNCTION hivepipe.set_policy(text, text), hivepipe.set_archive_store(text)
  TO hivepipe_admin;
