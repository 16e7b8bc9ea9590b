"""The cost of an event in a growing database: hook, writer and listing, up to a million events.

    python benchmarks/growth.py [--events 1000000] [--check]

The first 5,000 events go through the writer, in sessions of 200. SQLite copies their rows with
other ids, so that a million events take a minute. Measured at 1,000, 100,000 and 1,000,000 events:
the writer's processor time for an edit or an agent's call, the whole hook process over a bare
interpreter, and `hivepipe session show`.
"""

import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from drain import CALLS_A_SESSION, WORKER, Setting, messages_of
from figures import Figure, conclude, parser
from hook_cost import BARE, event_bytes, time_process_ms

from hivepipe.events.job_plan import Message
from hivepipe.queue.client import push
from hivepipe.stack import hook_copy

LEVELS = (1_000, 100_000, 1_000_000)
MOST_OVER_FIRST = 1.5
SEED_EVENTS = 5_000
MEASURED_CALLS = 2_000
PUSHED_AT_ONCE = 200


def session_of(number: int) -> str:
    """Return the session of a call."""
    return f"{number // CALLS_A_SESSION:08d}-3a52-4d0e-9c55-0d6a1f2be111"


def calls(first: int, count: int) -> Iterator[list[Message]]:
    """Yield the jobs of edits and agents, as in drain.py."""
    for number in range(first, first + count):
        yield messages_of(number, "Agent" if number % 4 == 3 else "Edit", session_of(number))


def queue(setting: Setting, events: Iterator[list[Message]]) -> None:
    """Enqueue the jobs, many events at once."""
    batch: list[Message] = []
    for messages in events:
        batch += messages
        if len(batch) >= PUSHED_AT_ONCE:
            push(setting.socket, batch, 10)
            batch = []
    if batch:
        push(setting.socket, batch, 10)


def drained_secs(setting: Setting) -> float:
    """Let a writer drain the queue; return the writer's processor time in seconds."""
    begun = os.times()
    subprocess.run(
        [sys.executable, "-I", "-c", WORKER, "hivepipe"],
        cwd=setting.home,
        env=setting.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    ended = os.times()
    spent = ended.children_user + ended.children_system
    return spent - begun.children_user - begun.children_system


def writer_us(setting: Setting, stored: int) -> float:
    """Return the writer's processor time per call in microseconds, without its start."""
    start = drained_secs(setting)
    queue(setting, calls(stored, MEASURED_CALLS))
    return (drained_secs(setting) - start) / MEASURED_CALLS * 1e6


def hook_ratio(setting: Setting, runs: int, mark: int) -> float:
    """Return the hook's median time divided by that of a bare interpreter, run in turns."""
    hooks, bares = [], []
    for number in range(runs):
        data = event_bytes("PostToolUse:Agent", 1000, mark + number)
        command = [hook_copy.launcher(), "post_tool_use"]
        hooks.append(time_process_ms(command, data, setting.environment))
        bares.append(time_process_ms(BARE, data, setting.environment))
    return statistics.median(hooks) / statistics.median(bares)


def show_ms(setting: Setting) -> float:
    """Return the time of `hivepipe session show`, the best of three."""
    taken = []
    for _ in range(3):
        begun = time.perf_counter()
        subprocess.run(
            [sys.executable, "-I", "-m", "hivepipe.cli.main", "session", "show", session_of(0)],
            cwd=setting.home,
            env=setting.environment,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        taken.append((time.perf_counter() - begun) * 1000)
    return min(taken)


def grow(setting: Setting, stored: int, level: int) -> int:
    """Fill the database up to the level; return the number of its events."""
    if stored < (seed := min(level, SEED_EVENTS)):
        queue(setting, calls(stored, seed - stored))
        drained_secs(setting)
        stored = seed
    if stored < level:
        copies = round(level / stored) - 1
        with sqlite3.connect(Path(setting.home, "hive.db")) as connection:
            for statement in copying(connection):
                for copy in range(copies):
                    connection.execute(statement, {"copy": f"-{level}-{copy}"})
        connection.close()
        stored *= copies + 1
    return stored


def copying(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield a statement that copies the present rows, for each table that grows with events."""
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    for (table,) in tables:
        (rows,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        if rows < SEED_EVENTS // CALLS_A_SESSION or table in ("swarms", "schema_migrations"):
            continue
        columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
        kinds = {name: kind for _, name, kind, *_, key in columns if not key or kind != "INTEGER"}
        ids = {name for name, kind in kinds.items() if name.endswith("id") and kind == "TEXT"}
        values = [f"{name} || :copy" if name in ids - {"swarm_id"} else name for name in kinds]
        connection.execute(f"CREATE TEMP TABLE seed_{table} AS SELECT * FROM {table}")
        yield (
            f"INSERT OR IGNORE INTO {table} ({', '.join(kinds)}) SELECT {', '.join(values)}"
            f" FROM seed_{table}"
        )


def main() -> None:
    """Measure, print the figures, and check their bounds."""
    arguments_of = parser(__doc__)
    arguments_of.add_argument("--events", type=int, default=LEVELS[-1])
    arguments_of.add_argument("--runs", type=int, default=30, help="hooks at each level (30)")
    options = arguments_of.parse_args()
    os.umask(0o077)
    writer: dict[int, float] = {}
    hooks: dict[int, float] = {}
    shows: dict[int, float] = {}
    levels = [level for level in LEVELS if level < options.events] + [options.events]
    with tempfile.TemporaryDirectory(prefix="hp", dir="/tmp") as folder:
        setting = Setting(os.path.realpath(folder))
        hook_copy.write()
        try:
            stored = 0
            for level in levels:
                stored = grow(setting, stored, level)
                writer[level] = statistics.median(
                    writer_us(setting, stored + turn * MEASURED_CALLS) for turn in range(3)
                )
                stored += 3 * MEASURED_CALLS
                hooks[level] = hook_ratio(setting, options.runs, stored)
                shows[level] = show_ms(setting)
                size = Path(setting.home, "hive.db").stat().st_size / 1e6
                said = f"writer {writer[level]:.0f} us a call, hook {hooks[level]:.2f} x bare"
                said += f", `hivepipe session show` {shows[level]:.0f} ms"
                print(f"{level:>9,} events stored ({size:.0f} MB): {said}", flush=True)
        finally:
            setting.close()
    first, last = levels[0], levels[-1]
    beside = f"x that at {first:,}"
    figures = [
        Figure(f"{what}, {last:,} events stored", costs[last] / costs[first], beside, bound)
        for what, costs, bound in (
            ("writer's cost of a call", writer, MOST_OVER_FIRST),
            ("hook", hooks, MOST_OVER_FIRST),
            ("`hivepipe session show`", shows, None),
        )
    ]
    conclude(options, figures, {"writer": writer, "hook": hooks, "session show": shows})


if __name__ == "__main__":
    main()
