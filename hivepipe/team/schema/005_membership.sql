-- Membership: invites, machines and their logins.

-- Only SCRAM verifiers are accepted as passwords, so that the server never sees a secret.
CREATE FUNCTION hivepipe.check_verifier(_verifier text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF _verifier !~ '^SCRAM-SHA-256\$[0-9]+:[A-Za-z0-9+/=]+\$[A-Za-z0-9+/=]+:[A-Za-z0-9+/=]+$' THEN
    RAISE invalid_parameter_value USING MESSAGE = 'not a SCRAM-SHA-256 verifier';
  END IF;
END
$$;

CREATE FUNCTION hivepipe.check_role(_role text, _kind text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF _role !~ ('^hivepipe_' || _kind || '_[0-9a-f]{16}$') THEN
    RAISE invalid_parameter_value USING MESSAGE = 'not a name of a role of this kind';
  END IF;
END
$$;

CREATE FUNCTION hivepipe.make_login(_role text, _verifier text, _group text, _limit int)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM hivepipe.check_verifier(_verifier);
  EXECUTE format('CREATE ROLE %I LOGIN CONNECTION LIMIT %s PASSWORD %L', _role,
    _limit, _verifier);
  EXECUTE format('GRANT %I TO %I', _group, _role);
  EXECUTE format('ALTER ROLE %I SET statement_timeout = ''60s''', _role);
  EXECUTE format('ALTER ROLE %I SET idle_in_transaction_session_timeout = ''60s''', _role);
END
$$;

-- Create a member if the name is new; NULL keeps the team and rights of an existing one.
CREATE FUNCTION hivepipe.member_named(_name text, _team text, _sees text) RETURNS int
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  found int;
BEGIN
  INSERT INTO hivepipe.members (name, team, sees) VALUES (_name, coalesce(_team, ''), coalesce(_sees, 'self'))
    ON CONFLICT (name) DO UPDATE SET team = coalesce(_team, members.team),
      sees = coalesce(_sees, members.sees)
    RETURNING id INTO found;
  RETURN found;
END
$$;

-- An invite is a login that can only join, once, before it expires.
CREATE FUNCTION hivepipe.invite(_name text, _team text, _sees text, _role text, _verifier text,
  _secs double precision) RETURNS timestamptz
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  until timestamptz := now() + make_interval(secs => _secs);
BEGIN
  PERFORM hivepipe.check_role(_role, 'invite');
  PERFORM hivepipe.make_login(_role, _verifier, 'hivepipe_invite', 2);
  EXECUTE format('ALTER ROLE %I VALID UNTIL %L', _role, until);
  INSERT INTO hivepipe.invites (member, role, expires_at)
    VALUES (hivepipe.member_named(_name, _team, _sees), _role, until);
  RETURN until;
END
$$;

-- Joining creates the logins of a machine, and marks the invite as used in the same transaction.
CREATE FUNCTION hivepipe.join_team(_machine text, _role text, _verifier text, _reader text,
  _reader_verifier text) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  asked hivepipe.invites;
  made int;
BEGIN
  SELECT * INTO asked FROM hivepipe.invites WHERE role = session_user FOR UPDATE;
  IF asked.id IS NULL OR asked.used_at IS NOT NULL OR asked.expires_at < now() THEN
    RAISE insufficient_privilege USING MESSAGE = 'this invite is used, revoked or expired';
  END IF;
  made := hivepipe.make_machine(asked.member, _machine, _role, _verifier);
  PERFORM hivepipe.check_role(_reader, 'reader');
  PERFORM hivepipe.make_login(_reader, _reader_verifier, 'hivepipe_reader', 10);
  INSERT INTO hivepipe.readers (role, member, machine) VALUES (_reader, asked.member, made);
  UPDATE hivepipe.invites SET used_at = now(), machine = made WHERE id = asked.id;
  EXECUTE format('ALTER ROLE %I NOLOGIN', asked.role);
  RETURN hivepipe.terms(asked.member) || jsonb_build_object(
    'machine', (SELECT name FROM hivepipe.machines WHERE id = made));
END
$$;

CREATE FUNCTION hivepipe.make_machine(_member int, _machine text, _role text, _verifier text)
RETURNS int LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  made int;
  plain text := coalesce(nullif(left(btrim(_machine), 100), ''), 'machine');
  free text := plain;
BEGIN
  PERFORM hivepipe.check_role(_role, 'machine');
  PERFORM hivepipe.make_login(_role, _verifier, 'hivepipe_machine', 100);
  FOR number IN 2..10000 LOOP
    EXIT WHEN NOT EXISTS (SELECT FROM hivepipe.machines WHERE member = _member AND name = free);
    free := plain || '-' || number;
  END LOOP;
  INSERT INTO hivepipe.machines (member, name, role) VALUES (_member, free, _role)
    RETURNING id INTO made;
  RETURN made;
END
$$;

-- A machine without an invite, for CI: many short-lived homes share one secret.
CREATE FUNCTION hivepipe.add_machine(_name text, _team text, _machine text, _role text,
  _verifier text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  made int := hivepipe.make_machine(hivepipe.member_named(_name, _team, NULL), _machine, _role, _verifier);
BEGIN
  RETURN (SELECT name FROM hivepipe.machines WHERE id = made);
END
$$;

-- The terms that a member accepts.
CREATE FUNCTION hivepipe.terms(_member int) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT jsonb_build_object('member', name, 'team', team, 'sees', sees,
    'policies', hivepipe.team_policies(),
    'readers', (SELECT count(*) FROM hivepipe.members o WHERE o.id <> _member AND
      (o.sees = 'all' OR (o.sees = 'team' AND o.team = m.team AND m.team <> ''))))
  FROM hivepipe.members m WHERE id = _member
$$;

CREATE FUNCTION hivepipe.terms_of_invite() RETURNS jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  asked hivepipe.invites;
BEGIN
  SELECT * INTO asked FROM hivepipe.invites WHERE role = session_user;
  IF asked.id IS NULL OR asked.used_at IS NOT NULL OR asked.expires_at < now() THEN
    RAISE insufficient_privilege USING MESSAGE = 'this invite is used, revoked or expired';
  END IF;
  RETURN hivepipe.terms(asked.member);
END
$$;

-- A machine leaves: its logins end. With `_purge`, its rows are deleted too.
CREATE FUNCTION hivepipe.leave(_purge boolean) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  me hivepipe.machines := hivepipe.this_machine();
  places jsonb := '{}';
BEGIN
  IF _purge THEN
    places := hivepipe.delete_homes(ARRAY(SELECT id FROM hivepipe.homes WHERE machine = me.id));
    INSERT INTO hivepipe.deletions (by_role, cause, member, places)
      VALUES (session_user, 'left and purged', me.member, places);
  END IF;
  PERFORM hivepipe.end_machine(me.id);
  RETURN places;
END
$$;

-- A login ends at once: functions fail on open connections because the machine is revoked.
CREATE FUNCTION hivepipe.end_machine(_machine int) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  each name;
BEGIN
  UPDATE hivepipe.machines SET revoked_at = coalesce(revoked_at, now()) WHERE id = _machine;
  FOR each IN SELECT role FROM hivepipe.machines WHERE id = _machine
    UNION SELECT role FROM hivepipe.readers WHERE machine = _machine
  LOOP
    EXECUTE format('ALTER ROLE %I NOLOGIN PASSWORD NULL', each);
  END LOOP;
  DELETE FROM hivepipe.readers WHERE machine = _machine;
END
$$;

GRANT EXECUTE ON FUNCTION hivepipe.leave(boolean) TO hivepipe_machine;
GRANT EXECUTE ON FUNCTION hivepipe.invite(text, text, text, text, text, double precision),
  hivepipe.add_machine(text, text, text, text, text) TO hivepipe_admin;
GRANT EXECUTE ON FUNCTION hivepipe.terms_of_invite(),
  hivepipe.join_team(text, text, text, text, text) TO hivepipe_invite;
GRANT USAGE ON SCHEMA hivepipe TO hivepipe_invite;
GRANT SELECT ON hivepipe.members, hivepipe.machines, hivepipe.homes, hivepipe.invites,
  hivepipe.policies, hivepipe.deletions, hivepipe.audit, hivepipe.shared_tables,
  hivepipe.settings TO hivepipe_admin;
