"""A team's PostgreSQL: rows per second, lag, memory, and the cost of change capture for the writer.

    python benchmarks/team.py [--rows 20000] [--shipments 9] [--rounds 3] [--homes 100] [--secs 20]
        [--hooks 1000] [--check]

PostgreSQL 18 of the wheel runs on the same cores, with fsync on. Shipping and a bare COPY take
turns, with the same rows from the same SQLite, in the same batches, into a table with the same key
and indexes. A second COPY has its rows as text in memory, which leaves out the time to read them.
The lag is measured with `--homes` homes, each with ten events a second. The writer drains the same
jobs with and without capture, in turns. Hooks take turns with and without a team.
"""

import multiprocessing
import os
import random
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import drain
import hook_cost
import psutil
from figures import Figure, conclude, parser

from hivepipe.db.changes import changes_since, start_capture
from hivepipe.db.database import Database
from hivepipe.db.listings import listings
from hivepipe.team import membership
from hivepipe.team.address import Address, parse
from hivepipe.team.connection import connected
from hivepipe.team.membership import Membership, keep
from hivepipe.team.shipment import ROWS_AT_ONCE, Shipment
from hivepipe.worker.uplink import GATHER_SECS

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from tests.postgres import serving  # noqa: E402
from tests.team_scene import HomeOfTeam, Team  # noqa: E402

LEAST_ROWS = 8_000
LEAST_OF_COPY = 0.6
MOST_LAG_SECS = 3.0
MOST_PSS_MB = 40.0
MOST_OF_WRITER = 1.10
EVENTS_A_SECOND = 10
WORKER = drain.WORKER.replace(
    "perf_counter", "process_time"
)  # processor time does not depend on load
ROWS_OF_COPY = """
    SELECT 1, substr(created_at, 1, 7) || message_id || request_id, rowid, substr(created_at, 1, 8)
      || '01', message_id, request_id, session_id, agent_id, is_sidechain, is_replay, created_at,
      model, speed, region, input, output, cache_read, cache_write_5m, cache_write_1h, web_searches
    FROM usage
"""
MOST_OF_HOOK = 1.02
HOOKS_IN_TURN = 25
UPLINK_STARTS_SECS = 5
GROUP_SECS = 0.5  # a home's writer commits the events of this time


def write_messages(path: Path, number: int, start: int = 0) -> None:
    """Write rows of messages of Claude, as the writer does."""
    sql = (
        "INSERT INTO usage VALUES (?, ?, 'one', '', 0, 0, ?, 'claude-opus-5-5', 'standard', 'us', "
    )
    rows = [
        (f"msg_{start + each:024d}", f"req_{start + each:020d}", "2026-11-24T10:01:00.000Z")
        for each in range(number)
    ]
    with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as db:
        db.execute("BEGIN IMMEDIATE")
        db.executemany(f"{sql}1200, 345, 12000, 300, 0, 0)", rows)
        db.execute("COMMIT")


def shipped_a_second(team: Team, login: Address, folder: Path, rows: int) -> float:
    """Ship the rows of a new home and check that all arrived once; return rows per second."""
    home = HomeOfTeam(folder / "hive.db", login)
    home.work("one", 0)
    write_messages(home.path, rows)
    before = team.count("usage")
    with Shipment(home.home, login, home.share) as shipment:
        began = time.perf_counter()
        while shipment.ship_next():
            pass
        spent = time.perf_counter() - began
    assert team.count("usage") - before == rows
    return rows / spent


def bytes_a_row(team: Team) -> float:
    """Return the size on the server of a row of messages, with its indexes."""
    size = "SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('hivepipe.usage')"
    return int(team.query(size)) / team.count("usage")


def copied_a_second(team: Team, folder: Path, rows: int, *, is_read_before: bool) -> float:
    """COPY the rows of a home to a table with the same key and indexes; return rows per second."""
    team.server.psql(
        "DROP TABLE IF EXISTS hivepipe.bare; "
        "CREATE TABLE hivepipe.bare (LIKE hivepipe.usage INCLUDING ALL); "
        "ALTER TABLE hivepipe.bare OWNER TO hivepipe_owner",
        team.database,
    )
    copying = copy_texts if is_read_before else copy_rows
    with closing(sqlite3.connect(folder / "hive.db")) as db, connected(team.admin) as connection:
        found = db.execute(ROWS_OF_COPY)
        return rows / copying(connection, found)


def copy_rows(connection: Any, found: sqlite3.Cursor) -> float:
    """COPY the result of a query; return the seconds of query and COPY."""
    began = time.perf_counter()
    while batch := found.fetchmany(ROWS_AT_ONCE):
        with connection.cursor() as cursor, cursor.copy("COPY hivepipe.bare FROM STDIN") as copy:
            for row in batch:
                copy.write_row(row)
    return time.perf_counter() - began


def copy_texts(connection: Any, found: sqlite3.Cursor) -> float:
    """COPY the fetched result of a query; return the seconds of COPY without the query."""
    lines = ["\t".join(map(str, row)) for row in found]
    began = time.perf_counter()
    for at in range(0, len(lines), ROWS_AT_ONCE):
        with connection.cursor() as cursor, cursor.copy("COPY hivepipe.bare FROM STDIN") as copy:
            copy.write("\n".join(lines[at : at + ROWS_AT_ONCE]) + "\n")
    return time.perf_counter() - began


# ---- lag


def lags_of(folder: str, url: str, homes: range, secs: float, ready: Any, found: Any) -> None:
    """Run the homes of one process; put the lags of all rows into a queue, in seconds.

    The time starts when all homes of all processes have reached the barrier `ready`.
    """
    lags: list[float] = []
    threads = [
        threading.Thread(
            target=one_home, args=(Path(folder, str(number)), parse(url), secs, ready, lags)
        )
        for number in homes
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found.put(lags)


def one_home(folder: Path, login: Address, secs: float, ready: Any, lags: list[float]) -> None:
    """Ship the rows of a home while its writer writes."""
    home = HomeOfTeam(folder / "hive.db", login)
    home.work("one", 0)
    home.ship()
    ready.wait()
    end = time.monotonic() + secs
    writer = threading.Thread(target=write_until, args=(home.path, end))
    writer.start()
    time.sleep(random.random() * GATHER_SECS)
    with Shipment(home.home, login, home.share) as shipment:
        while time.monotonic() < end:
            mark = shipment.mark
            with listings(home.path) as store:
                waiting = [each.version for each in changes_since(store, mark, ROWS_AT_ONCE)]
            shipment.ship_next()
            now = time.time()
            lags += [now - each / 1e6 for each in waiting if each <= shipment.mark]
            time.sleep(GATHER_SECS)
    writer.join()


def write_until(path: Path, end: float) -> None:
    """Write ten events a second until the end."""
    number = 0
    time.sleep(random.random() * GROUP_SECS)
    while time.monotonic() < end:
        batch = int(EVENTS_A_SECOND * GROUP_SECS)
        write_messages(path, batch, number)
        number += batch
        time.sleep(GROUP_SECS)


def lag_p95(login: Address, folder: Path, homes: int, secs: float) -> float:
    """Return the 95th percentile of the lag of rows in seconds, over all homes."""
    found: multiprocessing.Queue[list[float]] = multiprocessing.Queue()
    ready = multiprocessing.Barrier(homes)
    workers = [
        multiprocessing.Process(
            target=lags_of,
            args=(str(folder), login.url, range(at, homes, 4), secs, ready, found),
        )
        for at in range(4)
    ]
    for worker in workers:
        worker.start()
    lags = sorted(lag for _ in workers for lag in found.get())
    for worker in workers:
        worker.join()
    return lags[int(len(lags) * 0.95)]


# ---- memory, writer


def uplink_mb(login: Address, folder: Path) -> float:
    """Return the memory in MB of an uplink process that has shipped 20,000 rows."""
    setting = drain.Setting(str(folder))
    try:
        keep(Membership("ann", "desk", login.shown, {"*": "everything"}), login, None)
        home = HomeOfTeam(Path(setting.home, "hive.db"), login)
        home.work("one", 0)
        write_messages(home.path, 20_000)
        script = ROOT / "workers" / "uplink.py"
        uplink = subprocess.Popen([sys.executable, "-I", str(script)], env=setting.environment)
        try:
            time.sleep(15)
            return float(psutil.Process(uplink.pid).memory_full_info().pss / 1e6)
        finally:
            uplink.terminate()
            uplink.wait()
    finally:
        setting.close()


def writers_ratio(folder: Path, jobs: int, rounds: int) -> float:
    """Return the writer's processor time with capture / without it: the median of rounds."""
    setting = drain.Setting(str(folder))
    try:
        ratios = []
        for number in range(rounds):
            order = (True, False) if number % 2 else (False, True)
            spent = {captured: drained_secs(setting, jobs, captured) for captured in order}
            ratios.append(spent[True] / spent[False])
        return statistics.median(ratios)
    finally:
        setting.close()


def drained_secs(setting: drain.Setting, jobs: int, captured: bool) -> float:
    setting.fresh()
    with closing(Database(Path(setting.home, "hive.db"))) as db:
        if captured:
            start_capture(db)
    drain.fill(setting, jobs)
    done = subprocess.run(
        [sys.executable, "-I", "-c", WORKER, "hivepipe"],
        env=setting.environment,
        cwd=setting.home,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.split()[-1])


# ---- hook


def switch(uplink: int, away: Path, is_joined: bool) -> None:
    """Join or leave a team, without an uplink that notices it."""
    if is_joined:
        away.rename(membership.file_path())
        os.kill(uplink, signal.SIGCONT)
    else:
        os.kill(uplink, signal.SIGSTOP)
        membership.file_path().rename(away)


def hooks_ratio(folder: Path, login: Address, runs: int) -> float:
    """Return a hook's time with a joined team's uplink / its time without a team (medians)."""
    setting = hook_cost.Setting(str(folder))
    times: dict[bool, list[float]] = {True: [], False: []}
    HomeOfTeam(Path(setting.home, "hive.db"), login).work("one")
    keep(Membership("ann", "desk", login.shown, {"*": "everything"}), login, None)
    environment = {**setting.environment, "HIVEPIPE_HOME": setting.home}
    command = [sys.executable, "-I", str(ROOT / "workers" / "uplink.py")]
    uplink = subprocess.Popen(command, env=environment)
    try:
        with hook_cost.redis_state(setting, "up"), hook_cost.intake(setting):
            time.sleep(UPLINK_STARTS_SECS)
            for turn in range(2 * runs // HOOKS_IN_TURN):
                is_joined = not turn % 2
                if turn:
                    switch(uplink.pid, folder / "away", is_joined)
                for number in range(HOOKS_IN_TURN):
                    data = hook_cost.event_bytes("PostToolUse", 1000, turn * 1000 + number)
                    hook = hook_cost.native_command("PostToolUse")
                    took = hook_cost.time_process_ms(hook, data, setting.environment)
                    times[is_joined].append(took)
    finally:
        uplink.kill()
        uplink.wait()
        setting.stop_server()
    return statistics.median(times[True]) / statistics.median(times[False])


def main() -> None:
    """Measure, print the figures, and check their bounds."""
    options_of = parser(__doc__)
    options_of.add_argument("--rows", type=int, default=20_000)
    options_of.add_argument("--shipments", type=int, default=9)
    options_of.add_argument("--rounds", type=int, default=3)
    options_of.add_argument("--homes", type=int, default=100)
    options_of.add_argument("--secs", type=float, default=20)
    options_of.add_argument("--jobs", type=int, default=8_000)
    options_of.add_argument("--hooks", type=int, default=1_000)
    options = options_of.parse_args()
    os.umask(0o077)
    with serving() as server, tempfile.TemporaryDirectory(prefix="hp-", dir="/tmp") as temporary:
        folder = Path(temporary)
        team = Team.on(server)
        team.query("SELECT hivepipe.set_policy('*', 'everything')")
        login = team.joined("ann").writes
        shipped, copied, texts = [], [], []
        for number in range(options.shipments):
            home = folder / f"round{number}"
            shipped.append(shipped_a_second(team, login, home, options.rows))
            copied.append(copied_a_second(team, home, options.rows, is_read_before=False))
            texts.append(copied_a_second(team, home, options.rows, is_read_before=True))
        row = bytes_a_row(team)
        lag = lag_p95(login, folder / "lag", options.homes, options.secs)
        (folder / "uplink").mkdir()
        (folder / "writer").mkdir()
        memory = uplink_mb(login, folder / "uplink")
        writer = writers_ratio(folder / "writer", options.jobs, options.rounds)
        (folder / "hook").mkdir()
        hook = hooks_ratio(folder / "hook", login, options.hooks)
    ratio, of_texts = (
        statistics.median(one / other for one, other in zip(shipped, copies, strict=True))
        for copies in (copied, texts)
    )
    at_scale = f"{options.homes} homes x {EVENTS_A_SECOND} events a second"
    conclude(
        options,
        [
            Figure("team, rows a second", max(shipped), "rows", at_least=LEAST_ROWS),
            Figure("team, compared with a bare COPY", ratio, "x", at_least=LEAST_OF_COPY),
            Figure("team, compared with a COPY of text in memory", of_texts, "x"),
            Figure("team, a row of messages with its indexes", row, "bytes"),
            Figure(f"team, lag at {at_scale}, p95", lag, "s", at_most=MOST_LAG_SECS, is_time=True),
            Figure("team, an uplink's memory", memory, "MB", at_most=MOST_PSS_MB),
            Figure("team, the writer with capture", writer, "x without", at_most=MOST_OF_WRITER),
            Figure("team, a hook with a team joined", hook, "x without", at_most=MOST_OF_HOOK),
        ],
        {"shipped": shipped, "copied": copied, "texts": texts},
    )


if __name__ == "__main__":
    main()
