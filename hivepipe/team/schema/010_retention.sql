-- Retention: drop the partitions of all months before the last N whole ones.
-- `months_kept` is N, or 0 for all. What is older than `dropped_before` was dropped, and machines do
-- not send it. `months_added` counts how often N was raised, after which machines send again.
INSERT INTO hivepipe.settings VALUES
  ('months_kept', '0'), ('dropped_before', ''), ('months_added', '0');

-- The first day that is kept, or NULL for all. N whole months and the present one are kept.
CREATE FUNCTION hivepipe.kept_from() RETURNS date
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT (date_trunc('month', now() AT TIME ZONE 'UTC')
    - make_interval(months => value::int))::date
  FROM hivepipe.settings WHERE name = 'months_kept' AND value <> '0'
$$;

CREATE FUNCTION hivepipe.retention() RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT jsonb_object_agg(name, value) || jsonb_build_object('kept_from', hivepipe.kept_from())
  FROM hivepipe.settings WHERE name IN ('months_kept', 'dropped_before', 'months_added')
$$;

CREATE FUNCTION hivepipe.set_retention(_months int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF _months IS NULL OR _months NOT BETWEEN 0 AND 1200 THEN
    RAISE invalid_parameter_value USING MESSAGE = 'months to keep are 1 to 1200, or 0 for all';
  END IF;
  UPDATE hivepipe.settings SET value = _months WHERE name = 'months_kept';
  UPDATE hivepipe.settings SET value = coalesce(hivepipe.kept_from()::text, '')
    WHERE name = 'dropped_before' AND value > coalesce(hivepipe.kept_from()::text, '');
  IF FOUND THEN
    UPDATE hivepipe.settings SET value = value::int + 1 WHERE name = 'months_added';
  END IF;
END
$$;

-- Months that have a partition and are no longer kept, oldest first.
CREATE FUNCTION hivepipe.months_to_drop() RETURNS SETOF date
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT month FROM (
    SELECT DISTINCT to_date(right(c.relname, 7), 'YYYY_MM') AS month
    FROM hivepipe.shared_tables t
      JOIN pg_inherits i ON i.inhparent = format('hivepipe.%I', t.tbl)::regclass
      JOIN pg_class c ON c.oid = i.inhrelid
    WHERE t.by_month AND c.relname ~ '_[0-9]{4}_[0-9]{2}$') m
  WHERE month < hivepipe.kept_from() ORDER BY 1
$$;

-- Delete rows by their own time: sessions by their last activity, and archives with their session.
-- Rows without a valid time stay.
CREATE FUNCTION hivepipe.delete_before(_since date) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  at_once CONSTANT int := 20000;
  each record;
  gone bigint;
  places jsonb := '{}';
BEGIN
  FOR each IN SELECT CASE WHEN by_month THEN tbl || '_other' ELSE tbl END AS tbl,
      CASE WHEN by_month THEN 'month < $1 AND month > ''1970-01-01'''
        ELSE format('%I < $1::text AND %I > ''1970''', time_column, time_column) END AS is_old
    FROM hivepipe.shared_tables ORDER BY 1
  LOOP
    EXECUTE format('DELETE FROM hivepipe.%I WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM hivepipe.%I WHERE %s LIMIT %s))', each.tbl, each.tbl, each.is_old, at_once)
      USING _since;
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF gone > 0 THEN
      places := places || jsonb_build_object('table ' || each.tbl, gone);
    END IF;
  END LOOP;
  RETURN hivepipe.added(places, hivepipe.delete_archives(ARRAY(
    SELECT a.id FROM hivepipe.archives a WHERE a.started_at < _since::text AND a.started_at > '' AND NOT EXISTS (
      SELECT FROM hivepipe.sessions s WHERE s.home = a.home AND s.key = a.session_id) LIMIT 1000)));
END
$$;

GRANT EXECUTE ON FUNCTION hivepipe.retention() TO hivepipe_machine, hivepipe_admin;
GRANT EXECUTE ON FUNCTION hivepipe.set_retention(int), hivepipe.months_to_drop()
  TO hivepipe_admin;
