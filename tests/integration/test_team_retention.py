"""`team retention` drops older months with their partitions, and does not accept them again."""

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from hivepipe.cli.main import main
from hivepipe.db.database import Database
from hivepipe.team.connection import connected, one
from hivepipe.team.retention import drop_next
from tests.integration.test_team_archives import sender, with_store
from tests.object_store import ObjectStore
from tests.postgres import debians_folder, serving
from tests.team_scene import ADMIN, SECRET, HomeOfTeam, Team

NOW = datetime.now(UTC)


def month(back: int) -> str:
    """Return the month that many months ago, as 2026-10."""
    number = NOW.year * 12 + NOW.month - 1 - back
    return f"{number // 12}-{number % 12 + 1:02d}"


ROWS = (
    """INSERT INTO sessions (id, status, project, objective, created_at, updated_at)
       VALUES (:id, 'ended', '/p/blue', 'a title', :at, :at)""",
    """INSERT INTO prompts (session_id, prompt, created_at, job_id)
       VALUES (:id, 'please do it', :at, :id)""",
    """INSERT INTO session_logs (session_id, log_level, message, created_at, job_id)
       VALUES (:id, 'INFO', 'a line', :at, :id)""",
    """INSERT INTO skill_uses (session_id, skill, kind, success, created_at, job_id)
       VALUES (:id, 'lint', 'tool', 1, :at, :id)""",
    """INSERT INTO usage VALUES (:id, 'r', :id, '', 0, 0, :at, 'claude-opus-5-5', '', '',
       10, 20, 0, 0, 0, 0)""",
    """INSERT INTO activity (session_id, since_ms, last_active_at, calls, failed, denied, warned,
       open_calls, turn_is_open) VALUES (:id, 1, :at, 1, 0, 0, 0, 0, 0)""",
)


def write_session(home: HomeOfTeam, session: str, back: int) -> None:
    """Write a session with rows of every kind, which ended in the month that many months ago."""
    at = f"{month(back)}-15T10:00:00.000Z"
    values = {"id": session, "at": at}
    with closing(Database(home.path)) as db, db.transaction():
        for sql in ROWS:
            db.execute(sql, values)


def shared_home(team: Team, tmp_path: Path) -> HomeOfTeam:
    """Return a home that has sent a session of each of five months."""
    team.query("SELECT hivepipe.set_policy('*', 'everything')")
    home = HomeOfTeam(tmp_path / "ann" / "hive.db", team.joined("ann").writes)
    for back in (0, 1, 2, 3, 4):
        write_session(home, f"s{back}", back)
    home.ship()
    return home


@pytest.fixture
def home(team: Team, tmp_path: Path) -> HomeOfTeam:
    return shared_home(team, tmp_path)


def kept_sessions(team: Team, table: str) -> set[str]:
    column = "id" if table == "sessions" else "session_id"
    return {row[0] for row in team.rows(f"SELECT {column} FROM hivepipe.{table}") if row[0]}


def run_retention(team: Team, *words: str) -> str:
    words += ("--admin", team.server.url(team.database, ADMIN))
    done = CliRunner().invoke(main, ["team", "retention", *words], input=f"{SECRET}\n")
    assert done.exit_code == 0, done.output
    return done.stdout


TABLES = ("sessions", "activity", "usage", "prompts", "skill_uses", "session_logs")


def test_older_months_are_dropped_and_not_accepted_again(
    team: Team, home: HomeOfTeam, tmp_path: Path
) -> None:
    assert "kept: all" in run_retention(team)
    output = run_retention(team, "2", "--yes")
    for back in (3, 4):
        part = f"usage_{month(back).replace('-', '_')}"
        assert f"dropped: partition {part}: 1" in output
        assert team.rows(f"SELECT count(*) FROM pg_class WHERE relname = '{part}'") == [["0"]]
    assert "dropped: table sessions: 2" in output
    assert output.count("proof ") == 3 == team.count("deletions", "cause LIKE 'older than %'")
    assert f"from {month(2)}-01 on" in output
    for table in TABLES:
        assert kept_sessions(team, table) == {"s0", "s1", "s2"}, table
    # Each of these makes a machine send everything: another policy, a restored home, a new home.
    team.query("SELECT hivepipe.set_policy('other', 'metadata')")
    home.sql("UPDATE sessions SET model = 'x'")
    home.ship()
    again = HomeOfTeam(tmp_path / "bob" / "hive.db", team.joined("bob").writes)
    write_session(again, "old", 5)
    again.ship()
    for table in TABLES:
        assert kept_sessions(team, table) == {"s0", "s1", "s2"}, table
    assert home.count("sessions") == 5
    assert "dropped" not in run_retention(team)


def test_a_session_that_continues_is_kept(team: Team, home: HomeOfTeam) -> None:
    run_retention(team, "2", "--yes")
    home.sql(f"UPDATE sessions SET updated_at = '{month(0)}-01T00:00:01.000Z' WHERE id = 's4'")
    home.ship()
    assert kept_sessions(team, "sessions") == {"s0", "s1", "s2", "s4"}
    assert kept_sessions(team, "prompts") == {"s0", "s1", "s2"}


def test_connecting_machines_drop_expired_months(team: Team, home: HomeOfTeam) -> None:
    team.query("SELECT hivepipe.set_retention(2)")
    for _ in range(4):  # one call for each month, and one for the tables without months
        home.ship()
    for table in TABLES:
        assert kept_sessions(team, table) == {"s0", "s1", "s2"}, table
    assert team.count("deletions", "by_role LIKE 'hivepipe_machine_%'") == 3
    with connected(home.login) as connection:
        assert drop_next(connection) is None


def test_shipping_does_not_wait_for_readers_of_an_old_month(team: Team, home: HomeOfTeam) -> None:
    team.query("SELECT hivepipe.set_retention(2)")
    with connected(team.admin) as reader, reader.transaction():
        reader.execute("SET ROLE hivepipe_owner")
        one(reader, "SELECT count(*) FROM hivepipe.usage")
        write_session(home, "new", 0)
        home.ship()
    assert "new" in kept_sessions(team, "usage")
    assert "s4" in kept_sessions(team, "usage")
    home.ship()
    assert "s4" not in kept_sessions(team, "usage")


def test_a_longer_retention_gets_older_months_again(team: Team, home: HomeOfTeam) -> None:
    run_retention(team, "2", "--yes")
    run_retention(team, "all")
    home.ship()
    for table in ("usage", "sessions"):
        assert kept_sessions(team, table) == {"s0", "s1", "s2", "s3", "s4"}


def test_an_invalid_number_of_months_is_refused() -> None:
    for text in ("0", "-1", "twelve", "1201", "99999999999"):
        done = CliRunner().invoke(main, ["team", "retention", "--", text])
        assert done.exit_code == 64, text
        assert "months are a number from 1 to 1200, or all" in done.output


@pytest.mark.parametrize("where", ["s3", "database"])
def test_archives_are_dropped_with_their_sessions(
    team: Team, tmp_path: Path, bucket: ObjectStore, where: str
) -> None:
    with_store(team, bucket.place if where == "s3" else where)
    ann = sender(tmp_path, team)
    # The last time of its session counts too, not only the first line of the archive.
    team.rows(f"UPDATE hivepipe.archives SET started_at = '{month(5)}-15T10:00:00.000Z'")
    ann.home.sql(f"UPDATE sessions SET updated_at = '{month(0)}-15T10:00:00.000Z'")
    ann.home.ship()
    run_retention(team, "2", "--yes")
    assert team.count("archive_segments") == 1
    ann.home.sql(f"UPDATE sessions SET updated_at = '{month(5)}-15T10:00:00.000Z'")
    team.rows(f"UPDATE hivepipe.sessions SET updated_at = '{month(5)}-15T10:00:00.000Z'")
    output = run_retention(team, "1", "--yes")  # a later call drops what a machine sent late
    assert "dropped: archive segments" in output
    ann.home.ship()
    assert not ann.send().segments
    for table in ("sessions", "archives", "archive_segments", "archive_contents"):
        assert team.count(table) == 0, table
    assert not bucket.objects()


@pytest.mark.skipif(debians_folder() is None, reason="needs Debian's postgresql")
def test_months_are_dropped_in_debians_postgresql(tmp_path: Path) -> None:
    """In PostgreSQL 15 the creator of a role does not become its member."""
    with serving(debians_folder()) as older:
        team = Team.on(older)
        shared_home(team, tmp_path)
        assert f"partition usage_{month(4).replace('-', '_')}" in run_retention(team, "1", "--yes")
        assert kept_sessions(team, "prompts") == {"s0", "s1"}
