-- Batches by columns: {table: {column: [value of each row, ...]}}, which the server parses in half
-- the time of rows. Unknown names are ignored; missing columns are NULL.

CREATE OR REPLACE FUNCTION hivepipe.write_store_functions() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  each record;
  stores text := '';
  burials text := '';
BEGIN
  FOR each IN
    SELECT s.tbl, s.session_column, a.*,
      CASE WHEN by_month THEN ', month' ELSE '' END AS month,
      CASE WHEN by_month THEN 'AND t.month = r.month' ELSE '' END AS of_month
    FROM hivepipe.shared_tables s, LATERAL (
      SELECT string_agg(name, ', ' ORDER BY attnum) AS names,
        string_agg('r.' || name, ', ' ORDER BY attnum) AS of_row,
        string_agg('c.' || name, ', ' ORDER BY attnum) AS arrays,
        string_agg(format('%s %s[]', name, format_type(atttypid, atttypmod)), ', ') AS typed,
        string_agg(format('%1$s = excluded.%1$s', name), ', ')
          FILTER (WHERE name NOT IN ('key', 'month')) AS sets
      FROM (SELECT quote_ident(attname) AS name, * FROM pg_attribute) p
      WHERE attrelid = format('hivepipe.%I', s.tbl)::regclass
        AND attnum > 0 AND NOT attisdropped AND attname <> 'home' AND attgenerated = '') a
  LOOP
    stores := stores || format($store$
  IF _rows ? %1$L THEN
    INSERT INTO hivepipe.%1$I AS old (home, %4$s)
    SELECT _home, %5$s FROM jsonb_to_record(_rows -> %1$L) AS c (%7$s), unnest(%6$s) AS r (%4$s)
    WHERE NOT EXISTS (SELECT FROM hivepipe.tombstones t WHERE t.home = _home AND t.tbl = %1$L
        AND t.key = r.key AND t.version >= r.version)
      AND NOT EXISTS (SELECT FROM hivepipe.forgotten f
        WHERE f.member = _member AND f.session_id = r.%2$I)
    ON CONFLICT (home, key%3$s) DO UPDATE SET %8$s
      WHERE old.version < excluded.version AND NOT _if_absent;
  END IF;
$store$, each.tbl, each.session_column, each.month, each.names, each.of_row, each.arrays,
      each.typed, each.sets);
    burials := burials || format($bury$
  IF _gone ? %1$L THEN
    WITH gone AS (
      DELETE FROM hivepipe.%1$I t USING jsonb_populate_recordset(NULL::hivepipe.%1$I, _gone -> %1$L) r
      WHERE t.home = _home AND t.key = r.key %2$s AND t.version < r.version
      RETURNING t.key, r.version)
    INSERT INTO hivepipe.tombstones AS old SELECT _home, %1$L, key, version FROM gone
    ON CONFLICT (home, tbl, key) DO UPDATE SET version = greatest(old.version, excluded.version);
  END IF;
$bury$, each.tbl, each.of_month);
  END LOOP;
  EXECUTE format($function$
CREATE OR REPLACE FUNCTION hivepipe.store(_home int, _member int, _rows jsonb, _if_absent boolean)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS %L
$function$, 'BEGIN' || stores || 'END');
  EXECUTE format($function$
CREATE OR REPLACE FUNCTION hivepipe.bury(_home int, _gone jsonb)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS %L
$function$, 'BEGIN' || burials || 'END');
END
$$;
