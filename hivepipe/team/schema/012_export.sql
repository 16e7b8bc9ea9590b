-- The bytes of a segment in the database, exported for its owner; recorded in the audit table.
CREATE FUNCTION hivepipe.export_content(_home int, _hash text) RETURNS bytea
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  of_member int := (SELECT member FROM hivepipe.homes WHERE id = _home);
BEGIN
  INSERT INTO hivepipe.audit (role, owner, session_id, what)
    SELECT session_user, of_member, '*', 'export of archives' WHERE NOT EXISTS (
      SELECT FROM hivepipe.audit a WHERE a.role = session_user AND a.owner = of_member
        AND a.what = 'export of archives' AND a.at > now() - interval '10 minutes');
  RETURN (SELECT content FROM hivepipe.archive_contents WHERE home = _home AND hash = _hash);
END
$$;

GRANT EXECUTE ON FUNCTION hivepipe.export_content(int, text) TO hivepipe_admin;
