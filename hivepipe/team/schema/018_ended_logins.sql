-- A login can be ended whatever it did: PostgreSQL drops no role that owns something, and every login
-- may make large objects, in each database that admits it.
CREATE FUNCTION hivepipe.end_login(_role name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format('DROP ROLE %I', _role);
EXCEPTION WHEN dependent_objects_still_exist THEN
  EXECUTE format('ALTER ROLE %I NOLOGIN PASSWORD NULL', _role);
END
$$;

-- Revoke a machine (MACHINE or MEMBER/MACHINE), or the open invites of a member.
CREATE OR REPLACE FUNCTION hivepipe.revoke(_what text) RETURNS text
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
    PERFORM hivepipe.end_login(each.role);
    number := number + 1;
  END LOOP;
  RETURN CASE WHEN number > 0 THEN number || ' open invites of ' || _what END;
END
$$;

-- Delete a member: rows, homes, logins, name. Audit entries of its reads stay without a name.
CREATE OR REPLACE FUNCTION hivepipe.forget_member(_name text) RETURNS jsonb
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
      PERFORM hivepipe.end_login(each.role);
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

-- End the logins of all pages; their open connections can no longer read.
CREATE OR REPLACE FUNCTION hivepipe.end_pages() RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  each name;
  number int := 0;
BEGIN
  FOR each IN DELETE FROM hivepipe.readers WHERE serves RETURNING role LOOP
    PERFORM hivepipe.end_login(each);
    number := number + 1;
  END LOOP;
  RETURN number;
END
$$;

GRANT EXECUTE ON FUNCTION hivepipe.revoke(text), hivepipe.forget_member(text), hivepipe.end_pages()
  TO hivepipe_admin;
