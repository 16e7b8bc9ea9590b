-- Reading: row-level security for the login of the connection.
-- A read of other members' rows is recorded first, in a transaction of its own, so that a rollback
-- cannot remove the record. It permits reads for ten minutes, or for an hour for a list.

ALTER TABLE hivepipe.readers ADD COLUMN serves boolean NOT NULL DEFAULT false;
ALTER TABLE hivepipe.audit ADD COLUMN xact xid8 NOT NULL DEFAULT pg_current_xact_id(),
  ALTER COLUMN owner DROP NOT NULL;  -- a search concerns no owner
CREATE INDEX audit_by_role ON hivepipe.audit (role, session_id, at);

-- The member who reads. The login of a page reads for the member named in `hivepipe.person`.
CREATE FUNCTION hivepipe.me() RETURNS TABLE (id int, team text, sees text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT m.id, m.team, coalesce(r.sees, m.sees) FROM hivepipe.readers r
    LEFT JOIN hivepipe.members m ON m.id = r.member
  WHERE r.role = session_user AND NOT r.serves
  UNION ALL
  SELECT m.id, m.team, m.sees FROM hivepipe.readers r
    JOIN hivepipe.members m ON m.name = current_setting('hivepipe.person', true)
  WHERE r.role = session_user AND r.serves
$$;

-- The homes whose rows this login sees: those of its member, those of its team, or all.
CREATE OR REPLACE FUNCTION hivepipe.visible_homes() RETURNS SETOF int
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT h.id FROM hivepipe.me() me JOIN hivepipe.homes h ON true
    JOIN hivepipe.members m ON m.id = h.member
  WHERE CASE me.sees
    WHEN 'all' THEN true
    WHEN 'team' THEN m.id = me.id OR (m.team = me.team AND m.team <> '')
    ELSE m.id = me.id END
$$;

CREATE OR REPLACE FUNCTION hivepipe.own_homes() RETURNS SETOF int
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT h.id FROM hivepipe.me() me JOIN hivepipe.homes h ON h.member = me.id
$$;

-- Member, machine and home of the rows that a login sees.
CREATE OR REPLACE VIEW hivepipe.v_homes AS
  SELECT h.id AS home, m.name AS person, m.team, c.name AS machine, h.shipped_at
  FROM hivepipe.homes h JOIN hivepipe.members m ON m.id = h.member
    JOIN hivepipe.machines c ON c.id = h.machine
  WHERE h.id = ANY (ARRAY(SELECT hivepipe.visible_homes()));
GRANT SELECT ON hivepipe.v_homes TO hivepipe_reader;

-- Readers see visible homes; texts of sessions, agents and skills only through `hidden_texts`.
CREATE OR REPLACE FUNCTION hivepipe.write_read_policies() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  each record;
BEGIN
  FOR each IN SELECT s.tbl,
    CASE WHEN holds_text THEN 'own_homes' ELSE 'visible_homes' END AS homes,
    (SELECT string_agg(format('%I', attname), ', ') FROM pg_attribute
      WHERE attrelid = format('hivepipe.%I', s.tbl)::regclass AND attnum > 0
        AND NOT attisdropped AND NOT EXISTS (SELECT FROM hivepipe.hidden_columns c
          WHERE c.tbl = s.tbl AND c.name = attname)) AS columns
    FROM hivepipe.shared_tables s
  LOOP
    EXECUTE format('ALTER TABLE hivepipe.%I ENABLE ROW LEVEL SECURITY', each.tbl);
    EXECUTE format('DROP POLICY IF EXISTS readers ON hivepipe.%I', each.tbl);
    EXECUTE format('CREATE POLICY readers ON hivepipe.%I FOR SELECT TO hivepipe_reader
      USING (home = ANY (ARRAY(SELECT hivepipe.%I())))', each.tbl, each.homes);
    EXECUTE format('REVOKE SELECT ON hivepipe.%I FROM hivepipe_reader', each.tbl);
    EXECUTE format('GRANT SELECT (%s) ON hivepipe.%I TO hivepipe_reader', each.columns, each.tbl);
  END LOOP;
END
$$;

-- Record a read, unless the same read was recorded in the last half of its validity.
CREATE FUNCTION hivepipe.note(_owner int, _session text, _what text, _lasts interval)
RETURNS void LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO hivepipe.audit (role, reader, owner, session_id, what)
    SELECT session_user, me.id, _owner, _session, _what FROM hivepipe.me() me
    WHERE NOT EXISTS (SELECT FROM hivepipe.audit a WHERE a.role = session_user
      AND a.session_id = _session AND a.owner IS NOT DISTINCT FROM _owner AND a.what = _what
      AND a.reader IS NOT DISTINCT FROM me.id AND a.at > now() - _lasts / 2)
$$;

-- Tell whether a committed transaction has recorded a read.
CREATE FUNCTION hivepipe.is_noted(_owner int, _session text, _lasts interval)
RETURNS boolean LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT EXISTS (SELECT FROM hivepipe.me() me JOIN hivepipe.audit a ON a.role = session_user
      AND a.reader IS NOT DISTINCT FROM me.id
    WHERE a.session_id = _session AND a.owner = _owner AND a.at > now() - _lasts
      AND a.xact IS DISTINCT FROM pg_current_xact_id_if_assigned())
$$;

-- Record that this login reads a session; an error if it may not see it.
CREATE OR REPLACE FUNCTION hivepipe.note_read(_home int, _session text, _what text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF _home NOT IN (SELECT hivepipe.visible_homes()) THEN
    RAISE insufficient_privilege USING MESSAGE = 'you may not read this session';
  END IF;
  IF _home NOT IN (SELECT hivepipe.own_homes()) THEN
    PERFORM hivepipe.note((SELECT member FROM hivepipe.homes WHERE id = _home), _session,
      left(_what, 100), '10 minutes');
  END IF;
END
$$;

-- Record that this login reads a list with titles and names of these homes.
CREATE FUNCTION hivepipe.note_list(_homes int[], _what text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM hivepipe.note(owner, '*', left(_what, 100), '1 hour') FROM (
    SELECT DISTINCT member AS owner FROM hivepipe.homes WHERE id = ANY (_homes)
      AND id IN (SELECT hivepipe.visible_homes())
      AND id NOT IN (SELECT hivepipe.own_homes())) o;
END
$$;

-- Return the rows of a session in one table as JSON; another member's only after a recorded read.
DROP FUNCTION IF EXISTS hivepipe.read_session(int, text, text);
CREATE FUNCTION hivepipe.session_rows(_home int, _session text, _tbl text) RETURNS SETOF jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  asked hivepipe.shared_tables;
BEGIN
  SELECT * INTO asked FROM hivepipe.shared_tables WHERE tbl = _tbl;
  IF asked.tbl IS NULL OR _home NOT IN (SELECT hivepipe.visible_homes()) OR NOT (
    _home IN (SELECT hivepipe.own_homes()) OR hivepipe.is_noted(
      (SELECT member FROM hivepipe.homes WHERE id = _home), _session, '10 minutes'))
  THEN
    RAISE insufficient_privilege USING MESSAGE = 'you may not read this session';
  END IF;
  RETURN QUERY EXECUTE format('SELECT to_jsonb(t) - ''home'' - ''version'' FROM hivepipe.%I t
    WHERE home = $1 AND %I = $2 ORDER BY %I, key LIMIT 100000', _tbl, asked.session_column,
    asked.time_column) USING _home, _session;
END
$$;

-- Return the hidden texts of rows that this login may read now.
CREATE FUNCTION hivepipe.hidden_texts(_tbl text, _homes int[], _keys text[])
RETURNS TABLE (home int, key text, texts jsonb)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own int[] := ARRAY(SELECT hivepipe.own_homes());
  open int[] := ARRAY(SELECT h.id FROM hivepipe.homes h
    WHERE h.id = ANY (_homes) AND h.id IN (SELECT hivepipe.visible_homes())
      AND (h.id = ANY (own) OR hivepipe.is_noted(h.member, '*', '1 hour')));
  pairs text := (SELECT string_agg(format('%L, t.%I', name, name), ', ')
    FROM hivepipe.hidden_columns WHERE tbl = _tbl);
BEGIN
  IF pairs IS NULL THEN
    RAISE invalid_parameter_value USING MESSAGE = 'this table has no hidden texts';
  END IF;
  RETURN QUERY EXECUTE format('SELECT t.home, t.key, jsonb_build_object(%s)
    FROM unnest($1, $2) AS asked (home, key) JOIN hivepipe.%I t
      ON t.home = asked.home AND t.key = asked.key WHERE t.home = ANY ($3)', pairs, _tbl)
    USING _homes, _keys, open;
END
$$;

-- Full text search: unstemmed words of the first 100,000 characters, for any language.
CREATE FUNCTION hivepipe.words(_text text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT pg_catalog.to_tsvector('pg_catalog.simple'::regconfig, pg_catalog.left(coalesce(_text, ''), 100000))
$$;
CREATE INDEX prompts_by_words ON hivepipe.prompts USING gin (hivepipe.words(prompt));
CREATE INDEX summaries_by_words ON hivepipe.summaries USING gin (hivepipe.words(summary));
CREATE INDEX session_logs_by_words ON hivepipe.session_logs USING gin (hivepipe.words(message));

CREATE FUNCTION hivepipe.said(_phrases text[], _beginnings text[]) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT left('search: ' || array_to_string(_phrases, ' ') || ' ' ||
    array_to_string(_beginnings, '* '), 1000)
$$;

CREATE FUNCTION hivepipe.note_search(_phrases text[], _beginnings text[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT hivepipe.note(NULL, '*', hivepipe.said(_phrases, _beginnings), '10 minutes')
$$;

-- Return texts with all phrases and word prefixes, newest first. `note_search` must have recorded
-- the search; this function records the found sessions of other members.
CREATE FUNCTION hivepipe.find_texts(_phrases text[], _beginnings text[], _homes int[],
  _session text, _since text, _until text, _limit int)
RETURNS TABLE (home int, session_id text, at text, kind text, words text, total bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own int[] := ARRAY(SELECT hivepipe.own_homes());
  open int[] := ARRAY(SELECT v FROM hivepipe.visible_homes() v WHERE v = ANY (_homes));
  asked tsquery;
  each record;
BEGIN
  IF NOT EXISTS (SELECT FROM hivepipe.me() me JOIN hivepipe.audit a ON a.role = session_user
      AND a.reader IS NOT DISTINCT FROM me.id WHERE a.session_id = '*' AND a.owner IS NULL
      AND a.what = hivepipe.said(_phrases, _beginnings) AND a.at > now() - interval '10 minutes'
      AND a.xact IS DISTINCT FROM pg_current_xact_id_if_assigned()) THEN
    RAISE insufficient_privilege USING MESSAGE = 'this search is not noted';
  END IF;
  FOR each IN
    SELECT phraseto_tsquery('simple', p) AS q FROM unnest(_phrases) p
    UNION ALL
    SELECT (nullif(phraseto_tsquery('simple', b)::text, '') || ':*')::tsquery FROM unnest(_beginnings) b
  LOOP
    asked := coalesce(asked && each.q, each.q);
  END LOOP;
  FOR home, session_id, at, kind, words, total IN
    SELECT f.*, count(*) OVER () FROM (
      SELECT t.home, t.session_id, t.created_at, 'user', t.prompt FROM hivepipe.prompts t
        WHERE hivepipe.words(t.prompt) @@ asked
      UNION ALL
      SELECT t.home, t.session_id, t.made_at, 'summary', t.summary FROM hivepipe.summaries t
        WHERE hivepipe.words(t.summary) @@ asked
      UNION ALL
      SELECT t.home, t.session_id, t.created_at, 'log', t.message FROM hivepipe.session_logs t
        WHERE hivepipe.words(t.message) @@ asked) AS f (home, session_id, at, kind, words)
    WHERE f.home = ANY (open) AND starts_with(f.session_id, _session)
      AND f.at >= _since AND (_until = '' OR f.at < _until)
    ORDER BY f.at DESC LIMIT least(_limit, 1000)
  LOOP
    IF home <> ALL (own) THEN
      PERFORM hivepipe.note((SELECT member FROM hivepipe.homes h WHERE h.id = home), session_id,
        'search', '10 minutes');
    END IF;
    RETURN NEXT;
  END LOOP;
END
$$;

-- Reads of the member's own sessions by others; an administrator sees all reads and the searches.
CREATE OR REPLACE VIEW hivepipe.v_audit AS
  SELECT a.at, coalesce(r.name, a.role) AS reader, o.name AS owner, a.session_id, a.what
  FROM hivepipe.audit a LEFT JOIN hivepipe.members o ON o.id = a.owner
    LEFT JOIN hivepipe.members r ON r.id = a.reader
  WHERE pg_has_role(session_user, 'hivepipe_admin', 'MEMBER')
    OR a.owner IN (SELECT id FROM hivepipe.me());

GRANT SELECT ON hivepipe.v_audit TO hivepipe_reader, hivepipe_admin;
GRANT EXECUTE ON FUNCTION hivepipe.visible_homes(), hivepipe.own_homes(), hivepipe.me(),
  hivepipe.note_read(int, text, text), hivepipe.note_list(int[], text),
  hivepipe.session_rows(int, text, text), hivepipe.hidden_texts(text, int[], text[]),
  hivepipe.words(text), hivepipe.note_search(text[], text[]),
  hivepipe.find_texts(text[], text[], int[], text, text, text, int) TO hivepipe_reader;
