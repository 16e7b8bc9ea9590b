-- After a full pass, delete a part of the rows of a home that were not sent again since a version.
-- Return their number: the machine calls until it is 0. So each call ends within the time limit of its
-- login, and a call that is cut off loses only its own part.
CREATE OR REPLACE FUNCTION hivepipe.sweep(_home text, _version bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  at_once CONSTANT int := 20000;
  me hivepipe.machines := hivepipe.this_machine();
  number int;
  each text;
  gone bigint;
BEGIN
  SELECT id INTO number FROM hivepipe.homes WHERE member = me.member AND uuid = _home FOR UPDATE;
  FOR each IN SELECT tbl FROM hivepipe.shared_tables ORDER BY tbl LOOP
    EXECUTE format('DELETE FROM hivepipe.%I WHERE home = $1 AND version < $2 AND key IN (
      SELECT key FROM hivepipe.%I WHERE home = $1 AND version < $2 LIMIT %s)', each, each, at_once)
      USING number, _version;
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF gone > 0 THEN
      RETURN gone;
    END IF;
  END LOOP;
  RETURN 0;
END
$$;
