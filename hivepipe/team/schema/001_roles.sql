-- Group roles have the privileges; the logins of machines and readers are members of them.
--   hivepipe_owner    owns everything; its functions run with its privileges; it has no login
--   hivepipe_admin    invites, revokes, sets policies, forgets
--   hivepipe_machine  may call the functions that ship rows, but read and write no table
--   hivepipe_reader   reads rows under row-level security
--   hivepipe_invite   may join, once
DO $$
DECLARE
  each text;
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'hivepipe_owner') THEN
    CREATE ROLE hivepipe_owner NOLOGIN CREATEROLE;
  END IF;
  BEGIN
    EXECUTE format('GRANT hivepipe_owner TO %I', current_user);
  EXCEPTION WHEN insufficient_privilege THEN  -- PostgreSQL 16, and another role made the owner
    RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE = format(
      'another administrator prepared this server for a team, and has to run in psql: '
      'GRANT hivepipe_owner TO %I WITH ADMIN OPTION', current_user);
  END;
  EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
  EXECUTE format('GRANT CREATE, CONNECT, TEMPORARY ON DATABASE %I TO hivepipe_owner',
    current_database());
  SET LOCAL ROLE hivepipe_owner;
  FOREACH each IN ARRAY ARRAY['hivepipe_admin', 'hivepipe_machine', 'hivepipe_reader', 'hivepipe_invite'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = each) THEN
      EXECUTE format('CREATE ROLE %I NOLOGIN', each);
    END IF;
  END LOOP;
  RESET ROLE;
  EXECUTE format(
    'GRANT CONNECT ON DATABASE %I TO hivepipe_admin, hivepipe_machine, hivepipe_reader, hivepipe_invite',
    current_database());
END
$$;
CREATE SCHEMA hivepipe AUTHORIZATION hivepipe_owner;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
SET LOCAL ROLE hivepipe_owner;
GRANT USAGE ON SCHEMA hivepipe TO hivepipe_admin, hivepipe_machine, hivepipe_reader;
ALTER DEFAULT PRIVILEGES FOR ROLE hivepipe_owner REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
