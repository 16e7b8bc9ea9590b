-- Logins of the team's page: they read for the member that they name (007, `hivepipe.me`).
CREATE FUNCTION hivepipe.add_page(_role text, _verifier text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM hivepipe.check_role(_role, 'reader');
  PERFORM hivepipe.make_login(_role, _verifier, 'hivepipe_reader', 50);
  INSERT INTO hivepipe.readers (role, serves) VALUES (_role, true);
END
$$;

-- End all of them; open connections can no longer read.
CREATE FUNCTION hivepipe.end_pages() RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  each name;
  number int := 0;
BEGIN
  FOR each IN DELETE FROM hivepipe.readers WHERE serves RETURNING role LOOP
    EXECUTE format('DROP ROLE %I', each);
    number := number + 1;
  END LOOP;
  RETURN number;
END
$$;

GRANT EXECUTE ON FUNCTION hivepipe.add_page(text, text), hivepipe.end_pages() TO hivepipe_admin;
