"""Helpers of the fault tests: a project with Redis, writers that pause or die, and failed jobs."""

import base64
import json
import os
import random
import signal
import sqlite3
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import redis

from hivepipe.home import short_hash
from hivepipe.operations.declared import PERIODIC
from hivepipe.queue import client as wire
from hivepipe.queue.claims import accounts
from tests.conftest import (
    ALL_QUEUES,
    COMMANDS,
    PATIENCE_SECS,
    QUEUES,
    ROOT,
    Home,
    Process,
    Server,
    Writer,
    fire,
    until,
)
from tests.faults import oracle
from tests.faults.oracle import Fired
from tests.rounds import SEED

LAUNCHER = Path(__file__).with_name("launch_writer.py")
# `rq` with hivepipe already imported. Otherwise each work horse imports it, and compiles the rules.
_RQ = """
import sys
import rq.cli
import hivepipe.run_job
from hivepipe import redact
from hivepipe.operations.declared import load
load(None)
redact.built_in().redact_text("a@b.example, /a/b.py, 2026-01-02 03:04:05.678")
sys.argv[0] = "rq"
rq.cli.main()
"""
STOCK_RQ = (sys.executable, "-I", "-c", _RQ)

# Calls around which a kill may make a difference, by their names in the interpreter.
TOUCHING_CALLS = {
    "open", "close", "write", "writelines", "flush", "fsync", "rename", "unlink", "truncate",
    "mkdir", "fchmod", "flock", "execute",
}  # fmt: skip


def touches_files(frame: FrameType, event: str, call: Any) -> bool:
    """Return whether a call touches files. psutil only reads /proc, once for each process."""
    if event not in ("c_call", "c_return") or call.__name__ not in TOUCHING_CALLS:
        return False
    return "/psutil/" not in frame.f_code.co_filename


class Killer:
    """Counts calls that touch files, before and after each, and kills the process at one."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.seen = 0

    def __call__(self, frame: FrameType, event: str, call: Any) -> None:
        if touches_files(frame, event, call):
            self.seen += 1
            if self.seen == self.at:
                os.kill(os.getpid(), signal.SIGKILL)


def killed_at(at: int, work: Callable[[], object]) -> bool:
    """Do the work in a child that is killed at a call; return False if it made fewer calls."""
    child = os.fork()
    if not child:
        try:
            sys.setprofile(Killer(at))
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def watched(work: Callable[[], object], watch: Callable[[FrameType], int]) -> list[int]:
    """Do the work in a child; return what `watch` returns at each call that killed_at counts."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        seen: list[int] = []

        def on(frame: FrameType, event: str, call: Any) -> None:
            if touches_files(frame, event, call):
                seen.append(watch(frame))

        try:
            sys.setprofile(on)
            work()
            sys.setprofile(None)
            with open(writing, "w") as said:
                json.dump(seen, said)
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading) as said:
        text = said.read()
    os.waitpid(child, 0)
    assert text, "the work failed"
    return json.loads(text)


def state(folder: Path) -> int:
    """Return a number that differs after a change of any file."""
    paths = [f"{inner}/{name}" for inner, _, names in os.walk(folder) for name in (".", *names)]
    found = [(path, os.lstat(path)) for path in paths]
    return hash(tuple((path, s.st_ino, s.st_mode, s.st_size, s.st_mtime_ns) for path, s in found))


def changing_calls(folder: Path, work: Callable[[], object]) -> list[int]:
    """Return the calls at which files differ from those at the call before."""
    states = watched(work, lambda _frame: state(folder))
    return [call for call, (before, now) in enumerate(pairwise(states), 2) if before != now]


class PausingWriter(Writer):
    """A writer that launch_writer.py runs and that pauses at a point."""

    def __init__(self, home: Home, **options: Any) -> None:
        super().__init__(home)
        self.folder = home.root / "markers"
        self.folder.mkdir(exist_ok=True)
        said = json.dumps({"folder": str(self.folder), **options})
        self.command = [sys.executable, "-I", str(LAUNCHER), said]

    def wait_for_point(self, point: str) -> None:
        """Wait until this process has reached a point."""

        path = self.folder / f"{point}.{self.pid}"
        end = time.monotonic() + 20
        while not path.exists():
            if not self.is_running:
                pytest.fail(f"the writer ended before {point}: {self.text[-3000:]}")
            if time.monotonic() > end:
                pytest.fail(f"never reached {point}: {self.text[-3000:]}")
            time.sleep(0.001)

    def resume(self) -> None:
        (self.folder / "go").touch()


class Bench:
    """A home with its Redis and writers, and the numbers of events fired."""

    def __init__(self, home: Home, server: Server) -> None:
        self.home = home
        self.server = server
        self.redis = server.client()
        self.writers: list[Process] = []
        self.has_slow_worker = False
        self.project = str(home.project)
        self.swarm = f"swarm-{short_hash(str(home.project))}"
        self.forker = COMMANDS
        self.hooks = ROOT / "hooks"
        self.fired_at: dict[str, tuple[int, int]] = {}
        self.hooks_ended = 0

    def close(self) -> None:
        for writer in self.writers:
            if writer.is_running:
                writer.end(signal.SIGKILL)
        self.redis.close()

    def writer(self, **options: Any) -> PausingWriter:
        made = PausingWriter(self.home, **options)
        self.writers.append(made)
        made.start()
        return made

    def worker(self, role: str) -> Process:
        """Start the slow worker or the LLM worker."""
        script = str(ROOT / "workers" / f"{role}.py")
        log = self.home.root / f"{role}.log"
        made = Process([sys.executable, "-I", script], log, self.home.env, self.home.root)
        self.writers.append(made)
        made.start()
        return made

    def stock_worker(self, *options: str, command: Sequence[str] = STOCK_RQ) -> Process:
        """Return an `rq worker` as docs/redis.md describes it, without a class of hivepipe."""
        words = [*command, "worker", "-u", self.server.url, *options, *QUEUES]
        made = Process(words, self.home.root / "stock.log", self.home.env, self.home.root)
        self.writers.append(made)
        return made

    def run_stock_worker(self) -> None:
        """Let a stock worker execute all jobs that wait."""
        worker = self.stock_worker("--burst")
        worker.start()
        until(lambda: not worker.is_running, "the stock worker works", 60)
        assert worker.end() == 0, worker.text

    def plain_writer(self) -> Writer:
        made = Writer(self.home)
        self.writers.append(made)
        made.start()
        return made

    def forget(self) -> None:
        """Empty Redis and delete the database; no writer may run."""
        self.redis.flushall()
        for path in self.home.database.parent.glob("hive.db*"):
            path.unlink()

    # ---- a whole stack instead of Redis alone

    def up(self) -> None:
        """Start a stack, wait for all overdue periodic jobs, and stop its scheduler."""
        self.server.end()
        self.command("up", "-d", "--adopt")
        self.has_slow_worker = True
        self.stop_the_clock()

    def stop_the_clock(self) -> None:
        """Wait until each periodic job has run once, and suspend the scheduler."""
        wanted = {row.name for row in PERIODIC if not row.fallback_for}
        names = "SELECT name FROM slots"
        until(lambda: {r["name"] for r in self.home.rows(names)} >= wanted, "not all ran")
        os.kill(self.pids()["scheduler"], signal.SIGSTOP)
        self.settle()

    def down(self) -> None:
        for pid in self.pids().values():
            os.kill(pid, signal.SIGCONT)  # otherwise `down` would wait for it
        self.command("down")

    def pids(self) -> dict[str, int]:
        said = json.loads(self.command("status", "--json", expect=None))
        return {entry["name"]: entry["pid"] for entry in said["processes"] if entry["pid"]}

    # ---- handing over

    def push(self, events: Sequence[Fired]) -> None:
        """Push events to Redis as hooks do, without their processes."""
        for sent in oracle.messages(events, self.project, self.swarm):
            self.send(sent)

    def send(self, sent: list[Any]) -> int:
        return wire.push(self.server.address, sent, 5.0) if sent else 0

    def fire(self, events: Iterable[Fired], at_once: int, **env: str) -> None:
        """Fire real hooks, `at_once` in parallel."""
        listed = [event for event in events for _ in range(event.times)]

        def one(event: Fired) -> None:
            began = time.time_ns()
            variables = {"INSTANCE_ID": event.instance, "CHECKPOINT_INTERVAL": "0", **env}
            fire(event.name, event.payload, self.home.with_env(**variables), self.hooks)
            ended = time.time_ns()
            key = json.dumps(event.payload, sort_keys=True)
            before = self.fired_at.get(key, (began, ended))
            self.fired_at[key] = (min(began, before[0]), max(ended, before[1]))
            self.hooks_ended += 1

        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(one, listed))

    def command(self, *arguments: str, expect: int | None = 0) -> str:
        """Run a command in the project and return its output."""
        run = (self.home.env, self.home.project, PATIENCE_SECS)
        done = self.forker.run(arguments, "", *run)
        assert expect in (None, done.returncode), done.stdout + done.stderr
        return done.stdout + done.stderr

    def expire_leases(self) -> int:
        """Expire all leases, as a clock that steps an hour ahead does; return their number."""
        keys = [f"rq:wip:{queue}" for queue in QUEUES]
        leases = [(key, member) for key in keys for member in self.redis.zrange(key, 0, -1)]
        for key, member in leases:
            self.redis.zadd(key, {member: 1}, xx=True)
        return len(leases)

    # ---- looking

    @property
    def accounts(self) -> dict[str, int]:
        """Return the product's accounts without finished periodic jobs."""
        while True:
            by_the_clock = int(self.redis.get("hivepipe:periodic") or 0)
            figures = accounts(self.redis)
            if by_the_clock == int(self.redis.get("hivepipe:periodic") or 0):
                break  # no periodic job ended between the two readings
        for name in ("accepted", "done"):
            figures[name] -= by_the_clock
        return figures

    def handed_on(self) -> dict[str, int]:
        """Count the jobs that wait for a slow worker; 0 if the bench runs one."""
        if self.has_slow_worker:
            return {"waiting": 0, "retrying": 0}
        return {
            "waiting": self.redis.llen("rq:queue:slow"),
            "retrying": self.redis.zcard("rq:scheduled:slow"),
        }

    def to_be_done(self) -> int:
        """Count the jobs that wait for a writer or are claimed by one."""
        figures = self.accounts
        return figures["waiting"] + figures["running"] - self.handed_on()["waiting"]

    def is_settled(self, writer: Writer | None = None) -> bool:
        """Return whether every job is done, failed or handed on, and the spool is empty."""
        if writer is not None and not writer.is_running:
            pytest.fail(f"the writer ended: {writer.text[-3000:]}")
        # Counted first, because a job that is handed on in between must not count as waiting.
        handed_on = sum(self.handed_on().values())
        figures = self.accounts
        busy = figures["waiting"] + figures["running"] + figures["retrying"]
        return busy == handed_on and not self.home.spool

    def settle(self, writer: Writer | None = None, secs: float = 30) -> None:
        try:
            until(lambda: self.is_settled(writer), "not settled", secs)
        except pytest.fail.Exception:
            log = writer.text[-2000:] if writer else ""
            pytest.fail(f"after {secs} s not settled: {self.accounts}, {log}")

    def applied(self) -> int:
        return self.home.count("applied")

    def dead(self) -> dict[str, str]:
        """Return the failed jobs with their reasons."""
        found = {}
        for queue in ALL_QUEUES:
            for job_id in self.redis.zrange(f"rq:failed:{queue}", 0, -1):
                results = self.redis.xrevrange(b"rq:results:" + job_id, count=1)
                packed = results[0][1][b"exc_string"] if results else b""
                text = zlib.decompress(base64.b64decode(packed)).decode() if packed else ""
                found[job_id.decode("utf-8", "backslashreplace")] = text
        return found

    def tables(self) -> oracle.Rows:
        names = (*oracle.TABLES, "counters")
        return {name: self.home.rows(f"SELECT * FROM {name}") for name in names}

    @property
    def hook_log(self) -> str:
        path = self.home.logs / "hook-errors.log"
        return path.read_text() if path.exists() else "the hooks' log is empty"

    # ---- asserting

    def assert_tables(self, events: Sequence[Fired], exact_times: bool = True) -> None:
        """Compare every table with the oracle."""
        wanted: Any = oracle.expected(events, self.project, self.swarm)
        found: Any = oracle.comparable(self.tables())
        if not exact_times:
            wanted, found = oracle.without_times(wanted), oracle.without_times(found)
        said = oracle.differences(wanted, found)
        assert not said, f"{len(said)} differences:\n" + "\n".join([*said[:12], self.hook_log])

    def assert_accounts(self, jobs: int, dead: int = 0, archived: int = 0) -> None:
        """Compare the accounts with the number of jobs; `archived`: slow jobs of a stock worker."""
        handed_on = self.handed_on()
        written = jobs - dead - sum(handed_on.values())
        assert self.accounts == {
            "accepted": jobs,
            "done": written,
            "running": 0,
            "failed": dead,
            "discarded": 0,
            **handed_on,
        }
        if not self.has_slow_worker:  # the slow worker leaves no record in `applied`
            assert self.applied() == written - archived


@contextmanager
def shell(bench: Bench) -> Iterator[sqlite3.Connection]:
    """A connection without foreign keys, as the sqlite3 shell makes it."""
    connection = sqlite3.connect(bench.home.database, isolation_level=None, timeout=10)
    assert connection.execute("PRAGMA foreign_keys").fetchone() == (0,)
    try:
        yield connection
    finally:
        connection.close()


def random_of(name: str) -> random.Random:
    return random.Random(f"{SEED}{name}")


def alive(connection: redis.Redis) -> bool:
    try:
        return bool(connection.ping())
    except redis.RedisError:
        return False
