"""The stack: its times of start, stop and recovery, and its cost while idle.

    python benchmarks/stack.py [--rounds 5] [--idle-secs 30] [--check]

Every kind of process is killed with SIGKILL in each round. Memory is PSS, which divides shared
pages among the processes. With `--check` the stack must be ready within 2 s and recover within 2 s,
with at most 95 MB and under 2 % of a core (three times the seconds and the CPU in CI).
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import psutil
import redis
from figures import Figure, conclude, parser

from hivepipe.stack.processes import processes_with

START_SECS, BACK_SECS = 2.0, 2.0
MEMORY_MB, CPU_PERCENT = 95.0, 2.0
PATIENCE_SECS = 60
NEEDED = [entry for entry in processes_with("") if not entry.is_on_demand]
PROGRAMS = [entry.name for entry in NEEDED]
REGISTERED = {entry.name for entry in NEEDED if entry.is_rq_worker}


class Stack:
    """The stack of a project in a temporary folder."""

    def __init__(self, folder: str) -> None:
        self.project = f"{folder}/shop"
        self.environment = {
            "HOME": folder,
            "PATH": os.environ["PATH"],
            "XDG_STATE_HOME": f"{folder}/state",
            "XDG_RUNTIME_DIR": f"{folder}/run",
        }
        for path in (self.project, f"{folder}/run"):
            os.mkdir(path, 0o700)
        self.redis: redis.Redis

    def command(self, *words: str) -> tuple[float, str]:
        """Run a hivepipe command; return its time and its output."""
        begun = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-I", "-m", "hivepipe.cli.main", *words],
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return time.perf_counter() - begun, done.stdout

    def status(self) -> dict[str, object]:
        return dict(json.loads(self.command("status", "--json")[1]))

    def pids(self) -> dict[str, int]:
        return {entry["name"]: entry["pid"] for entry in self.status()["processes"]}  # type: ignore[attr-defined]

    def answers(self, name: str, pids: set[int]) -> bool:
        """Tell whether Redis answers and, for a worker, one of these processes is registered."""
        try:
            workers = {self.redis.hget(key, "pid") for key in self.redis.smembers("rq:workers")}
        except redis.RedisError:
            return False
        return bool(pids) and (
            name not in REGISTERED or bool(workers & {b"%d" % pid for pid in pids})
        )

    def everybody(self) -> list[psutil.Process]:
        (stack,) = json.loads(self.command("stacks", "--json")[1])["stacks"]
        return [psutil.Process(pid) for pid in stack["pids"]]


def until(check: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECS
    while not check():
        if time.monotonic() > end:
            raise SystemExit(f"not within {PATIENCE_SECS} s")


def back_secs(stack: Stack, name: str) -> float:
    """Kill one process and return the seconds until its replacement answers.

    The kernel and Redis are asked, because a question to the supervisor would wake it.
    """
    old = psutil.Process(stack.pids()[name])
    supervisor = old.parent()
    before = {child.pid for child in supervisor.children()}
    begun = time.perf_counter()
    old.send_signal(signal.SIGKILL)
    until(lambda: stack.answers(name, {c.pid for c in supervisor.children()} - before))
    took = time.perf_counter() - begun
    until(lambda: bool(stack.status()["healthy"]))
    return took


def idle(stack: Stack, secs: float) -> tuple[float, float, list[str]]:
    """Return memory in MB, CPU in percent of a core, and lines with both for each process."""
    everybody = stack.everybody()
    before = [sum(process.cpu_times()[:2]) for process in everybody]
    time.sleep(secs)
    lines, memory, cpu = [], 0.0, 0.0
    for process, spent in zip(everybody, before, strict=True):
        pss = process.memory_full_info().pss / 1e6
        share = (sum(process.cpu_times()[:2]) - spent) / secs * 100
        memory, cpu = memory + pss, cpu + share
        words = [os.path.basename(word) for word in process.cmdline()]
        name = next((word for word in words if word.endswith(".py")), "")
        name = name or ("supervisord" if "supervisor.supervisord" in words else words[0])
        lines.append(f"    {name:<16} {pss:5.1f} MB  {share:4.2f} %")
    return memory, cpu, lines


def main() -> None:
    """Measure, print the figures, and check their bounds."""
    arguments_of = parser(__doc__)
    arguments_of.add_argument("--rounds", type=int, default=5, help="starts, and kills of each (5)")
    arguments_of.add_argument("--idle-secs", type=float, default=30)
    options = arguments_of.parse_args()
    starts, stops = [], []
    kills: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    with tempfile.TemporaryDirectory(prefix="hp", dir="/tmp") as folder:
        stack = Stack(os.path.realpath(folder))
        for _ in range(options.rounds):
            starts.append(stack.command("up", "-d")[0])
            stops.append(stack.command("down")[0])
        stack.command("up", "-d")
        stack.redis = redis.Redis.from_url(stack.command("url")[1].strip())
        try:
            time.sleep(5)  # wait until the work after a start is done
            memory, cpu, lines = idle(stack, options.idle_secs)
            for _ in range(options.rounds):
                for name in PROGRAMS:
                    kills[name].append(back_secs(stack, name))
        finally:
            stack.command("down")
    print(f"{options.rounds} rounds, medians and worst:")
    print(f"  up, all workers registered  {_both(starts)}")
    print(f"  down, nothing left          {_both(stops)}")
    for name, took in kills.items():
        print(f"  {name:<10} killed, back in   {_both(took)}")
    print("\n".join(lines))
    back = max(max(took) for took in kills.values())
    figures = [
        Figure("start of the stack, worst", max(starts), "s", START_SECS, is_time=True),
        Figure("restart of a killed process, worst", back, "s", BACK_SECS, is_time=True),
        Figure("idle stack, memory", memory, "MB", MEMORY_MB),
        Figure("idle stack, processor", cpu, "% of a core", CPU_PERCENT, is_time=True),
    ]
    conclude(options, figures)


def _both(secs: list[float]) -> str:
    return f"{statistics.median(secs):5.2f} s  {max(secs):5.2f} s"


if __name__ == "__main__":
    main()
