-- Names and patterns mean the same under each locale of a database. Any letter may be in a name,
-- also where lc_ctype is C. If two patterns of the same length match, the server chooses the same
-- one as the machines.
ALTER TABLE hivepipe.members DROP CONSTRAINT members_name_check,
  ADD CONSTRAINT members_name_check CHECK (
    name ~ '^[A-Za-z0-9\u00a1-\U0010ffff][A-Za-z0-9\u00a1-\U0010ffff@._ -]{0,99}$');

CREATE OR REPLACE FUNCTION hivepipe.team_level(_project text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce((SELECT level FROM hivepipe.policies WHERE hivepipe.fits(_project, pattern)
    ORDER BY length(pattern) DESC, pattern COLLATE "C" DESC LIMIT 1), 'metadata')
$$;
