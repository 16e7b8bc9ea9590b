"""Settings of server and shell (encoding, dates, time zone, host) do not change the results."""

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hivepipe.errors import TeamAwayError, TeamError, TeamRefusedError
from hivepipe.team import address, invites
from hivepipe.team.connection import connected, one
from hivepipe.team.policy import level_of
from hivepipe.team.retention import drop_next, retention_of
from tests.postgres import debians_folder, serving
from tests.team_scene import ADMIN, SECRET, HomeOfTeam, Team, same_rows

UNUSUAL = {
    "datestyle": "German, DMY",
    "timezone": "America/New_York",
    "client_encoding": "LATIN1",
    "bytea_output": "escape",
    "intervalstyle": "sql_standard",
    "default_transaction_isolation": "serializable",
    "standard_conforming_strings": "off",
}

TEXT = 'fox 🦊 and "ä\\ NULL {a,b}'


@pytest.fixture
def unusual_team(team: Team) -> Team:
    for name, value in UNUSUAL.items():
        team.server.psql(f"ALTER DATABASE {team.database} SET {name} = '{value}'")
    return team


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_cannot_store_every_text_is_refused(team: Team, encoding: str) -> None:
    name = f"of_{encoding.lower()}"
    team.server.psql(
        f"CREATE DATABASE {name} OWNER {ADMIN} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'"
    )
    login = address.parse(team.server.url(name, f"{ADMIN}:{SECRET}"))
    with pytest.raises(TeamError, match=f"{encoding}.*ENCODING 'UTF8'"), connected(login):
        pass


def test_times_are_utc_with_any_server_settings(unusual_team: Team, tmp_path: Path) -> None:
    home = HomeOfTeam(tmp_path / "hive.db", unusual_team.joined("ann").writes)
    home.work("s-1")
    home.ship()
    with connected(unusual_team.admin) as connection:
        made = invites.invite(connection, unusual_team.admin, "bob", timedelta(hours=1))
        seen = one(connection, "SELECT max(seen_at) FROM hivepipe.v_members")
    now = datetime.now(UTC)
    assert timedelta(minutes=59) < made.expires_at - now <= timedelta(hours=1)
    assert seen.utcoffset() == timedelta(0)
    assert now - seen < timedelta(minutes=1)


def test_retention_does_not_depend_on_the_date_style(unusual_team: Team, tmp_path: Path) -> None:
    home = HomeOfTeam(tmp_path / "hive.db", unusual_team.joined("ann").writes)
    home.work("old")
    home.sql("UPDATE sessions SET updated_at = '2020-01-01T00:00:00.000Z'")
    home.ship()
    with connected(unusual_team.admin) as connection:
        one(connection, "SELECT hivepipe.set_retention(%s)", 1)
        while drop_next(connection):
            pass
        found = retention_of(connection)
    assert found.dropped_before == found.kept_from
    assert unusual_team.count("sessions") == 0


def test_every_text_arrives_with_any_server_settings(unusual_team: Team, tmp_path: Path) -> None:
    home = HomeOfTeam(tmp_path / "hive.db", unusual_team.joined("ann").writes)
    home.work("s-1")
    unusual_team.query("SELECT hivepipe.set_policy('*', 'everything')")
    home.sql(f"UPDATE prompts SET prompt = '{TEXT}'")
    home.ship()
    assert same_rows(unusual_team, home)
    stored = unusual_team.rows(
        "SELECT DISTINCT encode(convert_to(prompt, 'UTF8'), 'hex') FROM hivepipe.prompts"
    )
    assert bytes.fromhex(stored[0][0]).decode() == TEXT


def test_no_variable_of_the_shell_changes_host_dates_or_texts(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = {
        "PGHOSTADDR": "192.0.2.1",
        "PGCLIENTENCODING": "LATIN1",
        "PGDATESTYLE": "German",
        "PGTZ": "America/New_York",
        "PGREQUIREPEER": "nobody-of-this-name",
        "PGSSLNEGOTIATION": "direct",
    }
    with monkeypatch.context() as shell:
        for name, value in variables.items():
            shell.setenv(name, value)
        with connected(team.admin._replace(host="127.0.0.1")) as connection:
            assert one(connection, "SELECT '🦊'") == "🦊"
            assert one(connection, "SELECT now()").utcoffset() == timedelta(0)
            assert one(connection, "SELECT DATE '2026-11-25'::text") == "2026-11-25"


def test_a_name_has_letters_of_any_language_under_the_locale_c(team: Team) -> None:
    assert team.rows("SELECT datctype FROM pg_database WHERE datname = current_database()") == [
        ["C"]
    ]
    for name in ("Jürgen", "Łukasz Ż", "王小明", "ann@acme.example"):
        assert team.joined(name).member == name


def test_an_invalid_name_of_a_member_is_refused(team: Team) -> None:
    for name in ("", " ann", "@ann", "ann/desk", "an\tn", "a" * 101):
        with pytest.raises(TeamError, match="members_name_check"):
            team.invited(name)


@pytest.mark.skipif(debians_folder() is None, reason="the wheel's postgresql has no ICU")
def test_two_patterns_of_one_length_mean_the_same_to_server_and_machine() -> None:
    """A collation of a language has another order than the code points that a machine compares."""
    policies = {"pay-*": "nothing", "pay*b": "everything", "?*": "prompts", "*?": "metadata"}
    with serving(debians_folder()) as server:
        how = "TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"
        team = Team.on(server, how)
        for pattern, level in policies.items():
            team.query("SELECT hivepipe.set_policy(%s, %s)", pattern, level)
        for project in ("pay-b", "pay-c", "pay/b", "xy"):
            found = team.rows(f"SELECT hivepipe.team_level('{project}')")
            assert found == [[level_of(project, policies)]], project


GERMAN = "de_DE.utf8"


@pytest.mark.usefixtures("team")  # no team of the user that runs the tests
def test_a_revoked_machine_is_refused_in_any_language() -> None:
    programs = debians_folder()
    locales = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False).stdout
    if programs is None or GERMAN not in locales.split():
        pytest.skip(f"needs Debian's postgresql and the locale {GERMAN}")
    with serving(programs, "-c", f"lc_messages={GERMAN}") as server:
        team = Team.on(server)
        login = team.joined("ann").writes
        with connected(login):
            pass
        team.query("SELECT hivepipe.revoke('laptop')")
        with pytest.raises(TeamRefusedError, match="fehlgeschlagen"), connected(login):
            pass
        server.stop()
        with pytest.raises(TeamAwayError), connected(login):
            pass
