"""A team's server after an upgrade from Debian's PostgreSQL 15 to a later version."""

import subprocess
from pathlib import Path

import pytest

from hivepipe.errors import TeamRefusedError
from hivepipe.team import invites
from hivepipe.team.connection import connected
from tests.postgres import ADMIN, Server, debians_folder, serving, wheels_folder
from tests.team_scene import HomeOfTeam, Team, same_rows


def upgrade(old: Server, new: Server) -> None:
    """Copy roles and databases with the new version's programs, as pg_upgrade does."""

    def run(program: str, server: Server, given: bytes = b"") -> bytes:
        place = ["-h", server.folder, "-p", str(server.port), "-U", ADMIN]
        words = [new.programs / program, *place]
        words += ["postgres"] if program == "psql" else []
        return subprocess.run(words, input=given, stdout=subprocess.PIPE, check=True).stdout

    run("psql", new, run("pg_dumpall", old))


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
