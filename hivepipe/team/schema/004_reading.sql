-- Reading: row-level security for the login of the connection.

-- The homes whose rows this login sees: those of its member, those of its team, or all.
CREATE FUNCTION hivepipe.visible_homes() RETURNS SETOF int
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT h.id FROM hivepipe.readers r
    LEFT JOIN hivepipe.members me ON me.id = r.member
    JOIN hivepipe.homes h ON true
    JOIN hivepipe.members m ON m.id = h.member
  WHERE r.role = session_user AND CASE coalesce(r.sees, me.sees)
    WHEN 'all' THEN true
    WHEN 'team' THEN m.id = me.id OR (m.team = me.team AND m.team <> '')
    ELSE m.id = me.id END
$$;

CREATE FUNCTION hivepipe.own_homes() RETURNS SETOF int
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT h.id FROM hivepipe.readers r JOIN hivepipe.homes h ON h.member = r.member
  WHERE r.role = session_user
$$;

-- Let readers see the rows of shared tables; texts of other members only through `read_session`.
CREATE FUNCTION hivepipe.write_read_policies() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  each record;
BEGIN
  FOR each IN SELECT tbl,
    CASE WHEN holds_text THEN 'own_homes' ELSE 'visible_homes' END AS homes
    FROM hivepipe.shared_tables
  LOOP
    EXECUTE format('ALTER TABLE hivepipe.%I ENABLE ROW LEVEL SECURITY', each.tbl);
    EXECUTE format('DROP POLICY IF EXISTS readers ON hivepipe.%I', each.tbl);
    EXECUTE format('CREATE POLICY readers ON hivepipe.%I FOR SELECT TO hivepipe_reader
      USING (home = ANY (ARRAY(SELECT hivepipe.%I())))', each.tbl, each.homes);
    EXECUTE format('GRANT SELECT ON hivepipe.%I TO hivepipe_reader', each.tbl);
  END LOOP;
END
$$;

-- Member, machine and home of the rows that a login sees.
CREATE VIEW hivepipe.v_homes AS
  SELECT h.id AS home, m.name AS person, m.team, c.name AS machine, h.shipped_at
  FROM hivepipe.homes h JOIN hivepipe.members m ON m.id = h.member
    JOIN hivepipe.machines c ON c.id = h.machine
  WHERE h.id = ANY (ARRAY(SELECT hivepipe.visible_homes()));
GRANT SELECT ON hivepipe.v_homes TO hivepipe_reader;

-- Record that this login reads a session of another member; an error if it may not see it.
CREATE FUNCTION hivepipe.note_read(_home int, _session text, _what text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  reader hivepipe.readers;
  owner int;
BEGIN
  SELECT * INTO reader FROM hivepipe.readers WHERE role = session_user;
  SELECT member INTO owner FROM hivepipe.homes WHERE id = _home;
  IF reader.role IS NULL OR owner IS NULL OR _home NOT IN (SELECT hivepipe.visible_homes()) THEN
    RAISE insufficient_privilege USING MESSAGE = 'you may not read this session';
  END IF;
  IF owner IS DISTINCT FROM reader.member THEN
    INSERT INTO hivepipe.audit (role, reader, owner, session_id, what)
      VALUES (session_user, reader.member, owner, _session, left(_what, 100));
  END IF;
END
$$;

-- Return the rows of a session in one table as JSON, and record the read in the audit table.
CREATE FUNCTION hivepipe.read_session(_home int, _session text, _tbl text) RETURNS SETOF jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM hivepipe.shared_tables WHERE tbl = _tbl) THEN
    RAISE invalid_parameter_value USING MESSAGE = 'no such table';
  END IF;
  PERFORM hivepipe.note_read(_home, _session, _tbl);
  RETURN QUERY EXECUTE format('SELECT to_jsonb(t) - ''home'' - ''version'' FROM hivepipe.%I t
    WHERE home = $1 AND %I = $2 ORDER BY %I', _tbl,
    (SELECT session_column FROM hivepipe.shared_tables WHERE tbl = _tbl),
    (SELECT time_column FROM hivepipe.shared_tables WHERE tbl = _tbl)) USING _home, _session;
END
$$;

-- Reads of the member's own sessions by others.
CREATE VIEW hivepipe.v_audit AS
  SELECT a.at, coalesce(r.name, a.role) AS reader, o.name AS owner, a.session_id, a.what
  FROM hivepipe.audit a JOIN hivepipe.members o ON o.id = a.owner
    LEFT JOIN hivepipe.members r ON r.id = a.reader
  WHERE pg_has_role(session_user, 'hivepipe_admin', 'MEMBER')
    OR a.owner IN (SELECT member FROM hivepipe.readers WHERE role = session_user);
GRANT SELECT ON hivepipe.v_audit TO hivepipe_reader, hivepipe_admin;

GRANT EXECUTE ON FUNCTION hivepipe.visible_homes(), hivepipe.own_homes(),
  hivepipe.note_read(int, text, text), hivepipe.read_session(int, text, text) TO hivepipe_reader;
