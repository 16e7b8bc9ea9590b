"""The cost of the page for a large home: time of each view, bytes, memory, and delay of hooks.

    python benchmarks/web.py [--events 1000000] [--archives-mb 200] [--check]

The home is that of growth.py: sessions of 200 calls with twenty messages of Claude each, spread
over a year. Twenty sessions are open. All sessions are archived, and these twenty have a fifth of
the bytes. The page is the real `hivepipe web` on loopback. A first visit also loads style, script
and icon. Times are those of a client on the same machine. Pages share an answer between two
changes, so views after a change are measured separately. A change is on the screen after a page was
notified and has loaded its view again, which it does 0.2 s later. Idle pages load their view once a
minute. Hooks run in turns while ten pages are open and while none is. A writer stores their events,
and each page loads its view again, as a browser would.
"""

import contextlib
import http.client
import json
import os
import re
import select
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import psutil  # type: ignore[import-untyped]
from drain import Setting
from figures import Figure, conclude, parser
from growth import grow
from hook_cost import event_bytes, time_process_ms
from live_pages import LATER_SECS, LivePages
from page_archives import CWD, write_transcripts

from hivepipe.stack import hook_copy
from hivepipe.web.views import VIEWS

MESSAGES = """
    WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 20)
    INSERT OR IGNORE INTO usage (message_id, request_id, session_id, agent_id, is_sidechain,
      is_replay, created_at, model, speed, region, input, output, cache_read, cache_write_5m,
      cache_write_1h, web_searches)
    SELECT sessions.id || '-' || n, 'r', sessions.id, '', 0, 0, sessions.created_at,
      'claude-opus-4-5-20251101', '', '', 1000, 200, 30000, 500, 0, 0 FROM sessions, number
"""
SPREAD = """
    CREATE TEMP TABLE moved AS SELECT id, ROW_NUMBER() OVER () % 365 AS days FROM sessions;
    CREATE UNIQUE INDEX temp.moved_by_id ON moved (id);
    UPDATE sessions SET updated_at = {by}, created_at = {by} FROM moved
      WHERE moved.id = sessions.id;
    UPDATE agents SET created_at = {by} FROM moved WHERE moved.id = agents.session_id;
    UPDATE usage SET created_at = {by} FROM moved WHERE moved.id = usage.session_id;
    UPDATE sessions SET status = 'ended' WHERE id NOT IN (
      SELECT id FROM sessions ORDER BY updated_at DESC LIMIT 20);
""".format(by="strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || days || ' days')")
SEEN_MS = 1000
P95_MS, FIRST_KB, FIRST_REQUESTS, IDLE_MB, USED_MB = 50, 120, 5, 30, 60
LIVE_PAGES, IDLE_PERCENT = 20, 0.1
CHANGED = ", after a change"
RELOAD_SECS = 60  # interval of an idle page (live.js)
MOST_FELT, HOOKS_A_TURN, PAUSE_SECS = 1.02, 20, 0.1
OPEN = ("now", "now", "now", "now", "now?all=1", "agents", "costs", "skills", "queues", "health")


@dataclass
class Page:
    """A running `hivepipe web`, and a client of it."""

    setting: Setting
    spent_ms: dict[str, list[float]] = field(default_factory=dict)

    def __enter__(self) -> "Page":
        words = [sys.executable, "-I", "-m", "hivepipe.cli.main", "web", "--port", "0", "--no-open"]
        self.process = subprocess.Popen(
            words, cwd=self.setting.home, env=self.setting.environment, stdout=subprocess.PIPE
        )
        assert self.process.stdout
        address = urlsplit(self.process.stdout.readline().decode().strip())
        self.place, self.token = address.netloc, address.query.partition("=")[2]
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()

    def get(self, path: str) -> bytes:
        """Return the content of a path, which must exist."""
        connection = http.client.HTTPConnection(self.place)
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status} {body[:200]!r}")
        return body

    def visit(self, name: str, path: str, rounds: int, *, is_changed: bool = False) -> None:
        """Load a view several times, optionally after a change of the database each time."""
        for _ in range(rounds):
            if is_changed:
                os.utime(Path(self.setting.home, "hive.db"))
            begun = time.perf_counter()
            self.get(path)
            self.spent_ms.setdefault(name, []).append((time.perf_counter() - begun) * 1000)

    def see_changes(self, rounds: int) -> None:
        """Record the times from a committed change to the screen of an open page."""
        database = sqlite3.connect(Path(self.setting.home, "hive.db"), isolation_level=None)
        with contextlib.closing(database), contextlib.closing(self._stream()) as stream:
            for number in range(rounds):
                time.sleep(0.1 + number % 10 / 10)  # write at any moment between two polls
                while select.select([stream.sock], [], [], 0)[0]:
                    stream.sock.recv(65536)
                begun = time.perf_counter()
                database.execute("INSERT INTO counters VALUES (?, 1)", (f"seen {number}",))
                while b"changed" not in stream.sock.recv(65536):
                    pass
                time.sleep(LATER_SECS)
                self.get("/now")
                spent = (time.perf_counter() - begun) * 1000
                self.spent_ms.setdefault("change on the screen", []).append(spent)

    def first_visit(self) -> tuple[int, int]:
        """Return the number of bytes and requests of a first visit."""
        page = self.get("/now")
        parts = set(re.findall(rb'(?:src|href)="(/static/[^"]+)"', page))
        return len(page) + sum(len(self.get(part.decode())) for part in parts), 1 + len(parts)

    def idle_share(self, pages: int, secs: float) -> float:
        """Return the server's CPU time for each idle page, in percent of a core."""
        self.get("/now")
        streams = [self._stream() for _ in range(pages)]
        process = psutil.Process(self.process.pid)
        before = process.cpu_times()
        loads = round(pages * secs / RELOAD_SECS)
        for _ in range(loads):
            self.get("/now")
            time.sleep(secs / loads)
        after = process.cpu_times()
        for stream in streams:
            stream.close()
        return (after.user + after.system - before.user - before.system) / secs / pages * 100

    def _stream(self) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(self.place)
        connection.request("GET", "/events", headers={"Authorization": f"Bearer {self.token}"})
        if connection.getresponse().status != 200:
            raise SystemExit("/events does not answer")
        return connection

    def megabytes(self) -> float:
        """Return the page's proportional set size."""
        return float(psutil.Process(self.process.pid).memory_full_info().pss / 1e6)


def archive(setting: Setting, megabytes: float) -> float:
    """Archive and index transcripts of all sessions; return their megabytes."""
    with contextlib.closing(sqlite3.connect(Path(setting.home, "hive.db"))) as connection:
        sessions = connection.execute(
            "SELECT id, created_at FROM sessions ORDER BY status = 'ended', updated_at DESC"
        ).fetchall()
    folder = Path(setting.environment["HOME"], ".claude", "projects", "-home-ana-shop")
    write_transcripts(folder, sessions, megabytes)
    command(setting, "archive", "follow", CWD)
    command(setting, "archive", "sweep")
    while json.loads(command(setting, "search", "--json", "zzzz"))["not_indexed_bytes"]:
        pass
    archives = Path(setting.home, "archive").rglob("*.jsonl")
    return sum(path.stat().st_size for path in archives) / 1e6


def command(setting: Setting, *words: str) -> bytes:
    """Run a hivepipe command and return its output."""
    return subprocess.run(
        [sys.executable, "-I", "-m", "hivepipe.cli.main", *words],
        cwd=setting.home,
        env={**setting.environment, "HIVEPIPE_AUTOSTART": "0"},
        stdout=subprocess.PIPE,
        check=True,
    ).stdout


@contextlib.contextmanager
def writer(setting: Setting) -> Iterator[None]:
    """Let a writer store the events of hooks."""
    program = Path(__file__).resolve().parent.parent / "workers" / "writer.py"
    process = subprocess.Popen(
        [sys.executable, "-I", program], env=setting.environment, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def felt(page: Page, paths: list[str], turns: int) -> list[Figure]:
    """Run hooks in turns while the pages are open and while they are closed."""
    hook_copy.write()
    hook = [hook_copy.launcher(), "post_tool_use"]
    pages = LivePages(page.place, page.token, paths)
    spent: dict[bool, list[float]] = {True: [], False: []}
    number = 0
    with writer(page.setting):
        for turn in range(-1, 2 * turns):
            is_open = turn % 2 == 0
            (pages.open if is_open else pages.close)()
            time.sleep(1)
            for _ in range(HOOKS_A_TURN):
                number += 1
                time.sleep(PAUSE_SECS)
                data = event_bytes("PostToolUse:Agent", 1000, number)
                took = time_process_ms(hook, data, page.setting.environment)
                if turn >= 0:
                    spent[is_open].append(took)
    loads = pages.loads
    pages.end()
    beside, alone = statistics.median(spent[True]), statistics.median(spent[False])
    print(f"  hook: {beside:.2f} ms beside pages, {alone:.2f} ms alone; {loads} loads of views")
    page.spent_ms |= {"hook, pages open": spent[True], "hook, no page": spent[False]}
    what = f"hook while {len(paths)} pages are open and live"
    return [Figure(what, beside / alone, "x without a page", MOST_FELT)]


def main() -> None:
    """Measure, print the figures, and check their bounds."""
    arguments = parser(__doc__)
    arguments.add_argument("--events", type=int, default=1_000_000)
    arguments.add_argument("--archives-mb", type=float, default=200)
    arguments.add_argument("--turns", type=int, default=20, help="turns of hooks (20)")
    arguments.add_argument("--rounds", type=int, default=40, help="visits of a view (40)")
    arguments.add_argument("--idle-secs", type=float, default=30, help="seconds idle (30)")
    options = arguments.parse_args()
    os.umask(0o077)
    with tempfile.TemporaryDirectory(prefix="hp", dir="/tmp") as folder:
        setting = Setting(os.path.realpath(folder))
        try:
            grow(setting, 0, options.events)
            with sqlite3.connect(Path(setting.home, "hive.db")) as connection:
                connection.execute(MESSAGES)
                connection.executescript(SPREAD)
                (sessions,) = connection.execute("SELECT count(*) FROM sessions").fetchone()
            connection.close()
            archived = archive(setting, options.archives_mb)
            with Page(setting) as page:
                figures = measured(page, options.rounds, options.idle_secs)
                figures += felt(page, [f"/{view}" for view in OPEN], options.turns)
        finally:
            setting.close()
    print(f"{options.events:,} events, {sessions:,} sessions, {archived:.0f} MB of archives")
    for name, spent in page.spent_ms.items():
        print(f"  {name:22} median {statistics.median(spent):7.1f} ms, p95 {p95(spent):7.1f} ms")
    conclude(options, figures, page.spent_ms)


def measured(page: Page, rounds: int, idle_secs: float) -> list[Figure]:
    """Visit every view and one session; return the figures."""
    page.get("/static/icon.svg")  # wait until it serves
    idle = page.megabytes()
    share = page.idle_share(LIVE_PAGES, idle_secs)
    size, requests = page.first_visit()
    found = json.loads(page.get("/now.json?all=1"))["sessions"][0]
    paths = {view: f"/{view}" for view in VIEWS}
    paths |= {"ended": "/now?all=1", "found": "/search?q=import"}
    paths["session"] = f"/session/{found['home']}/{found['id']}"
    for name, path in paths.items():
        page.visit(name, path, rounds)
    worst = max(page.spent_ms, key=lambda name: p95(page.spent_ms[name]))
    slowest = p95(page.spent_ms[worst])
    for name, path in paths.items():
        page.visit(f"{name}{CHANGED}", path, rounds // 2, is_changed=True)
    changed = max(paths, key=lambda name: p95(page.spent_ms[f"{name}{CHANGED}"]))
    slowest_changed = p95(page.spent_ms[f"{changed}{CHANGED}"])
    used = page.megabytes()
    page.see_changes(rounds // 2)
    seen = p95(page.spent_ms["change on the screen"])
    what = f"page, p95 of the slowest view{CHANGED} ({changed})"
    return [
        Figure(f"page, p95 of the slowest view ({worst})", slowest, "ms", P95_MS, is_time=True),
        Figure(what, slowest_changed, "ms", P95_MS, is_time=True),
        Figure("page, p95 until a change is on the screen", seen, "ms", SEEN_MS, is_time=True),
        Figure("page, first visit", size / 1000, "kB", FIRST_KB),
        Figure("page, first visit", requests, "requests", FIRST_REQUESTS),
        Figure("page, memory idle", idle, "MB", IDLE_MB),
        Figure(f"page, each of {LIVE_PAGES} live and idle", share, "% of a core", IDLE_PERCENT),
        Figure("page, memory after all views", used, "MB", USED_MB),
    ]


def p95(spent: list[float]) -> float:
    """Return the 95th percentile."""
    return statistics.quantiles(spent, n=20)[-1] if len(spent) > 1 else spent[0]


if __name__ == "__main__":
    main()
