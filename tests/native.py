"""A project with both hooks, Redis and an intake, for tests of the native hook."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from hivepipe.home import short_hash
from hivepipe.stack import hook_copy
from tests.conftest import (
    CLI,
    PATIENCE_SECS,
    ROOT,
    WORKERS,
    Home,
    Process,
    Server,
    redis_files,
    until,
)

BUILT = ROOT / "hivepipe" / "_native" / "hook"
NOT_COMPARED = (
    *("calls-listed", "intake.log", "intake.slot", "redis.log", "redis.sock"),
    *("intake.lock", "starting"),
)
PIPE_BYTES = 1 << 16
IDLE_STARTER = "/bin/true"  # The record names this program as Python, so hooks start no stack.


class HookHome:
    """A home in which hooks find everything; `native` and `python` are the two hook programs."""

    def __init__(self, home: Home, new_server: Callable[[Home], Server]) -> None:
        home.make()
        home.path.mkdir(mode=0o700, exist_ok=True)
        self.home = home
        self.runtime = home.root / "run" / "hivepipe" / short_hash(str(home.path))
        self.runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.runtime.parent.chmod(0o700)
        self.env = {name: text for name, text in home.env.items() if name != "HIVEPIPE_HOME"}
        self.register()
        self._new_server = new_server
        self.native = self._copy()
        self.python = Path(f"{self.native}.py")
        self.emulator: list[str] = []  # command prefix of the native hook
        self.intakes: list[Process] = []

    def register(self, **fields: str) -> None:
        """Write the records of the project and of the home."""
        record = {
            "home": str(self.home.path),
            "socket": f"{self.runtime}/redis.sock",
            "runtime": str(self.runtime),
            "python": IDLE_STARTER,
            "state": "on",
            **fields,
        }
        text = "".join(f"{name}={value}\n" for name, value in record.items())
        for folder in (self.home.path, self.home.project):
            path = self.home.root / "state/hivepipe/projects" / short_hash(str(folder))
            path.write_text(text)

    def redis(self) -> Server:
        return self._new_server(self.home)

    def _copy(self) -> Path:
        with pytest.MonkeyPatch.context() as monkeypatch:
            self.home.use_environment(monkeypatch)
            hook_copy.write()
            return Path(hook_copy.launcher())

    def intake(self) -> Process:
        """Start an intake and wait until it listens."""
        command = [sys.executable, "-I", "-S", str(ROOT / "workers" / "intake.py")]
        env = {**self.env, "HIVEPIPE_HOME": str(self.home.path)}
        made = Process(command, self.home.root / "intake.log", env, self.home.root)
        (self.runtime / "intake.sock").unlink(missing_ok=True)
        self.intakes.append(made)
        made.start()
        until((self.runtime / "intake.sock").exists, "the intake does not listen")
        return made

    def end(self) -> None:
        for made in self.intakes:
            if made.is_running:
                made.signal(signal.SIGCONT)
                made.end(signal.SIGKILL)

    def start(
        self,
        program: Path,
        event: str,
        *words: str,
        shell: str = "",
        stdin: int = subprocess.PIPE,
        **env: str,
    ) -> subprocess.Popen[bytes]:
        """Start a hook whose event comes on a pipe."""
        emulator = self.emulator if program == self.native else []
        command = [*emulator, str(program), *([snake(event)] if event else []), *words]
        return subprocess.Popen(
            ["sh", "-c", shell, "sh", *command] if shell else command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**self.env, **env},
            cwd=self.home.project,
        )

    def fire(self, program: Path, event: str, data: bytes, *words: str, **env: str) -> bytes:
        """Run a hook to its end and return its answer; it must exit with 0 without errors."""
        with filled(data) as (stdin, rest):
            process = self.start(program, event, *words, stdin=stdin, **env)
        try:
            out, errors = process.communicate(rest, timeout=PATIENCE_SECS)
        except BrokenPipeError:
            out, errors = b"", b""
        assert (process.returncode, errors) == (0, b"")
        self._wait_for_intake()
        return out

    def _wait_for_intake(self) -> None:
        """Wait until the intake has handled all acknowledged events; it leaves unusable ones."""
        if not self.intakes:
            return
        with socket.socket(socket.AF_UNIX) as connection, suppress(OSError):
            connection.settimeout(1)
            connection.connect(str(self.runtime / "intake.sock"))
            connection.sendall(b"no frame at all")
            # The intake closes this connection after it has handled the earlier ones.
            while connection.recv(1):
                pass

    def forget(self, server: Server | None) -> None:
        """Empty the home and Redis."""
        for path in [*self.home.path.iterdir(), self.home.root / "env-file"]:
            if not path.name.startswith("appendonly"):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        (self.runtime / "starting").unlink(missing_ok=True)
        if server:
            server.client().flushall()

    def traces(self, server: Server | None) -> dict[str, bytes]:
        """Return the files and Redis keys that events left behind, without times and pids."""
        root = self.home.root
        files = {
            str(path.relative_to(root)): path.read_bytes()
            for path in {*root.rglob("*")}.difference(redis_files(root))
            if path.is_file() and path.name not in NOT_COMPARED and "state/" not in str(path)
        }
        found: dict[str, list[bytes]] = {}
        for name, data in (files | dump(server)).items():
            found.setdefault(masked(name), []).append(masked(data))
        return {name: b"\n".join(sorted(texts)) for name, texts in found.items()}

    def raw(self) -> list[Path]:
        return sorted((self.home.path / "spool").glob("*.raw"))

    def convert(self) -> None:
        """Convert raw events to spool files, as a drain does, in a fork if that is possible."""
        words = [str(ROOT / "hivepipe/hook/convert_spool.py"), *map(str, self.raw())]
        with tempfile.TemporaryFile() as out:
            files = [out] * 3
            made = WORKERS.start(words, self.env, self.home.project, files)
            command, folder = [*CLI[:2], *words], self.home.project
            process = made or subprocess.Popen(command, -1, None, *files, env=self.env, cwd=folder)
            code = process.wait(PATIENCE_SECS)
            out.seek(0)
            assert (code, out.read()) == (0, b"")


@contextmanager
def filled(data: bytes) -> Iterator[tuple[int, bytes | None]]:
    """Yield a pipe that contains the event, because one of 32 threads may fill it too late.

    Data beyond the capacity of the pipe is written while the hook reads.
    """
    if len(data) > PIPE_BYTES:
        yield subprocess.PIPE, data
        return
    read_end, write_end = os.pipe()
    os.write(write_end, data)
    os.close(write_end)
    try:
        yield read_end, None
    finally:
        os.close(read_end)


def dump(server: Server | None) -> dict[str, bytes]:
    """Return every key of a Redis except the times of hooks, which always differ."""
    if server is None:
        return {}
    client = server.client()
    found = {}
    for key in client.scan_iter():
        kind = client.type(key).decode()
        if key.startswith(b"hivepipe:hook_times"):
            continue
        value = {
            "string": client.get,
            "list": lambda key: client.lrange(key, 0, -1),
            "set": lambda key: sorted(client.smembers(key)),
            "hash": lambda key: sorted(client.hgetall(key).items()),
            "zset": lambda key: client.zrange(key, 0, -1, withscores=True),
        }[kind](key)
        found[key.decode("utf-8", "replace")] = repr(value).encode()
    return found


TIMES = (
    (rb"\b0?1[78]\d{17}_\d+(?=[._])", b"<time>_<pid>"),
    (rb"\b1[78]\d{17}_", b"<time>_"),
    (rb"\b0?1[78]\d{17}\b", b"<ns>"),
    (rb"\b1[78]\d{11}(\.\d+)?\b", b"<ms>"),
    (rb"\b1[78]\d{8}(\.\d+)?\b", b"<s>"),
    (rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z?", b"<date>"),
    (rb"\b[0-9a-f]{32}\b", b"<id>"),
)


def masked(data: Any) -> Any:
    """Replace times, pids of hooks and values made of times."""
    if isinstance(data, str):
        return masked(data.encode()).decode()
    for pattern, text in TIMES:
        data = re.sub(pattern, text, data)
    return data


def snake(event: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", event).lower()


def jobs_of(server: Server) -> list[bytes]:
    """Return the ids of the jobs in the queues, in order."""
    client = server.client()
    return [
        id
        for queue in ("high", "medium", "low")
        for id in client.lrange(f"rq:queue:{queue}", 0, -1)
    ]


def may_trace() -> bool:
    done = subprocess.run(["sh", "-c", "strace -o /dev/null true"], capture_output=True)
    return done.returncode == 0
