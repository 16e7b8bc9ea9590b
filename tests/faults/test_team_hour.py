"""An uplink loses its connection for an hour and then has a slow one; its clock runs fast."""

import os
import posix
import subprocess
import sys
from pathlib import Path

import pytest

from hivepipe.team.membership import Membership, keep
from tests.conftest import Home, until
from tests.faults.lossy_proxy import LossyProxy
from tests.postgres import serving
from tests.team_scene import HomeOfTeam, Team

UPLINK = """
import time
from hivepipe.worker import own_process, uplink

class Clock:
    ahead = 0.0
    time = staticmethod(time.time)

    def monotonic(self):
        return time.monotonic() + self.ahead

    def sleep(self, secs):
        time.sleep(secs / 500)
        if self.ahead < 3600 <= self.ahead + secs:
            print("an hour later", flush=True)
        self.ahead += secs

uplink.time = Clock()
uplink.LOOK_SECS = 10.0  # thousands of looks would only take time
own_process.serve_alone(uplink.Uplink)
"""


@pytest.mark.long
def test_an_uplink_ships_all_rows_after_an_hour_without_connection(
    private_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(posix.environ, b"XDG_CONFIG_HOME", os.fsencode(tmp_path / "config"))
    env = {**private_home.env, "XDG_CONFIG_HOME": str(tmp_path / "config")}
    with serving() as server:
        team = Team.on(server)
        team.query("SELECT hivepipe.set_policy('*', 'everything')")
        proxy = LossyProxy(server.port)
        login = team.joined("ann").writes._replace(host="127.0.0.1", port=proxy.port)
        keep(Membership("ann", "desk", login.shown, {"*": "everything"}), login, None)
        ann = HomeOfTeam(private_home.database, login)
        ann.work("one", 1_000)
        proxy.cut_after = 0
        uplink = subprocess.Popen([sys.executable, "-I", "-c", UPLINK], env=env, stdout=-1)
        assert uplink.stdout
        try:
            assert uplink.stdout.readline() == b"an hour later\n"
            assert 60 < proxy.attempts < 150  # one every 30 to 60 s, except for the first ones
            assert team.count("prompts") == 0
            proxy.cut_after, proxy.delay = None, 0.02
            until(lambda: team.count("prompts") == 1_000, "the rows at the server", 60)
            assert team.count("usage") == 1_000
        finally:
            uplink.terminate()
            assert uplink.wait(10) == 0
            uplink.stdout.close()
            proxy.close()
