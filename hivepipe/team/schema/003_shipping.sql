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

GRANT EXECUTE ON FUNCTION hivepipe.open_home(text, text), hivepipe.policy_version(),
  hivepipe.team_policies(), hivepipe.sweep(text, bigint) TO hivepipe_machine;
