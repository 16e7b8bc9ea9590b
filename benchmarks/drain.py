"""The throughput of workers that drain the same jobs into the same SQLite writes, in one run.

    python benchmarks/drain.py [--jobs 20000] [--rounds 3] [--check] [--memory 300000]

A stock `rq worker`, RQ's SimpleWorker and our writer take turns on fresh databases. Each gets as
many jobs as it drains in a few seconds. The start is not counted. With `--check` our writer must be
60 times as fast as the stock worker and 15 times as fast as SimpleWorker. `--memory N` sends N jobs
through one writer, whose memory after a third and at the end may differ by 5 %.
"""

import json
import os
import posix
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from figures import Figure, conclude, machine, parser
from redis.exceptions import RedisError

from hivepipe import home
from hivepipe.events import parse_event
from hivepipe.events.job_plan import Context, Count, Message, encode, plan
from hivepipe.queue.client import push
from hivepipe.queue.connection import connect
from hivepipe.stack.redis_server import arguments, find_server

LEAST_OVER_STOCK = 60
LEAST_OVER_SIMPLE = 15
SESSION = "7b1f0c9e-3a52-4d0e-9c55-0d6a1f2be111"
CALLS_A_SESSION = 200

# Runs in a separate process, so that only the draining is timed.
WORKER = """
import sys, time
from rq import Queue, SimpleWorker, Worker
from hivepipe.home import locate
from hivepipe.queue.connection import connect
from hivepipe.queue.names import QUEUES
from hivepipe.run_job import run_job
from hivepipe.db.database import Database
from hivepipe.db.location import database_path
from hivepipe.worker.writer import Writer
kind = {"stock": Worker, "simple": SimpleWorker, "hivepipe": Writer}[sys.argv[1]]
place = locate(".")
Database(database_path(place.home)).close()
connection = connect(place.socket)
queues = [Queue(name, connection=connection) for name in QUEUES]
worker = kind(queues, connection=connection, log_job_description=False)
begun = time.perf_counter()
worker.work(burst=True, logging_level="ERROR")
print(time.perf_counter() - begun)
"""


class Setting:
    """A private home and its Redis server."""

    def __init__(self, folder: str) -> None:
        self.home = f"{folder}/home"
        self.environment = {
            "HOME": folder,
            "PATH": os.environ["PATH"],
            "XDG_STATE_HOME": f"{folder}/state",
            "XDG_RUNTIME_DIR": f"{folder}/run",
            "HIVEPIPE_HOME": self.home,
        }
        posix.environ.update({k.encode(): v.encode() for k, v in self.environment.items()})
        os.makedirs(self.home, mode=0o700)
        self.socket = f"{home.runtime_folder(self.home)}/redis.sock"
        os.makedirs(os.path.dirname(self.socket), mode=0o700)
        command = [find_server(), *arguments(self.home, self.socket), "--maxmemory", "2gb"]
        self.server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.redis = connect(self.socket)
        while not self._answers():
            time.sleep(0.01)

    def _answers(self) -> bool:
        try:
            return bool(self.redis.ping())
        except RedisError:
            return False

    def fresh(self) -> None:
        """Empty Redis and remove the database."""
        self.redis.flushall()
        for path in Path(self.home).glob("hive.db*"):
            path.unlink()

    def close(self) -> None:
        self.server.terminate()
        self.server.wait()


def messages_of(number: int, tool: str, session: str = SESSION) -> list[Message]:
    """Return the jobs of one call that is not throttled: three for an edit, four for an agent."""
    event = {
        "session_id": session,
        "tool_name": tool,
        "tool_use_id": f"toolu_{number}",
        "tool_input": {"file_path": f"/home/ana/shop/{number}.py", "description": "Map callers"},
        "tool_response": {"status": "completed", "agentId": f"agent{number}"},
    }
    parsed = parse_event("PostToolUse", json.dumps(event).encode())
    assert parsed is not None
    context = context_of(number, session)
    return encode(plan(parsed, context), parsed, context)


def context_of(number: int, session: str) -> Context:
    """Return what a hook knows besides its event."""
    return Context(
        event_time_ns=time.time_ns(),
        session=session,
        own_session=session,
        instance=f"instance-1-{session[:8]}",
        enters_session=number % CALLS_A_SESSION == 0,
        project="/home/ana/shop",
        swarm="swarm-shop",
        count=Count(True, number + 1, number + 1),
    )


def fill(setting: Setting, jobs: int) -> int:
    """Enqueue about this many jobs, as hooks would; return the actual number."""
    queued, number = 0, 0
    while queued < jobs:
        batch = messages_of(number, "Agent" if number % 4 == 3 else "Edit")
        queued += push(setting.socket, batch, 10)
        number += 1
    return queued


def drain(setting: Setting, kind: str, jobs: int) -> float:
    """Return jobs per second of one worker on a fresh database."""
    setting.fresh()
    queued = fill(setting, jobs)
    done = subprocess.run(
        [sys.executable, "-I", "-c", WORKER, kind],
        env=setting.environment,
        cwd=setting.home,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{kind}: {done.stderr[-2000:]}")
    left = sum(setting.redis.llen(f"rq:queue:{name}") for name in ("high", "medium", "low"))
    failed = sum(setting.redis.zcard(f"rq:failed:{name}") for name in ("high", "medium", "low"))
    if left or failed:
        raise SystemExit(f"{kind}: {left} jobs left, {failed} failed\n{done.stderr[-2000:]}")
    return queued / float(done.stdout.split()[-1])


def memory(setting: Setting, jobs: int) -> tuple[float, float]:
    """Send this many jobs through one writer; return its MB after a third and at the end."""
    setting.fresh()
    script = Path(__file__).resolve().parent.parent / "workers" / "writer.py"
    writer = subprocess.Popen(
        [sys.executable, "-I", str(script)],
        env=setting.environment,
        cwd=setting.home,
        stderr=subprocess.DEVNULL,
    )
    try:
        sizes, sent, number = [], 0, 0
        while sent < jobs:
            sent += push(setting.socket, messages_of(number, "Edit"), 10)
            number += 1
            if number % 1000 == 0:
                while setting.redis.llen("rq:queue:low") > 3000:
                    time.sleep(0.05)
                sizes.append((sent, psutil.Process(writer.pid).memory_info().rss / 1e6))
        third = next(size for at, size in sizes if at >= jobs / 3)
        return third, sizes[-1][1]
    finally:
        writer.send_signal(signal.SIGTERM)
        writer.wait(timeout=60)


def main() -> None:
    """Measure, print the figures, and check their bounds."""
    arguments_of = parser(__doc__)
    arguments_of.add_argument(
        "--jobs", type=int, default=20_000, help="jobs for our writer (20000)"
    )
    arguments_of.add_argument("--rounds", type=int, default=3)
    arguments_of.add_argument(
        "--memory", type=int, default=0, metavar="N", help="also measure memory with N jobs"
    )
    options = arguments_of.parse_args()
    os.umask(0o077)
    share = {"stock": 0.015, "simple": 0.06, "hivepipe": 1.0}
    with tempfile.TemporaryDirectory(prefix="hp", dir="/tmp") as folder:
        setting = Setting(os.path.realpath(folder))
        try:
            rates: dict[str, list[float]] = {kind: [] for kind in share}
            for _ in range(options.rounds):
                for kind, part in share.items():
                    rates[kind].append(drain(setting, kind, max(int(options.jobs * part), 30)))
            grown = memory(setting, options.memory) if options.memory else None
        finally:
            setting.close()
    ours, stock, simple = (statistics.median(rates[k]) for k in ("hivepipe", "stock", "simple"))
    print(f"{machine()}; jobs per second, median of {options.rounds}, synchronous=FULL")
    print(f"  rq worker     {stock:8.0f}")
    print(f"  SimpleWorker  {simple:8.0f}")
    print(f"  hivepipe      {ours:8.0f}")
    figures = [
        Figure("writer", ours / stock, "x rq worker", at_least=LEAST_OVER_STOCK),
        Figure("writer", ours / simple, "x SimpleWorker", at_least=LEAST_OVER_SIMPLE),
    ]
    if grown:
        print(f"  memory        {grown[0]:.1f} MB after a third, {grown[1]:.1f} MB at the end")
        what = f"writer's memory after {options.memory:,} jobs"
        figures.append(Figure(what, grown[1] / grown[0], "x that after a third", 1.05))
    conclude(options, figures, {"jobs per second": rates})


if __name__ == "__main__":
    main()
