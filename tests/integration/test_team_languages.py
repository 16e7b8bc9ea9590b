"""A server whose messages are in another language, as Debian sets it up in other countries."""

import subprocess

import pytest

from hivepipe.errors import TeamAwayError, TeamRefusedError
from hivepipe.team.connection import connected
from tests.postgres import debians_folder, serving
from tests.team_scene import Team

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
