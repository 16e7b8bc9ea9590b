"""Nothing is sent unless the server is verified: by TLS, or by being on this machine."""

import os
import posix
import socket
import subprocess
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from hivepipe.errors import TeamError, TeamRefusedError
from hivepipe.team import address, invites
from hivepipe.team.address import parse
from hivepipe.team.connection import connected, one
from tests.postgres import Server, debians_folder, serving
from tests.team_scene import ADMIN, SECRET, Team


def certificate(folder: Path, name: str, host: str) -> Path:
    path = folder / f"{name}.pem"
    words = ["openssl", "req", "-x509", "-nodes", "-days", "1"]
    words += ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    words += ["-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}"]
    words += ["-keyout", str(folder / f"{name}.key"), "-out", str(path)]
    subprocess.run(words, check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("roots")


@pytest.fixture(scope="module")
def encrypted(roots: Path) -> Iterator[Server]:
    """A server with a certificate for localhost."""
    certificate(roots, "good", "localhost")
    certificate(roots, "other", "localhost")
    programs = debians_folder()  # the server of the wheel is built without TLS
    if programs is None:
        pytest.skip("needs Debian's postgresql")
    with serving(programs) as server:
        key = server.data / "server.key"
        key.write_bytes((roots / "good.key").read_bytes())
        (server.data / "server.crt").write_bytes((roots / "good.pem").read_bytes())
        server.own(key, server.data / "server.crt")
        server.stop()
        server.options = ("-c", "ssl=on")
        server.start()
        yield server


def address_of(server: Server, **options: str) -> address.Address:
    words = "&".join(f"{name}={value}" for name, value in options.items())
    return parse(f"postgresql://{ADMIN}:{SECRET}@localhost:{server.port}/postgres?{words}")


def test_a_verified_server_is_used_and_an_invite_has_its_roots(
    encrypted: Server, roots: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(posix.environ, b"XDG_CONFIG_HOME", os.fsencode(tmp_path))
    team = Team.on(encrypted)
    login = address_of(encrypted, sslrootcert=str(roots / "good.pem"))._replace(
        database=team.database
    )
    with connected(login) as connection:
        sql = "SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        assert one(connection, sql).startswith("TLSv1.")
        place = login.with_login("", "")
        code = invites.invite(connection, place, "ann", timedelta(hours=1)).code
    invited = invites.read_code(code)
    assert Path(invited.roots).read_text() == (roots / "good.pem").read_text()
    with connected(invited) as connection:
        assert invites.join(connection, invited, "laptop").member == "ann"


def test_the_roots_of_the_system_verify_a_server(
    encrypted: Server, roots: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The OpenSSL in psycopg's wheel looks for them where no system has them."""
    Team.on(encrypted)  # with its administrator
    bundles = (str(roots / "missing.pem"), str(roots / "good.pem"))
    monkeypatch.setattr(address, "_BUNDLES", bundles)
    with connected(address_of(encrypted)) as connection:
        assert one(connection, "SELECT 1") == 1
    monkeypatch.setattr(address, "_BUNDLES", bundles[:1])
    with pytest.raises(TeamRefusedError, match="certificate"), connected(address_of(encrypted)):
        pass


@pytest.mark.parametrize("root", ["other", "system"])
def test_a_server_with_another_certificate_is_refused(
    encrypted: Server, roots: Path, root: str
) -> None:
    path = root if root == "system" else str(roots / f"{root}.pem")
    with (
        pytest.raises(TeamRefusedError, match=r"certificate.* clock is wrong"),
        connected(address_of(encrypted, sslrootcert=path)),
    ):
        pass


def test_a_certificate_of_another_host_is_refused(encrypted: Server, roots: Path) -> None:
    login = address_of(encrypted, sslrootcert=str(roots / "good.pem"))._replace(host="127.0.0.1")
    with pytest.raises(TeamRefusedError, match="certificate"), connected(login):
        pass


def test_no_variable_of_the_shell_disables_tls(
    encrypted: Server, roots: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "PGSSLMODE": "disable",
        "PGSSLROOTCERT": str(roots / "good.pem"),
        "PGHOST": "127.0.0.1",
        "PGREQUIREAUTH": "none",
        "PGOPTIONS": "-c row_security=off",
    }.items():
        monkeypatch.setenv(name, value)
    with (
        pytest.raises(TeamRefusedError, match="certificate"),
        connected(address_of(encrypted, sslrootcert=str(roots / "other.pem"))),
    ):
        pass


class TlsStripper:
    """A man in the middle that denies TLS and then asks for the password in clear text."""

    def __init__(self) -> None:
        self.received = b""
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            with peer:
                peer.settimeout(2)
                first = peer.recv(1024)
                if first[4:8] == b"\x04\xd2\x16\x2f":  # SSLRequest
                    peer.sendall(b"N")
                    first = peer.recv(1024)
                self.received += first
                if first:
                    peer.sendall(b"R" + (8).to_bytes(4) + (3).to_bytes(4))  # clear text password
                    self.received += peer.recv(1024)


@pytest.mark.parametrize("options", ["", "?sslmode=disable"])
def test_a_downgraded_server_gets_no_secret(options: str) -> None:
    attacker = TlsStripper()
    login = parse(f"postgresql://ann:the-secret@127.0.0.1:{attacker.port}/team{options}")
    with pytest.raises(TeamError, match=r"SSL|auth"), connected(login):
        pass
    attacker.socket.close()
    assert b"the-secret" not in attacker.received
    assert options or not attacker.received  # not even the name of the login is sent


UNSAFE_MODES = ("require", "prefer", "allow", "verify-ca", "disable")


def test_an_unsafe_address_is_refused_without_a_connection() -> None:
    for url in (
        *(f"postgresql://db.example/team?sslmode={mode}" for mode in UNSAFE_MODES),
        "postgresql://127.0.0.1.example/team?sslmode=disable",
        "postgresql://10.0.0.1/team?sslmode=disable",
        "postgresql://127.0.0.1,db.example/team?sslmode=disable",
        "postgresql://127.0.0.1/team?sslmode=disable&host=db.example",
        "postgresql://127.0.0.1/team?sslmode=disable&hostaddr=10.0.0.1",
        "postgresql://db.example/team?options=-c%20a=b",
        "postgresql://db.example/team?service=x",
        "postgresql://db.example/team?passfile=/tmp/x",
        "postgresql://db.example/",
        "postgresql:///team",
        "postgresql://db.example:port/team",
        "https://db.example/team",
        "db.example",
        "",
    ):
        with pytest.raises(TeamError):
            parse(url)


def test_roots_are_found_from_any_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(posix.environ, b"HOME", b"/home/ann")
    for given, stored in (
        ("ca.pem", f"{tmp_path}/ca.pem"),
        ("~/ca.pem", "/home/ann/ca.pem"),
        ("/etc/ca.pem", "/etc/ca.pem"),
        ("system", "system"),
    ):
        found = parse(f"postgresql://db.example/team?sslrootcert={given}")
        assert parse(found.url).roots == found.roots == stored


def test_an_address_uses_tls_by_default() -> None:
    found = parse("postgresql://ann:s%40crt@db.example/team")
    assert found.parameters()["sslmode"] == "verify-full"
    assert found.roots == "system"
    assert found.parameters()["sslrootcert"] == address.system_roots()
    assert parse(found.url) == found
    assert "s@crt" not in repr(found)
    assert "s%40crt" not in found.shown
