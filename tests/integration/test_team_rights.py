"""Each role is refused what it may not do: on every table, by every function, with hostile SQL."""

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from psycopg import Connection, DataError

from hivepipe.errors import TeamError, TeamRefusedError
from hivepipe.team import deletion, invites, schema_steps
from hivepipe.team.address import Address
from hivepipe.team.connection import connected, one, translated
from hivepipe.team.invites import Joined, new_login
from hivepipe.team.shipment import Shipment
from tests.team_scene import TABLES, HomeOfTeam, Team

TABLES_SQL = "SELECT tablename FROM pg_tables WHERE schemaname = 'hivepipe'"
TEXTS = ("prompts", "summaries", "session_logs")


People = tuple[Team, dict[str, Joined]]


def four_members(team: Team, folder: Path) -> People:
    """Return a team and its four members, each with a session; two share a team, one sees all."""
    team.query("SELECT hivepipe.set_policy('*', 'everything')")
    people = {
        "ann": team.joined("ann", team="blue"),
        "bob": team.joined("bob", team="blue", sees="team"),
        "eve": team.joined("eve"),
        "tom": team.joined("tom", sees="all"),
    }
    for name, joined in people.items():
        home = HomeOfTeam(folder / name / "hive.db", joined.writes)
        home.work(f"of-{name}")
        home.ship()
    return team, people


@pytest.fixture
def own(team: Team, tmp_path: Path) -> People:
    """Members that a test may change."""
    return four_members(team, tmp_path)


@pytest.fixture(scope="module")
def shared(unused_team: Team, tmp_path_factory: pytest.TempPathFactory) -> People:
    return four_members(unused_team.copied(), tmp_path_factory.mktemp("members"))


def refused(login: Address, sql: str, *values: Any) -> bool:
    """Return whether a login is refused.

    Retries while the server still counts an ended connection.
    """
    try:
        with connected(login) as connection:
            connection.execute(sql, values)
    except TeamRefusedError:
        return True
    except TeamError as error:
        if "too many connections" not in str(error):
            raise
        time.sleep(0.05)
        return refused(login, sql, *values)
    return False


def denied(connection: Connection[Any], *statements: str) -> set[str]:
    """Return the statements that are refused."""
    found = set()
    for sql in statements:
        try:
            with translated():
                connection.execute(sql)
        except TeamRefusedError:
            found.add(sql)
    return found


def functions(team: Team) -> Iterator[tuple[str, str]]:
    """Yield the name of every function and a call of it with NULLs."""
    sql = """
        SELECT proname, format('SELECT hivepipe.%I(%s)', proname, (
          SELECT coalesce(string_agg(format('NULL::%s', format_type(t, NULL)), ', '), '')
          FROM unnest(proargtypes) t))
        FROM pg_proc WHERE pronamespace = 'hivepipe'::regnamespace
    """
    yield from ((name, call) for name, call in team.rows(sql))


MAY_CALL = {
    "writes": {
        *("open_home", "policy_version", "team_policies", "ensure_month", "sweep", "ship"),
        *("leave", "terms_of_machine", "archive_store", "listed_archives", "announce_object"),
        *("add_segment", "drop_archives", "drop_machines_archives", "due_leftovers"),
        *("end_leftovers", "retention", "drop_old"),
    },
    "reads": {
        *("visible_homes", "own_homes", "me", "note_read", "note_list", "session_rows"),
        *("hidden_texts", "words", "note_search", "find_texts", "archive_store"),
        *("session_segments", "segment_content", "level_of_session"),
    },
    "invite": {"terms_of_invite", "join_team"},
}
MAY_READ = {
    "writes": {"schema_steps"},
    "reads": {*TABLES, "schema_steps"} - {"sessions", "agents", "skill_uses"},
    "invite": set[str](),
}


@pytest.mark.parametrize("kind", MAY_CALL)
def test_a_login_accesses_only_tables_of_its_role(shared: People, kind: str) -> None:
    team, people = shared
    login = team.invited("ann") if kind == "invite" else getattr(people["ann"], kind)
    tables = [name for (name,) in team.rows(TABLES_SQL)]
    assert len(tables) > 20
    columns = team.rows(
        "SELECT DISTINCT ON (attrelid) relname, attname FROM pg_attribute "
        "JOIN pg_class ON pg_class.oid = attrelid WHERE attnum > 0 AND attidentity = '' "
        "AND NOT attisdropped AND relnamespace = 'hivepipe'::regnamespace"
    )
    column_of = dict(columns)
    with connected(login) as connection:
        for table in tables:
            read = f"SELECT * FROM hivepipe.{table}"
            assert bool(denied(connection, read)) == (table not in MAY_READ[kind]), table
            writes = {
                f"INSERT INTO hivepipe.{table} DEFAULT VALUES",
                f"UPDATE hivepipe.{table} SET {column_of[table]} = {column_of[table]}",
                f"DELETE FROM hivepipe.{table}",
                f"TRUNCATE hivepipe.{table}",
                f"DROP TABLE hivepipe.{table}",
                f"ALTER TABLE hivepipe.{table} DISABLE ROW LEVEL SECURITY",
            }
            assert denied(connection, *writes) == writes


@pytest.mark.parametrize("kind", MAY_CALL)
def test_a_login_calls_only_functions_of_its_role(shared: People, kind: str) -> None:
    team, people = shared
    login = team.invited("ann") if kind == "invite" else getattr(people["ann"], kind)
    called = dict(functions(team))
    assert MAY_CALL[kind] <= set(called)
    others = {call for name, call in called.items() if name not in MAY_CALL[kind]}
    with connected(login) as connection:
        assert denied(connection, *others) == others


HOSTILE = {
    "SET ROLE hivepipe_owner", "SET ROLE hivepipe_admin", "SET ROLE hivepipe_reader",
    "SET SESSION AUTHORIZATION chief", "CREATE TABLE hivepipe.mine (a int)",
    "CREATE TEMP TABLE usage (a int)", "CREATE TEMP VIEW usage AS SELECT 1",
    "CREATE FUNCTION hivepipe.ship() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE TABLE public.mine (a int)", "CREATE SCHEMA mine", "CREATE ROLE mine",
    "ALTER ROLE CURRENT_USER CONNECTION LIMIT -1", "GRANT hivepipe_admin TO CURRENT_USER",
    "SELECT pg_read_file('/etc/passwd')", "COPY (SELECT 1) TO PROGRAM 'id'",
    "SELECT * FROM pg_authid", "ALTER SYSTEM SET fsync = off",
}  # fmt: skip


def test_hostile_sql_of_a_machine_is_refused(team: Team) -> None:
    with connected(team.joined("ann").writes) as connection:
        assert denied(connection, *HOSTILE) == HOSTILE


def test_a_machine_writes_only_rows_of_its_own_member(own: People, tmp_path: Path) -> None:
    team, people = own
    ((bobs, before),) = team.rows(
        "SELECT uuid, mark FROM hivepipe.homes h JOIN hivepipe.members m ON m.id = h.member "
        "WHERE m.name = 'bob'"
    )
    ship = "SELECT hivepipe.ship(%s, %s, %s, %s::jsonb, %s::jsonb, false, %s)"
    row = '{"sessions": {"key": ["of-bob"], "version": [9e18], "id": ["of-bob"], "home": [2]}}'
    gone = '{"sessions": [{"key": "of-bob", "version": 9e18}]}'
    policy = team.query("SELECT hivepipe.policy_version()")
    with connected(people["eve"].writes) as connection:
        outcome = one(connection, ship, bobs, int(before), 1 << 62, row, gone, policy)
        assert outcome == {"mark": None, "policy_version": policy, "stored": False}
        # A home of eve's with the same id is another home.
        one(connection, "SELECT hivepipe.open_home(%s, 'x')", bobs)
        assert one(connection, ship, bobs, 0, 1 << 62, row, "{}", policy)["stored"]
        one(connection, "SELECT hivepipe.sweep(%s, %s)", bobs, 1 << 62)
    assert team.count("sessions", "id = 'of-bob' AND objective = 'a title'") == 1
    assert team.rows(f"SELECT mark FROM hivepipe.homes WHERE uuid = '{bobs}' AND mark = {before}")


def test_advisory_locks_of_a_login_block_nobody(team: Team, tmp_path: Path) -> None:
    team.query("SELECT hivepipe.set_policy('*', 'everything')")
    ann = HomeOfTeam(tmp_path / "hive.db", team.joined("ann").writes)
    ann.work("one", 1)
    ann.sql("UPDATE usage SET created_at = '2026-03-31T10:00:00.000Z'")
    with connected(team.joined("eve").writes) as hostile:
        for name in ("ensure_month", "drop_old", "schema"):
            hostile.execute(f"SELECT pg_advisory_lock(hashtext('hivepipe.{name}'))")
        ann.ship()
        assert team.count("usage_2026_03") == 1
        team.query("SELECT hivepipe.set_retention(1)")
        assert team.query("SELECT hivepipe.drop_old()")["places"]["partition usage_2026_03"] == 1
        with connected(team.admin) as connection:
            assert schema_steps.apply(connection) == []


def test_only_who_has_the_owners_role_forgets(team: Team) -> None:
    team.joined("ann")
    psql = team.server.psql
    psql("CREATE ROLE vice LOGIN PASSWORD 'of-vice'; GRANT hivepipe_admin TO vice")
    vice = team.admin.with_login("vice", "of-vice")
    ann = deletion.Found("member", "ann")
    try:
        with pytest.raises(TeamRefusedError, match="role"), connected(vice) as connection:
            deletion.forget(connection, ann)
        assert team.count("members") == 1
        psql("GRANT hivepipe_owner TO vice")
        with connected(vice) as connection:
            deletion.forget(connection, ann)
        assert team.count("members") == 0
        assert team.rows("SELECT by_role FROM hivepipe.deletions") == [["vice"]]
    finally:
        psql("DROP ROLE vice")


def test_forgotten_texts_leave_the_statistics(own: People) -> None:
    team, _ = own
    texts = "concat(most_common_vals, histogram_bounds)"
    seen = (
        f"SELECT tablename FROM pg_stats WHERE schemaname = 'hivepipe' AND {texts} LIKE '%of-ann%'"
    )
    contents = "hivepipe.archive_contents"
    team.rows(f"INSERT INTO {contents} VALUES (1, 'of-ann', ''), (1, 'of-bob', '')")
    team.rows("ANALYZE")
    team.rows(f"DELETE FROM {contents} WHERE hash = 'of-ann'")
    assert {"prompts", "archive_contents"} <= {name for (name,) in team.rows(seen)}
    with connected(team.admin) as connection:
        deletion.forget(connection, deletion.Found("session", "of-ann"))
    assert team.rows(seen) == []


def test_a_revoked_machine_is_refused_at_once_and_its_rows_are_kept(
    own: People, tmp_path: Path
) -> None:
    team, people = own
    home = HomeOfTeam(tmp_path / "eve" / "hive.db", people["eve"].writes)
    with Shipment(home.home, home.login, home.share) as connected_before:
        assert team.query("SELECT hivepipe.revoke('eve/laptop')") == "machine eve/laptop"
        home.work("later")
        with pytest.raises(TeamRefusedError, match="revoked"):
            connected_before.ship_next()
    with pytest.raises(TeamRefusedError, match="login is not valid"):
        home.ship()
    assert refused(people["eve"].reads, "SELECT 1")
    assert team.count("sessions", "id = 'of-eve'") == 1
    assert team.count("sessions", "id = 'later'") == 0


def test_logins_that_own_something_are_ended(team: Team) -> None:
    """PostgreSQL drops no role with a large object, which every login can make."""
    invited, joined = team.invited("ann"), team.joined("ann")
    with connected(team.admin) as connection:
        page = invites.add_page(connection, team.admin.with_login("", ""))
    logins = (invited, joined.writes, joined.reads, page)
    for login in logins:
        with connected(login) as connection:
            connection.execute("SELECT lo_create(0)")
    assert team.query("SELECT hivepipe.revoke('ann')") == "1 open invites of ann"
    team.query("SELECT hivepipe.forget_member('ann')")
    assert team.query("SELECT hivepipe.end_pages()") == 1
    assert all(refused(login, "SELECT 1") for login in logins)
    assert team.count("members") == 0


# ---- readers
def seen(login: Address, table: str) -> set[str]:
    column = "id" if table == "sessions" else "session_id"
    sql = f"SELECT DISTINCT {column} AS s FROM hivepipe.{table}"
    with connected(login) as connection:
        return {row["s"].removeprefix("of-") for row in connection.execute(sql)}


def test_readers_see_their_own_rows_their_teams_or_all(shared: People) -> None:
    _, people = shared
    expected = {
        "ann": {"ann"},
        "bob": {"ann", "bob"},
        "eve": {"eve"},
        "tom": {"ann", "bob", "eve", "tom"},
    }
    for name, others in expected.items():
        for table in ("sessions", "usage"):
            assert seen(people[name].reads, table) == others
        for table in ("prompts",):
            assert seen(people[name].reads, table) == {name}


def test_an_administrator_without_the_owners_role_reads_no_rows(own: People) -> None:
    team, _ = own
    name = f"helper_{team.database}"
    team.server.psql(f"CREATE ROLE {name} LOGIN PASSWORD 'x' IN ROLE hivepipe_admin")
    login = team.admin.with_login(name, "x")
    for table in TABLES:
        assert refused(login, f"SELECT * FROM hivepipe.{table}")
    assert refused(login, "DELETE FROM hivepipe.audit")
    assert refused(login, "SELECT hivepipe.delete_session(1, 'of-ann')")
    with connected(login) as connection:
        assert len(connection.execute("SELECT * FROM hivepipe.v_members").fetchall()) == 4


# ---- invites
def test_a_used_invite_is_refused(team: Team) -> None:
    invited = team.invited("ann")
    with connected(invited) as thief, connected(invited) as connection:
        joined = invites.join(connection, invited, "laptop")
        with pytest.raises(TeamRefusedError, match="used"), translated():
            invites.join(thief, invited, "of-the-thief")
    with pytest.raises(TeamRefusedError, match="login is not valid"), connected(invited):
        pass
    assert joined.machine == "laptop"
    assert team.count("machines") == 1


def test_an_invite_expires_and_can_be_revoked(team: Team) -> None:
    short = team.invited("ann", lives=timedelta(seconds=1))
    with connected(short) as connection:
        time.sleep(1.2)
        with pytest.raises(TeamRefusedError, match="expired"), translated():
            invites.join(connection, short, "laptop")
    with pytest.raises(TeamRefusedError), connected(short):
        pass
    other = team.invited("bob")
    assert team.query("SELECT hivepipe.revoke('bob')") == "1 open invites of bob"
    with pytest.raises(TeamRefusedError), connected(other):
        pass


def test_the_server_gets_no_secret(team: Team) -> None:
    invited = team.invited("ann")
    with connected(invited) as connection:
        login = new_login(connection, "machine")
        join = "SELECT hivepipe.join_team('laptop', %s, %s, %s, %s)"
        for name, verifier in (
            (login.name, login.secret),
            ("postgres", login.verifier),
            ("hivepipe_owner", login.verifier),
            ('hivepipe_machine_0123456789abcdef" SUPERUSER --', login.verifier),
        ):
            with pytest.raises((TeamError, DataError)):
                one(connection, join, name, verifier, "hivepipe_reader_" + "0" * 16, verifier)
        invites.join(connection, invited, "laptop")
    assert login.secret not in (team.server.folder / "log").read_text(errors="replace")
