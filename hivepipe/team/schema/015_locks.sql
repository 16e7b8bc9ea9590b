-- Locks that no member can take. Any login may take an advisory lock and block all others with it,
-- so these functions lock rows that only the owner may lock.

-- Create the partition of a plausible month; rows of other months go to `_other`.
CREATE OR REPLACE FUNCTION hivepipe.ensure_month(_month date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  each text;
  part text;
BEGIN
  PERFORM hivepipe.this_machine();
  IF _month <> date_trunc('month', _month)::date
      OR _month NOT BETWEEN '2024-01-01' AND (now() + interval '2 months')::date THEN
    RETURN;
  END IF;
  FOR each IN SELECT tbl FROM hivepipe.shared_tables WHERE by_month LOOP
    part := each || '_' || to_char(_month, 'YYYY_MM');
    CONTINUE WHEN to_regclass(format('hivepipe.%I', part)) IS NOT NULL;
    PERFORM FROM hivepipe.settings WHERE name = 'months_added' FOR UPDATE;
    BEGIN
      EXECUTE format('CREATE TABLE IF NOT EXISTS hivepipe.%I PARTITION OF hivepipe.%I FOR VALUES IN (%L)',
        part, each, _month);
    EXCEPTION WHEN check_violation THEN NULL;  -- `_other` already has rows of this month
    END;
  END LOOP;
END
$$;

-- Drop one month, or else a part of the older rows of tables without months and of the archives.
-- Return the proof, or NULL if nothing is due. An administrator calls it until it returns NULL,
-- each machine once when it connects, so a call takes at most some seconds. It waits only briefly
-- for locks, because shipping has priority.
CREATE OR REPLACE FUNCTION hivepipe.drop_old() RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '3s' AS $$
DECLARE
  since date := hivepipe.kept_from();
  old date;
  places jsonb;
BEGIN
  IF NOT pg_has_role(session_user, 'hivepipe_admin', 'MEMBER') THEN
    PERFORM hivepipe.this_machine();
  END IF;
  IF since IS NULL OR since::text <= (SELECT value FROM hivepipe.settings WHERE name = 'dropped_before') THEN
    RETURN NULL;
  END IF;
  PERFORM FROM hivepipe.settings WHERE name = 'dropped_before' FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  SELECT min(m) INTO old FROM hivepipe.months_to_drop() m;
  IF old IS NOT NULL THEN
    places := hivepipe.drop_month(old);
  ELSE
    places := hivepipe.delete_before(since);
  END IF;
  IF places = '{}' THEN
    UPDATE hivepipe.settings SET value = since WHERE name = 'dropped_before';
    RETURN NULL;
  END IF;
  RETURN hivepipe.proof('older than ' || since, NULL, NULL, places);
END
$$;

-- Count the rows of all partitions before the first is dropped: a drop locks the whole table for
-- readers and machines until the transaction ends.
CREATE OR REPLACE FUNCTION hivepipe.drop_month(_month date) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  parts CONSTANT text[] := ARRAY(SELECT tbl || '_' || to_char(_month, 'YYYY_MM')
    FROM hivepipe.shared_tables WHERE by_month
      AND to_regclass(format('hivepipe.%I', tbl || '_' || to_char(_month, 'YYYY_MM'))) IS NOT NULL
    ORDER BY tbl);
  part text;
  gone bigint;
  places jsonb := '{}';
BEGIN
  FOREACH part IN ARRAY parts LOOP
    EXECUTE format('LOCK TABLE hivepipe.%I IN SHARE MODE', part);
    EXECUTE format('SELECT count(*) FROM hivepipe.%I', part) INTO gone;
    places := places || jsonb_build_object('partition ' || part, gone);
  END LOOP;
  FOREACH part IN ARRAY parts LOOP
    EXECUTE format('DROP TABLE hivepipe.%I', part);
  END LOOP;
  RETURN places;
END
$$;

GRANT EXECUTE ON FUNCTION hivepipe.ensure_month(date) TO hivepipe_machine;
GRANT EXECUTE ON FUNCTION hivepipe.drop_old() TO hivepipe_machine, hivepipe_admin;
