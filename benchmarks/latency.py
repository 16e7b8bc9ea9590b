"""The time from a hook's exit to its readable row, under a steady load of real hooks.

    python benchmarks/latency.py [--rate 100] [--secs 10] [--check]

Hooks are started on a fixed schedule, even if earlier ones are still running. A second connection
polls for the rows. With `--check` p50 must be under 10 ms and p99 under 50 ms on a quiet machine,
or three times that in CI.
"""

import json
import os
import posix
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from figures import Figure, conclude, parser

from hivepipe.stack import hook_copy

P50_MS, P99_MS = 10.0, 50.0
SCHEMA_SECS = 30


def fire(number: int, environment: dict[str, str], exits: dict[str, float]) -> None:
    """Run one hook and record when it ended."""
    event = {
        "session_id": "7b1f0c9e-3a52-4d0e-9c55-0d6a1f2be111",
        "hook_event_name": "PostToolUse",
        "tool_name": "Agent",
        "tool_input": {"description": "Map callers", "subagent_type": "Explore"},
        "tool_response": {"status": "completed", "agentId": f"agent{number}"},
        "tool_use_id": f"toolu_{number}",
    }
    command = [hook_copy.launcher(), "post_tool_use"]
    subprocess.run(
        command,
        input=json.dumps(event).encode(),
        env=environment,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    exits[f"toolu_{number}"] = time.perf_counter()


def watch(database: str, seen: dict[str, float], wanted: int, stop: threading.Event) -> None:
    """Record when each agent's row can first be read."""
    connection = opened(database)
    last = 0
    while len(seen) < wanted and not stop.is_set():
        rows = connection.execute(
            "SELECT rowid, tool_use_id FROM agents WHERE rowid > ? ORDER BY rowid", (last,)
        ).fetchall()
        now = time.perf_counter()
        for rowid, tool_use_id in rows:
            seen[tool_use_id] = now
            last = rowid
        time.sleep(0.001)


def opened(database: str) -> sqlite3.Connection:
    """Open the database as soon as the writer has made its tables.

    Raise sqlite3.OperationalError if the tables are still missing after SCHEMA_SECS.
    """
    deadline = time.monotonic() + SCHEMA_SECS
    while True:
        connection = None
        try:
            connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
            connection.execute("SELECT 1 FROM agents LIMIT 1")
            return connection
        except sqlite3.OperationalError:
            if connection is not None:
                connection.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def measure(folder: str, rate: int, secs: int) -> list[float]:
    """Return the latencies in ms."""
    environment = {
        "HOME": folder,
        "PATH": os.environ["PATH"],
        "XDG_STATE_HOME": f"{folder}/state",
        "XDG_RUNTIME_DIR": f"{folder}/run",
        "HIVEPIPE_HOME": f"{folder}/home",
    }
    posix.environ.update({k.encode(): v.encode() for k, v in environment.items()})
    run_command(environment, "up", "-d")
    try:
        exits: dict[str, float] = {}
        seen: dict[str, float] = {}
        stop = threading.Event()
        total = rate * secs
        fire(total, environment, {})  # the start of the session is not measured
        watcher = threading.Thread(
            target=watch, args=(f"{folder}/home/hive.db", seen, total + 1, stop)
        )
        watcher.start()
        begun = time.perf_counter()
        threads = []
        for number in range(total):
            time.sleep(max(0.0, begun + number / rate - time.perf_counter()))
            thread = threading.Thread(target=fire, args=(number, environment, exits))
            thread.start()
            threads.append(thread)
        for thread in threads:
            thread.join()
        watcher.join(timeout=10)
        stop.set()
        missing = exits.keys() - seen.keys()
        if missing:
            raise SystemExit(f"{len(missing)} of {total} events have no row")
        return [max(0.0, (seen[key] - at) * 1000) for key, at in exits.items()]
    finally:
        run_command(environment, "down")


def run_command(environment: dict[str, str], *words: str) -> None:
    command = [sys.executable, "-I", "-m", "hivepipe.cli.main", *words]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Measure, print the figures, and check their bounds."""
    arguments_of = parser(__doc__)
    arguments_of.add_argument("--rate", type=int, default=100, help="events per second (100)")
    arguments_of.add_argument("--secs", type=int, default=10)
    options = arguments_of.parse_args()
    os.umask(0o077)
    with tempfile.TemporaryDirectory(prefix="hp", dir="/tmp") as folder:
        latencies = sorted(measure(os.path.realpath(folder), options.rate, options.secs))
    p50 = statistics.median(latencies)
    p99 = latencies[int(len(latencies) * 0.99) - 1]
    what = f"hook's exit to visible row, {options.rate} events a second"
    print(f"{len(latencies)} events; the worst took {latencies[-1]:.1f} ms")
    figures = [
        Figure(f"{what}, p50", p50, "ms", P50_MS, is_time=True),
        Figure(f"{what}, p99", p99, "ms", P99_MS, is_time=True),
    ]
    conclude(options, figures, {"latencies": latencies})


if __name__ == "__main__":
    main()
