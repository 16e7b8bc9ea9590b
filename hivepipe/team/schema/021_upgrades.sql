-- From PostgreSQL 16 on a role can be granted and altered only by roles with its ADMIN option. Its
-- creator has that option there, but PostgreSQL 15 grants it only on demand. So that invites and
-- revocations still work after an upgrade of the server, the owner gets it on all roles of the team.

CREATE FUNCTION hivepipe.administer(_role text, _by text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF current_setting('server_version_num')::int < 160000 THEN
    EXECUTE format('GRANT %I TO %I WITH ADMIN OPTION', _role, _by);
  END IF;
END
$$;

CREATE OR REPLACE FUNCTION hivepipe.make_login(_role text, _verifier text, _group text, _limit int)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM hivepipe.check_verifier(_verifier);
  EXECUTE format('CREATE ROLE %I LOGIN CONNECTION LIMIT %s PASSWORD %L', _role,
    _limit, _verifier);
  PERFORM hivepipe.administer(_role, 'hivepipe_owner');
  EXECUTE format('GRANT %I TO %I', _group, _role);
  EXECUTE format('ALTER ROLE %I SET statement_timeout = ''60s''', _role);
  EXECUTE format('ALTER ROLE %I SET idle_in_transaction_session_timeout = ''60s''', _role);
END
$$;

SELECT hivepipe.administer(rolname, 'hivepipe_owner') FROM pg_roles
  WHERE rolname ~ '^hivepipe_(admin|machine|reader|invite)(_[0-9a-f]{16})?$';
SELECT hivepipe.administer('hivepipe_owner', session_user);
