"""A user with one project, whose stack a test starts, inspects and ends."""

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from urllib.parse import quote

import psutil  # type: ignore[import-untyped]

from hivepipe.settings import variable
from hivepipe.stack import processes
from tests.conftest import CLI, COMMANDS, find_server, fire, folder_of_homes, home_name, until

STARTED = [entry.name for entry in processes.processes_with("") if not entry.is_on_demand]
EVERY = ("supervisord", *STARTED)
KINDS = ("supervisord", *(entry.name for entry in processes.PROCESSES))
ONE_OF_EACH = dict.fromkeys(EVERY, 1)
ROOT = processes.root_folder()


class Sandbox:
    """The folders of a user (home, state, runtime) and one project."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._older = running()
        # characters that an ini file, a shell or a format string might misread
        self.project = folder / "my #1 project; 100%"
        self.home = folder / "user/.local/share/hivepipe/projects" / home_name(self.project)
        self.run_folder = folder / "run"
        self.env = {
            "PATH": variable("PATH") or os.defpath,
            "HOME": str(folder / "user"),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_RUNTIME_DIR": str(self.run_folder),
            "CLAUDE_SESSION_KEY": "not for the stack",
            "PYTHONWARNINGS": "ignore",
        }
        for path in (self.project, self.run_folder):
            path.mkdir(mode=0o700)

    def configure(self, text: str) -> Path:
        """Write the user's settings file."""
        config = self.folder / "user" / ".config" / "hivepipe" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(text)
        config.chmod(0o600)
        return config

    def start(self, *arguments: str, **env: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*CLI, *arguments],
            cwd=self.project,
            env=self.env | env,
            umask=0,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *arguments: str, expect: int = 0, **env: str) -> str:
        done = self.done(*arguments, **env)
        assert done.returncode == expect, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def done(self, *arguments: str, **env: str) -> "subprocess.CompletedProcess[str]":
        before = os.umask(0)
        try:
            return COMMANDS.run(arguments, "", self.env | env, self.project, 90)
        finally:
            os.umask(before)

    def status(self, expect: int = 0, **env: str) -> dict[str, object]:
        return dict(json.loads(self.run("status", "--json", expect=expect, **env)))

    def report(self) -> dict[str, object]:
        """Return the output of `status --json`, whatever the exit code."""
        return dict(json.loads(self.done("status", "--json").stdout))

    @property
    def socket(self) -> str:
        return self.run("url").strip().removeprefix("unix://")

    def processes(self) -> dict[str, list[psutil.Process]]:
        """Return every process of this sandbox's stacks, by kind."""
        found: dict[str, list[psutil.Process]] = {}
        for pid, line in command_lines(self._older):
            is_program = "python" in line or "-server" in line
            is_command = "cli.main" in line or "web.process" in line
            if not is_program or is_command or not self.is_owner_of(pid, line):
                continue
            kind = next((kind for kind in KINDS if f"{kind}.py" in line), line)
            kind = "redis" if "-server" in line else kind  # Redis or Valkey
            kind = "supervisord" if "supervisord" in line else kind
            with suppress(psutil.NoSuchProcess):
                found.setdefault(kind, []).append(psutil.Process(pid))
        return {kind: group for kind, group in found.items() if group}

    def is_owner_of(self, pid: int, line: str) -> bool:
        folder = str(self.folder)
        try:
            # Redis overwrites its environment with its title.
            known = folder in line or f"HIVEPIPE_HOME={folder}".encode() in read(pid, "environ")
            return known or folder in os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            return False

    def counts(self) -> dict[str, int]:
        return {kind: len(group) for kind, group in self.processes().items()}

    def pid(self, kind: str) -> int:
        return self._pids((kind,))[kind]

    def pids(self) -> dict[str, int]:
        """Return the pid of the only process of each kind that every stack has."""
        return self._pids(EVERY)

    def _pids(self, kinds: Sequence[str]) -> dict[str, int]:
        """Wait until there is one process of each kind: after `up` a fork sets its command line."""

        def only() -> dict[str, int]:
            found = self.processes()
            pids = {kind: [each.pid for each in found.get(kind, [])] for kind in kinds}
            are_only = all(len(each) == 1 for each in pids.values())
            return {kind: pid for kind, (pid,) in pids.items()} if are_only else {}

        found: dict[str, int] = until(only, f"not one process of each of {kinds}")
        return found

    def kill(self) -> None:
        while found := [*chain(*self.processes().values())]:
            for process in found:  # until a supervisor ends, it may start another process
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            time.sleep(0.05)

    def sessions(self) -> set[str]:
        """Return the ids of the sessions in the database, without starting a process."""
        database = self.home / "hive.db"
        if not database.exists():
            return set()
        # Meanwhile a writer may make the tables or recover the log.
        with (
            closing(sqlite3.connect(f"file:{quote(str(database))}?mode=ro", uri=True)) as asked,
            suppress(sqlite3.OperationalError),
        ):
            return {row[0] for row in asked.execute("SELECT id FROM sessions")}
        return set()

    @property
    def spooled(self) -> int:
        return len(list((self.home / "spool").glob("*.json")))

    def fire(self, session: str = "s-1", event: str = "SessionStart", **env: str) -> None:
        payload = {"session_id": session, "source": "startup", "cwd": str(self.project)}
        fire(event, payload, self.env | {"CLAUDE_PROJECT_DIR": str(self.project)} | env)


@contextmanager
def new_sandbox() -> Iterator[Sandbox]:
    """Yield a sandbox, then kill its processes and delete its folder."""
    find_server()  # skips without a Redis server
    # short, because paths of sockets are limited
    folder = Path(tempfile.mkdtemp(prefix="hp-", dir=folder_of_homes()))
    made = Sandbox(folder)
    try:
        yield made
    finally:
        made.kill()
        shutil.rmtree(folder)


def running() -> frozenset[int]:
    return frozenset(int(name) for name in os.listdir("/proc") if name.isdecimal())


def command_lines(older: frozenset[int] = frozenset()) -> Iterator[tuple[int, str]]:
    """Yield pid and command line of all processes that have one, unlike zombies.

    Tests poll this, so they leave out those older than the test. psutil takes twice as long.
    """
    for pid in sorted(running() - older):
        with suppress(OSError):
            if line := read(pid, "cmdline"):
                yield pid, line.replace(b"\0", b" ").decode(errors="replace").rstrip()


def read(pid: int, name: str) -> bytes:
    """Return a file of a process; raise OSError if the process has ended."""
    with open(f"/proc/{pid}/{name}", "rb", 0) as file:
        return file.read()


def eventually(check: Callable[[], object]) -> None:
    until(check, "it did not happen")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)
