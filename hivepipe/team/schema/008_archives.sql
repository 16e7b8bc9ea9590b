-- Archives: the list of immutable segments. Their bytes are objects in S3 or rows of
-- `archive_contents`. The server cannot read encrypted ones.
INSERT INTO hivepipe.settings VALUES ('archive_store', 'none');  -- none, database, s3://...

CREATE TABLE hivepipe.archives (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  home int NOT NULL, member int NOT NULL, name text NOT NULL,
  session_id text NOT NULL, agent_id text NOT NULL DEFAULT '', agent_type text NOT NULL DEFAULT '',
  project text NOT NULL, started_at text NOT NULL DEFAULT '',
  edition bigint NOT NULL DEFAULT 0,  -- how often the archive's lines were replaced on the machine
  updated_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (home, name));
CREATE INDEX archives_by_session ON hivepipe.archives (session_id);

-- `first` and `last` are the byte offsets of the lines in the archive, `crc` is the CRC-32 of all
-- lines up to `last`, `hash` the SHA-256 of the stored bytes, `object` is '' in the database.
CREATE TABLE hivepipe.archive_segments (
  archive bigint NOT NULL REFERENCES hivepipe.archives ON DELETE CASCADE,
  number int NOT NULL, first bigint NOT NULL, last bigint NOT NULL, crc bigint NOT NULL,
  hash text NOT NULL CHECK (hash ~ '^[0-9a-f]{64}$'), size bigint NOT NULL,
  object text NOT NULL, cipher text NOT NULL DEFAULT '',
  home int NOT NULL, member int NOT NULL, session_id text NOT NULL,
  PRIMARY KEY (archive, number));
CREATE INDEX archive_segments_by_object ON hivepipe.archive_segments (object) WHERE object <> '';
CREATE INDEX archive_segments_by_hash ON hivepipe.archive_segments (home, hash) WHERE object = '';

CREATE TABLE hivepipe.archive_contents (
  home int NOT NULL, hash text NOT NULL, content bytea NOT NULL, PRIMARY KEY (home, hash));
ALTER TABLE hivepipe.archive_contents ALTER content SET STORAGE EXTERNAL;  -- already compressed

-- Objects to delete from the store at `due_at`. An object is announced here before it is written,
-- and removed from here when it is listed. If the machine is killed, it is deleted after an hour.
CREATE TABLE hivepipe.archive_leftovers (
  object text PRIMARY KEY, member int NOT NULL, session_id text NOT NULL,
  due_at timestamptz NOT NULL DEFAULT now());

GRANT SELECT ON hivepipe.archives, hivepipe.archive_segments, hivepipe.archive_leftovers
  TO hivepipe_admin;

-- Deleting a segment from the list also deletes its bytes.
CREATE FUNCTION hivepipe.leave_no_bytes() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF old.object = '' THEN
    DELETE FROM hivepipe.archive_contents WHERE home = old.home AND hash = old.hash
      AND NOT EXISTS (SELECT FROM hivepipe.archive_segments s
        WHERE s.home = old.home AND s.hash = old.hash AND s.object = '');
  ELSIF NOT EXISTS (SELECT FROM hivepipe.archive_segments WHERE object = old.object) THEN
    INSERT INTO hivepipe.archive_leftovers (object, member, session_id)
      VALUES (old.object, old.member, old.session_id)
      ON CONFLICT (object) DO UPDATE SET due_at = now();
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER leave_no_bytes AFTER DELETE ON hivepipe.archive_segments
  FOR EACH ROW EXECUTE FUNCTION hivepipe.leave_no_bytes();

CREATE FUNCTION hivepipe.archive_store() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT value FROM hivepipe.settings WHERE name = 'archive_store'
$$;

CREATE FUNCTION hivepipe.own_home(_home text) RETURNS hivepipe.homes
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  me hivepipe.machines := hivepipe.this_machine();
  found hivepipe.homes;
BEGIN
  SELECT * INTO found FROM hivepipe.homes WHERE member = me.member AND uuid = _home;
  IF found.id IS NULL THEN
    RAISE EXCEPTION USING MESSAGE = 'this home is not known: it sends its rows first';
  END IF;
  RETURN found;
END
$$;

-- The archives of a home that are listed: the last segment of each, and the CRC before it.
CREATE FUNCTION hivepipe.listed_archives(_home text) RETURNS jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  at hivepipe.homes := hivepipe.own_home(_home);
BEGIN
  RETURN jsonb_build_object(
    'store', hivepipe.archive_store(), 'home', at.id,
    'member', (SELECT name FROM hivepipe.members WHERE id = at.member),
    'policies', hivepipe.team_policies(), 'policy_version', hivepipe.policy_version(),
    'forgotten', (SELECT coalesce(jsonb_agg(session_id), '[]') FROM hivepipe.forgotten
      WHERE member = at.member),
    'archives', (SELECT coalesce(jsonb_object_agg(a.name, jsonb_build_object(
        'project', a.project, 'edition', a.edition, 'number', s.number, 'first', s.first, 'last', s.last, 'crc', s.crc,
        'cipher', s.cipher, 'object', s.object, 'crc_before', coalesce(b.crc, 0))), '{}')
      FROM hivepipe.archives a
        JOIN LATERAL (SELECT * FROM hivepipe.archive_segments WHERE archive = a.id
          ORDER BY number DESC LIMIT 1) s ON true
        LEFT JOIN hivepipe.archive_segments b ON b.archive = a.id AND b.number = s.number - 1
      WHERE a.home = at.id));
END
$$;

-- Announce an object before it is written: it is deleted unless it is listed within an hour.
CREATE FUNCTION hivepipe.announce_object(_home text, _session text, _object text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  at hivepipe.homes := hivepipe.own_home(_home);
BEGIN
  IF strpos(_object, '/' || at.id || '/') = 0 THEN
    RAISE insufficient_privilege USING MESSAGE = 'not an object of this home';
  END IF;
  INSERT INTO hivepipe.archive_leftovers VALUES (_object, at.member, _session, now() + interval '1 hour')
    ON CONFLICT (object) DO UPDATE SET due_at = excluded.due_at
      WHERE archive_leftovers.member = at.member;
END
$$;

-- List a segment whose bytes are stored or given. Its number is the next one, or the last one, which
-- it replaces. Return false if the policy or the list differ from what the machine knows.
CREATE FUNCTION hivepipe.add_segment(_home text, _archive jsonb, _segment jsonb, _content bytea,
  _policy_version bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  at hivepipe.homes := hivepipe.own_home(_home);
  new hivepipe.archive_segments := jsonb_populate_record(NULL::hivepipe.archive_segments, _segment);
  that hivepipe.archives := jsonb_populate_record(NULL::hivepipe.archives, _archive);
  reached bigint;
BEGIN
  PERFORM FROM hivepipe.homes WHERE id = at.id FOR UPDATE;
  IF _policy_version <> hivepipe.policy_version() OR hivepipe.team_level(that.project) <> 'everything'
      OR EXISTS (SELECT FROM hivepipe.forgotten f
        WHERE f.member = at.member AND f.session_id = that.session_id) THEN
    RETURN false;
  END IF;
  INSERT INTO hivepipe.archives AS a (home, member, name, session_id, agent_id, agent_type, project,
      started_at, edition)
    VALUES (at.id, at.member, that.name, that.session_id, that.agent_id, that.agent_type,
      that.project, that.started_at, that.edition)
    ON CONFLICT (home, name) DO UPDATE SET updated_at = now()
    RETURNING a.* INTO that;
  SELECT coalesce(max(last) FILTER (WHERE number < new.number), 0) INTO reached
    FROM hivepipe.archive_segments WHERE archive = that.id;
  IF new.first <> reached OR new.last <= new.first OR EXISTS (
      SELECT FROM hivepipe.archive_segments WHERE archive = that.id AND number > new.number)
      OR new.number <> (SELECT count(*) FROM hivepipe.archive_segments
        WHERE archive = that.id AND number < new.number) THEN
    RETURN false;
  END IF;
  IF new.object = '' THEN
    IF hivepipe.archive_store() <> 'database' OR length(_content) NOT BETWEEN 1 AND 1 << 28
        OR encode(sha256(_content), 'hex') <> new.hash THEN
      RAISE EXCEPTION USING MESSAGE = 'these are not the bytes of this hash';
    END IF;
    INSERT INTO hivepipe.archive_contents VALUES (at.id, new.hash, _content) ON CONFLICT DO NOTHING;
  ELSE
    DELETE FROM hivepipe.archive_leftovers WHERE object = new.object AND member = at.member;
    IF NOT FOUND AND NOT EXISTS (SELECT FROM hivepipe.archive_segments
        WHERE object = new.object AND home = at.id) THEN
      RETURN false;
    END IF;
  END IF;
  IF EXISTS (SELECT FROM hivepipe.archive_segments WHERE archive = that.id AND number = new.number
      AND hash = new.hash AND object = new.object AND last = new.last) THEN
    RETURN true;
  END IF;
  -- Keep the old row until the new one exists, so that bytes which both list are not deleted.
  UPDATE hivepipe.archive_segments SET number = -1 WHERE archive = that.id AND number = new.number;
  INSERT INTO hivepipe.archive_segments VALUES (that.id, new.number, new.first, new.last, new.crc,
    new.hash, new.size, new.object, coalesce(new.cipher, ''), at.id, at.member, that.session_id);
  DELETE FROM hivepipe.archive_segments WHERE archive = that.id AND number = -1;
  RETURN true;
END
$$;

-- Delete archives of a home by name, or all (NULL).
CREATE FUNCTION hivepipe.drop_archives(_home text, _names text[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  at hivepipe.homes := hivepipe.own_home(_home);
  gone bigint;
BEGIN
  DELETE FROM hivepipe.archives WHERE home = at.id AND (_names IS NULL OR name = ANY (_names));
  GET DIAGNOSTICS gone = ROW_COUNT;
  RETURN gone;
END
$$;

-- Objects to delete, locked until the caller's transaction ends: those of the machine's member, or
-- all for an administrator.
CREATE FUNCTION hivepipe.due_leftovers(_limit int) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  of_member int;
BEGIN
  IF NOT pg_has_role(session_user, 'hivepipe_admin', 'MEMBER') THEN
    of_member := (hivepipe.this_machine()).member;
  END IF;
  RETURN QUERY SELECT object FROM hivepipe.archive_leftovers
    WHERE due_at <= now() AND (of_member IS NULL OR member = of_member)
    ORDER BY object LIMIT _limit FOR UPDATE SKIP LOCKED;
END
$$;

-- Remove deleted objects from the list, and record those of forgotten sessions as proof.
CREATE FUNCTION hivepipe.end_leftovers(_objects text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  of_member int;
BEGIN
  IF NOT pg_has_role(session_user, 'hivepipe_admin', 'MEMBER') THEN
    of_member := (hivepipe.this_machine()).member;
  END IF;
  WITH gone AS (
    DELETE FROM hivepipe.archive_leftovers WHERE object = ANY (_objects) AND due_at <= now()
      AND (of_member IS NULL OR member = of_member) RETURNING *)
  INSERT INTO hivepipe.deletions (by_role, cause, member, session_id, places)
  SELECT session_user, 'objects of a forgotten session', g.member, g.session_id,
    jsonb_build_object('objects in the store', count(*))
  FROM gone g JOIN hivepipe.forgotten f ON f.member = g.member AND f.session_id = g.session_id
  GROUP BY g.member, g.session_id;
END
$$;

-- ---- forgetting, leaving, stricter policies

-- Delete archives; return the counts of segments by place. Objects wait for a login with the key.
CREATE FUNCTION hivepipe.delete_archives(_archives bigint[]) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  places jsonb;
BEGIN
  SELECT coalesce(jsonb_object_agg(place, number), '{}') INTO places FROM (
    SELECT CASE WHEN object = '' THEN 'archive segments in the database'
      ELSE 'archive segments, listed' END AS place, count(*) AS number
    FROM hivepipe.archive_segments WHERE archive = ANY (_archives) GROUP BY 1) p;
  DELETE FROM hivepipe.archives WHERE id = ANY (_archives);
  RETURN places;
END
$$;

-- Delete all archives of a leaving machine.
CREATE FUNCTION hivepipe.drop_machines_archives() RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  me hivepipe.machines := hivepipe.this_machine();
BEGIN
  RETURN hivepipe.delete_archives(ARRAY(SELECT a.id FROM hivepipe.archives a
    JOIN hivepipe.homes h ON h.id = a.home WHERE h.machine = me.id));
END
$$;

-- ---- reading

-- Fail unless this login may read a session now: its own, or one with a recorded read.
CREATE FUNCTION hivepipe.demand_note(_home int, _session text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF _home NOT IN (SELECT hivepipe.visible_homes()) OR NOT (
    _home IN (SELECT hivepipe.own_homes()) OR hivepipe.is_noted(
      (SELECT member FROM hivepipe.homes WHERE id = _home), _session, '10 minutes'))
  THEN
    RAISE insufficient_privilege USING MESSAGE = 'you may not read this session';
  END IF;
END
$$;

-- The team's level of a session's project, which explains to a reader why there is no archive.
CREATE FUNCTION hivepipe.level_of_session(_home int, _session text) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT hivepipe.team_level(project) FROM hivepipe.sessions
  WHERE home = _home AND key = _session AND home IN (SELECT hivepipe.visible_homes())
$$;

-- The segments of a session and its subagents; another member's only after a recorded read.
CREATE FUNCTION hivepipe.session_segments(_home int, _session text) RETURNS SETOF jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM hivepipe.demand_note(_home, _session);
  RETURN QUERY SELECT to_jsonb(s) || jsonb_build_object('name', a.name, 'agent_id', a.agent_id,
      'agent_type', a.agent_type, 'started_at', a.started_at)
    FROM hivepipe.archive_segments s JOIN hivepipe.archives a ON a.id = s.archive
    WHERE a.home = _home AND a.session_id = _session
    ORDER BY a.agent_id <> '', a.started_at, a.name, s.number;
END
$$;

-- The bytes of a segment under the same condition, or NULL if the session has no such segment.
CREATE FUNCTION hivepipe.segment_content(_home int, _session text, _hash text) RETURNS bytea
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM hivepipe.demand_note(_home, _session);
  RETURN (SELECT content FROM hivepipe.archive_contents
    WHERE home = _home AND hash = _hash AND EXISTS (SELECT FROM hivepipe.archive_segments s
      WHERE s.home = _home AND s.session_id = _session AND s.hash = _hash AND s.object = ''));
END
$$;

GRANT EXECUTE ON FUNCTION hivepipe.archive_store()
  TO hivepipe_admin, hivepipe_machine, hivepipe_reader;
GRANT EXECUTE ON FUNCTION hivepipe.listed_archives(text),
  hivepipe.announce_object(text, text, text),
  hivepipe.add_segment(text, jsonb, jsonb, bytea, bigint),
  hivepipe.drop_archives(text, text[]), hivepipe.drop_machines_archives() TO hivepipe_machine;
GRANT EXECUTE ON FUNCTION hivepipe.due_leftovers(int), hivepipe.end_leftovers(text[])
  TO hivepipe_machine, hivepipe_admin;
GRANT EXECUTE ON FUNCTION hivepipe.level_of_session(int, text), hivepipe.session_segments(int, text),
  hivepipe.segment_content(int, text, text) TO hivepipe_reader;
