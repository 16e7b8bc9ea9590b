-- Logins of the team's page: they read for the member that they name (007, `hivepipe.me`).
CREATE FUNCTION hivepipe.add_page(_role text, _verifier text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM hivepipe.check_role(_role, 'reader');
  PERFORM hivepipe.make_login(_role, _verifier, 'hivepipe_reader', 50);
  INSERT INTO hivepipe.readers (role, serves) VALUES (_role, true);
END
$$;

GRANT EXECUTE ON FUNCTION hivepipe.add_page(text, text) TO hivepipe_admin;
