"""Machines and readers behind pgbouncer with `pool_mode=transaction` and one server connection."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import mkdtemp

import pytest

from hivepipe.errors import TeamRefusedError
from hivepipe.team.address import Address
from hivepipe.team.connection import connected, one
from hivepipe.team.shipment import Shipment
from tests.conftest import until
from tests.postgres import ADMIN, free_port, unprivileged
from tests.team_scene import HomeOfTeam, Team, same_rows

SETTINGS = """
[databases]
* = host={server.folder} port={server.port} auth_user={admin}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
pool_mode = transaction
default_pool_size = 1
server_login_retry = 1
auth_type = scram-sha-256
auth_query = SELECT usename, passwd FROM pg_shadow WHERE usename = $1
logfile = {folder}/log
"""


@pytest.fixture
def port(team: Team) -> Iterator[int]:
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if not program:
        pytest.skip("pgbouncer is not installed")
    folder = Path(mkdtemp(prefix="hp-pgb-", dir="/tmp"))
    found = free_port()
    settings = folder / "pgbouncer.ini"
    settings.write_text(SETTINGS.format(server=team.server, admin=ADMIN, port=found, folder=folder))
    team.server.own(settings)
    shutil.chown(folder, unprivileged().pw_uid, unprivileged().pw_gid)
    bouncer = subprocess.Popen([program, settings], **team.server.as_user())
    log = folder / "log"
    try:
        until(
            lambda: log.exists() and "listening" in log.read_text(), "pgbouncer does not listen", 10
        )
        yield found
    finally:
        bouncer.terminate()
        bouncer.wait()
        print(log.read_text())  # shown if the test fails
        shutil.rmtree(folder)


def through_pgbouncer(login: Address, port: int) -> Address:
    return login._replace(host="127.0.0.1", port=port)


def test_machines_share_one_connection(team: Team, port: int, tmp_path: Path) -> None:
    team.query("SELECT hivepipe.set_policy('*', 'everything')")
    joined = team.joined("ann")
    homes = [
        HomeOfTeam(tmp_path / str(number) / "hive.db", through_pgbouncer(joined.writes, port))
        for number in range(3)
    ]
    for number, home in enumerate(homes):
        home.work(f"session-{number}", 250)
    with ExitStack() as opened:
        shipments = [
            opened.enter_context(Shipment(home.home, home.login, home.share)) for home in homes
        ]
        while any([shipment.ship_next() for shipment in shipments]):
            pass
    assert same_rows(team, *homes)
    with connected(through_pgbouncer(joined.reads, port)) as connection:
        assert one(connection, "SELECT count(*) FROM hivepipe.sessions") == 3
    assert team.count("homes") == 3


def test_no_message_follows_the_end_of_a_call(team: Team, tmp_path: Path) -> None:
    """After Sync pgbouncer releases the server connection; a Flush would reserve it again."""
    team.query("SELECT hivepipe.set_policy('*', 'everything')")
    home = HomeOfTeam(tmp_path / "hive.db", team.joined("ann").writes)
    home.work("one", 250)
    trace = tmp_path / "trace"
    with trace.open("w") as written, Shipment(home.home, home.login, home.share) as shipment:
        shipment._connection.pgconn.trace(written.fileno())
        while shipment.ship_next():
            pass
        shipment._connection.pgconn.untrace()
    assert same_rows(team, home)
    sent = re.findall(r"\tF\t\d+\t(\w+)", trace.read_text())
    assert sent.count("Sync") > 3
    assert "Flush" not in sent


def test_a_revoked_machine_is_refused(team: Team, port: int, tmp_path: Path) -> None:
    team.query("SELECT hivepipe.set_policy('*', 'everything')")
    joined = team.joined("ann")
    home = HomeOfTeam(tmp_path / "hive.db", through_pgbouncer(joined.writes, port))
    home.work("one")
    home.ship()
    team.query("SELECT hivepipe.revoke(%s)", f"ann/{joined.machine}")
    home.work("two")
    with pytest.raises(TeamRefusedError):
        home.ship()
    assert team.count("sessions") == 1


def test_each_client_has_its_own_date_format(team: Team, port: int) -> None:
    """pgbouncer gives both clients the same connection in turn, with the settings of each."""
    team.server.psql(f"ALTER DATABASE {team.database} SET datestyle = 'German, DMY'")
    team.server.psql(f"ALTER DATABASE {team.database} SET timezone = 'America/New_York'")
    joined = team.joined("ann")
    with (
        connected(through_pgbouncer(joined.writes, port)) as first,
        connected(through_pgbouncer(joined.reads, port)) as second,
    ):
        for connection in (first, second, first):
            assert one(connection, "SELECT DATE '2026-11-25'::text") == "2026-11-25"
            assert one(connection, "SELECT now()::text").endswith("+00")
