-- Shipping: a machine calls functions, and has no privilege on any table.

-- The machine of this connection; an error if it was revoked or the login is not a machine's.
CREATE FUNCTION hivepipe.this_machine() RETURNS hivepipe.machines
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  found hivepipe.machines;
BEGIN
  SELECT * INTO found FROM hivepipe.machines WHERE role = session_user;
  IF found.id IS NULL OR found.revoked_at IS NOT NULL THEN
    RAISE insufficient_privilege USING MESSAGE = 'this machine is no member of the team, or was revoked';
  END IF;
  RETURN found;
END
$$;

-- Register a home; return the server's mark, its policies and its version of the policies.
CREATE FUNCTION hivepipe.open_home(_home text, _hivepipe text) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  me hivepipe.machines := hivepipe.this_machine();
  found bigint;
BEGIN
  IF length(_home) NOT BETWEEN 16 AND 64 THEN
    RAISE invalid_parameter_value USING MESSAGE = 'no id of a home';
  END IF;
  UPDATE hivepipe.machines SET last_seen_at = now(), hivepipe = left(_hivepipe, 40)
    WHERE id = me.id;
  INSERT INTO hivepipe.homes (member, machine, uuid) VALUES (me.member, me.id, _home)
    ON CONFLICT (member, uuid) DO UPDATE SET machine = excluded.machine
    RETURNING mark INTO found;
  RETURN jsonb_build_object(
    'mark', found, 'member', (SELECT name FROM hivepipe.members WHERE id = me.member),
    'machine', me.name, 'policies', hivepipe.team_policies(),
    'policy_version', hivepipe.policy_version(),
    'schema', (SELECT max(name) FROM hivepipe.schema_steps));
END
$$;

CREATE FUNCTION hivepipe.policy_version() RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT value::bigint FROM hivepipe.settings WHERE name = 'policy_version'
$$;

CREATE FUNCTION hivepipe.team_policies() RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(jsonb_object_agg(pattern, level), '{}') FROM hivepipe.policies
$$;

-- Store a batch of one home and its new mark in one transaction; return the server's mark.
--   _since            the mark that the machine knows; nothing is stored if the server's is different
--   _rows             {table: [row, ...]}: rows with key and version; unknown names are ignored
--   _gone             {table: [{key, version, month}, ...]}
--   _if_absent        for a restored machine: existing rows are not changed
--   _policy_version   nothing is stored if it is outdated: the machine must read the policies first
CREATE FUNCTION hivepipe.ship(_home text, _since bigint, _upto bigint, _rows jsonb, _gone jsonb,
  _if_absent boolean, _policy_version bigint) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  me hivepipe.machines := hivepipe.this_machine();
  at hivepipe.homes;
  policy bigint := hivepipe.policy_version();
BEGIN
  SELECT * INTO at FROM hivepipe.homes WHERE member = me.member AND uuid = _home FOR UPDATE;
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

-- After a full pass, delete the rows of a home that were not sent again since a version.
CREATE FUNCTION hivepipe.sweep(_home text, _version bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  me hivepipe.machines := hivepipe.this_machine();
  number int;
  each text;
  gone bigint;
  total bigint := 0;
BEGIN
  SELECT id INTO number FROM hivepipe.homes WHERE member = me.member AND uuid = _home FOR UPDATE;
  FOR each IN SELECT tbl FROM hivepipe.shared_tables LOOP
    EXECUTE format('DELETE FROM hivepipe.%I WHERE home = $1 AND version < $2', each)
      USING number, _version;
    GET DIAGNOSTICS gone = ROW_COUNT;
    total := total + gone;
  END LOOP;
  RETURN total;
END
$$;

-- Create the partition of a plausible month; rows of other months go to `_other`.
CREATE FUNCTION hivepipe.ensure_month(_month date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  each text;
  part text;
BEGIN
  PERFORM hivepipe.this_machine();
  IF _month <> date_trunc('month', _month)::date
      OR _month NOT BETWEEN '2024-01-01' AND (now() + interval '2 months')::date THEN
    RETURN;
  END IF;
  FOR each IN SELECT tbl FROM hivepipe.shared_tables WHERE by_month LOOP
    part := each || '_' || to_char(_month, 'YYYY_MM');
    CONTINUE WHEN to_regclass(format('hivepipe.%I', part)) IS NOT NULL;
    PERFORM pg_advisory_xact_lock(hashtext('hivepipe.ensure_month'));
    BEGIN
      EXECUTE format('CREATE TABLE IF NOT EXISTS hivepipe.%I PARTITION OF hivepipe.%I FOR VALUES IN (%L)',
        part, each, _month);
    EXCEPTION WHEN check_violation THEN NULL;  -- `_other` has rows of this month already
    END;
  END LOOP;
END
$$;

-- Delete the rows of one member's session in all tables; return the counts by table.
CREATE FUNCTION hivepipe.delete_session(_member int, _session text) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  homes int[] := ARRAY(SELECT id FROM hivepipe.homes WHERE member = _member);
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
  RETURN places;
END
$$;

CREATE FUNCTION hivepipe.forget_shipped(_home int, _member int, _rows jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  each text;
BEGIN
  FOR each IN SELECT r ->> 'key' FROM jsonb_array_elements(coalesce(_rows, '[]')) r LOOP
    CONTINUE WHEN EXISTS (
      SELECT FROM hivepipe.forgotten WHERE member = _member AND session_id = each);
    INSERT INTO hivepipe.deletions (by_role, cause, member, session_id, places)
      VALUES (session_user, 'forgotten on a machine', _member, each,
        hivepipe.delete_session(_member, each));
  END LOOP;
END
$$;

-- Generate the functions that store and delete a batch from the current columns of the tables.
CREATE FUNCTION hivepipe.write_store_functions() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  each record;
  stores text := '';
  burials text := '';
BEGIN
  FOR each IN
    SELECT s.tbl, s.session_column, a.names, a.sets,
      CASE WHEN by_month THEN ', month' ELSE '' END AS month,
      CASE WHEN by_month THEN 'AND t.month = r.month' ELSE '' END AS of_month
    FROM hivepipe.shared_tables s, LATERAL (
      SELECT string_agg(format('%I', attname), ', ' ORDER BY attnum) AS names,
        string_agg(format('%I = excluded.%I', attname, attname), ', ' ORDER BY attnum) AS sets
      FROM pg_attribute WHERE attrelid = format('hivepipe.%I', s.tbl)::regclass
        AND attnum > 0 AND NOT attisdropped AND attname NOT IN ('home', 'key', 'month')
        AND attgenerated = '') a
  LOOP
    stores := stores || format($store$
  IF _rows ? %1$L THEN
    INSERT INTO hivepipe.%1$I AS old (home, key%3$s, %4$s)
    SELECT _home, key%3$s, %4$s FROM jsonb_populate_recordset(NULL::hivepipe.%1$I, _rows -> %1$L) r
    WHERE NOT EXISTS (SELECT FROM hivepipe.tombstones t WHERE t.home = _home AND t.tbl = %1$L
        AND t.key = r.key AND t.version >= r.version)
      AND NOT EXISTS (SELECT FROM hivepipe.forgotten f
        WHERE f.member = _member AND f.session_id = r.%2$I)
    ON CONFLICT (home, key%3$s) DO UPDATE SET %5$s
      WHERE old.version < excluded.version AND NOT _if_absent;
  END IF;
$store$, each.tbl, each.session_column, each.month, each.names, each.sets);
    burials := burials || format($bury$
  IF _gone ? %1$L THEN
    WITH gone AS (
      DELETE FROM hivepipe.%1$I t USING jsonb_populate_recordset(NULL::hivepipe.%1$I, _gone -> %1$L) r
      WHERE t.home = _home AND t.key = r.key %2$s AND t.version < r.version
      RETURNING t.key, r.version)
    INSERT INTO hivepipe.tombstones AS old SELECT _home, %1$L, key, version FROM gone
    ON CONFLICT (home, tbl, key) DO UPDATE SET version = greatest(old.version, excluded.version);
  END IF;
$bury$, each.tbl, each.of_month);
  END LOOP;
  EXECUTE format($function$
CREATE OR REPLACE FUNCTION hivepipe.store(_home int, _member int, _rows jsonb, _if_absent boolean)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS %L
$function$, 'BEGIN' || stores || 'END');
  EXECUTE format($function$
CREATE OR REPLACE FUNCTION hivepipe.bury(_home int, _gone jsonb)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS %L
$function$, 'BEGIN' || burials || 'END');
END
$$;

GRANT EXECUTE ON FUNCTION hivepipe.open_home(text, text), hivepipe.policy_version(),
  hivepipe.team_policies(), hivepipe.ensure_month(date), hivepipe.sweep(text, bigint),
  hivepipe.ship(text, bigint, bigint, jsonb, jsonb, boolean, bigint) TO hivepipe_machine;
