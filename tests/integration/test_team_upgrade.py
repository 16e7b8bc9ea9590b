"""Upgrades: of a team's schema, and from Debian's PostgreSQL 15 to a later version."""

import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import PIPE
from urllib.parse import quote

import pytest

from hivepipe.errors import TeamError, TeamRefusedError
from hivepipe.team import address, invites, schema_steps
from hivepipe.team.connection import connected
from tests.conftest import ROOT, until
from tests.postgres import ADMIN, Server, debians_folder, serving, wheels_folder
from tests.team_scene import SECRET, HomeOfTeam, Team, same_rows


def upgrade(old: Server, new: Server) -> None:
    """Copy roles and databases with the new version's programs, as pg_upgrade does."""
    run(new.programs / "psql", new, "postgres", given=run(new.programs / "pg_dumpall", old))


def run(program: Path, server: Server, *words: str, given: bytes = b"") -> bytes:
    place = ["-h", str(server.folder), "-p", str(server.port), "-U", ADMIN]
    done = subprocess.run([program, *place, *words], input=given, stdout=PIPE, check=True)
    return done.stdout


def test_a_second_administrator_of_a_server_is_told_what_to_grant(team: Team) -> None:
    server, name = team.server, "second chief"
    if int(server.psql("SHOW server_version_num")) < 160_000:
        pytest.skip("PostgreSQL 15 lets CREATEROLE grant every role")
    server.psql(f"CREATE ROLE \"{name}\" LOGIN CREATEROLE PASSWORD '{SECRET}'")
    server.psql(f'CREATE DATABASE "{name}" OWNER "{name}"')
    login = address.parse(server.url(quote(name), f"{quote(name)}:{SECRET}"))
    try:
        with pytest.raises(TeamRefusedError) as told, connected(login) as connection:
            schema_steps.apply(connection)
        server.psql(str(told.value).partition("psql: ")[2])
        with connected(login) as connection:
            assert schema_steps.apply(connection) == schema_steps.step_names()
    finally:
        server.psql(f'DROP DATABASE "{name}"')
        server.psql(f'DROP OWNED BY "{name}"; DROP ROLE "{name}"')


def test_team_init_waits_for_batches_on_their_way(team: Team) -> None:
    """`ship` locks its home, and then each table. The lock of homes prevents a deadlock."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    with (
        connected(team.admin) as batch,
        connected(team.admin) as admin,
        ThreadPoolExecutor() as threads,
    ):
        batch.execute("SET ROLE hivepipe_owner")
        with batch.transaction():
            batch.execute("LOCK TABLE hivepipe.homes IN ROW SHARE MODE")
            batch.execute("LOCK TABLE hivepipe.usage IN ROW EXCLUSIVE MODE")
            upgrade = threads.submit(schema_steps.apply, admin, attempts=1)
            until(lambda: int(team.server.psql(waiting)), "team init does not wait")
            batch.execute("LOCK TABLE hivepipe.sessions IN ROW EXCLUSIVE MODE")
        assert upgrade.result(60) == []


def test_team_init_is_repeated_after_a_deadlock(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team.rows("CREATE SEQUENCE hivepipe.attempts; GRANT ALL ON hivepipe.attempts TO PUBLIC")
    steps = shutil.copytree(schema_steps._FOLDER, tmp_path / "schema")
    (steps / "099_next.sql").write_text("""
        DO $$ BEGIN
          IF nextval('hivepipe.attempts') < 3 THEN RAISE deadlock_detected; END IF;
        END $$
    """)
    monkeypatch.setattr(schema_steps, "_FOLDER", steps)
    with connected(team.admin) as connection:
        assert schema_steps.apply(connection) == ["099_next.sql"]


@pytest.mark.usefixtures("team")  # no team of the user that runs the tests
def test_an_upgraded_server_still_invites_and_revokes(tmp_path: Path) -> None:
    programs = debians_folder()
    if programs is None or wheels_folder() is None:
        pytest.skip("needs Debian's postgresql and the wheel")
    with serving(programs) as old, serving() as new:
        before = Team.on(old)
        before.query("SELECT hivepipe.set_policy('*', 'everything')")
        login, other = before.joined("ann").writes, before.joined("ann", "desk").writes
        home = HomeOfTeam(tmp_path / "hive.db", login)
        home.work("one")
        home.ship()
        upgrade(old, new)
        team = Team(new, before.database)
        home.login = login._replace(host=str(new.folder), port=new.port)
        home.work("two")
        home.ship()
        assert same_rows(team, home)
        assert team.joined("bob").machine == "laptop"
        with connected(team.admin) as connection:
            assert invites.add_page(connection, team.admin.with_login("", "")).user
        team.query("SELECT hivepipe.revoke('ann/laptop'), hivepipe.revoke('desk')")
        for each in (home.login, other._replace(host=str(new.folder), port=new.port)):
            with pytest.raises(TeamRefusedError), connected(each):
                pass
        assert "PostgreSQL 15" not in new.psql("SELECT version()")


@pytest.mark.usefixtures("team")
def test_a_superuser_mends_a_server_that_was_upgraded_without_team_init(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    programs = debians_folder()
    if programs is None or wheels_folder() is None:
        pytest.skip("needs Debian's postgresql and the wheel")
    _, _, advice = (ROOT / "docs" / "team.md").read_text().partition("- **PostgreSQL 15**")
    statements = re.findall(r"^      (.+\n)", advice.partition("\n- ")[0], re.MULTILINE)
    with serving(programs) as old, serving() as new:
        with monkeypatch.context() as older:
            names = [name for name in schema_steps.step_names() if name < "021"]
            older.setattr(schema_steps, "step_names", lambda: names)
            before = Team.on(old)
        before.joined("ann")
        upgrade(old, new)
        team = Team(new, before.database)
        with connected(team.admin) as connection:
            schema_steps.apply(connection)
        with pytest.raises(TeamError):
            team.joined("bob")
        with pytest.raises(TeamError):
            team.query("SELECT hivepipe.revoke('ann/laptop')")
        run(new.programs / "psql", new, "postgres", given="".join(statements).encode())
        assert team.joined("bob").machine == "laptop"
        team.query("SELECT hivepipe.revoke('ann/laptop'), hivepipe.revoke('bob/laptop')")
