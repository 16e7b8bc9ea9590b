-- Generate the functions that store and delete a batch from the current columns of the tables.
-- Rows arrive by columns: {table: {column: [value of each row, ...]}}. Unknown names are ignored;
-- missing columns are NULL. Tombstones are only looked up for homes that have some, and rows of
-- monthly tables, which are almost always new, are first inserted without a conflict check. `ship`
-- locks the home, so there are no other writers.
CREATE OR REPLACE FUNCTION hivepipe.write_store_functions() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  each record;
  sent text;
  stores text := '';
  burials text := '';
BEGIN
  FOR each IN
    SELECT s.tbl, s.by_month, s.session_column, a.*,
      CASE WHEN by_month THEN ', month' ELSE '' END AS month,
      CASE WHEN by_month THEN 'AND t.month = r.month' ELSE '' END AS of_month
    FROM hivepipe.shared_tables s, LATERAL (
      SELECT string_agg(name, ', ' ORDER BY attnum) AS names,
        string_agg('r.' || name, ', ' ORDER BY attnum) AS of_row,
        string_agg(format('unnest(c.%1$s) AS %1$s', name), ', ' ORDER BY attnum) AS elements,
        string_agg(format('%s %s[]', name, format_type(atttypid, atttypmod)), ', ') AS typed,
        string_agg(format('%1$s = excluded.%1$s', name), ', ')
          FILTER (WHERE name NOT IN ('key', 'month')) AS sets
      FROM (SELECT quote_ident(attname) AS name, * FROM pg_attribute) p
      WHERE attrelid = format('hivepipe.%I', s.tbl)::regclass
        AND attnum > 0 AND NOT attisdropped AND attname <> 'home' AND attgenerated = '') a
  LOOP
    sent := format($sent$
    INSERT INTO hivepipe.%1$I AS old (home, %3$s)
    SELECT _home, %4$s FROM (
      SELECT %5$s FROM jsonb_to_record(_rows -> %1$L) AS c (%6$s)) AS r
    WHERE NOT (_has_tombstones AND EXISTS (SELECT FROM hivepipe.tombstones t
        WHERE t.home = _home AND t.tbl = %1$L AND t.key = r.key AND t.version >= r.version))
      AND NOT (_has_forgotten AND EXISTS (SELECT FROM hivepipe.forgotten f
        WHERE f.member = _member AND f.session_id = r.%2$I))$sent$,
      each.tbl, each.session_column, each.names, each.of_row, each.elements, each.typed);
    stores := stores || format('
  IF _rows ? %L THEN', each.tbl);
    IF each.by_month THEN
      stores := stores || format('
  BEGIN %s;
  EXCEPTION WHEN unique_violation THEN', sent);
    END IF;
    stores := stores || format('%s
    ON CONFLICT (home, key%s) DO UPDATE SET %s
      WHERE old.version < excluded.version AND NOT _if_absent;', sent, each.month, each.sets);
    IF each.by_month THEN
      stores := stores || ' END;';
    END IF;
    stores := stores || '
  END IF;';
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
$function$, format('
DECLARE
  _has_tombstones CONSTANT boolean := EXISTS (SELECT FROM hivepipe.tombstones WHERE home = _home);
  _has_forgotten CONSTANT boolean := EXISTS (SELECT FROM hivepipe.forgotten WHERE member = _member);
BEGIN %s
END', stores));
  EXECUTE format($function$
CREATE OR REPLACE FUNCTION hivepipe.bury(_home int, _gone jsonb)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS %L
$function$, 'BEGIN' || burials || 'END');
END
$$;
