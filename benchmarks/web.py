"""What the page costs over a large home: time of each view, bytes of a first visit, memory.

    python benchmarks/web.py [--events 1000000] [--check]

The home is that of growth.py, sessions of 200 calls, with twenty messages of Claude each, spread
over a year; twenty sessions are open. The page is the real `hivepipe web` on loopback; a first
visit loads style, script and icon, too. Times are those of a client on the same machine.
"""

import http.client
import json
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import psutil  # type: ignore[import-untyped]
from drain import Setting
from figures import Figure, conclude, parser
from growth import grow

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
P95_MS, FIRST_KB, FIRST_REQUESTS, IDLE_MB, USED_MB = 50, 120, 5, 30, 60
LIVE_PAGES, IDLE_PERCENT = 20, 0.1


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
        """Return what is at a path; it must be there."""
        connection = http.client.HTTPConnection(self.place)
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status} {body[:200]!r}")
        return body

    def visit(self, name: str, path: str, rounds: int) -> None:
        """Load a view some times."""
        for _ in range(rounds):
            begun = time.perf_counter()
            self.get(path)
            self.spent_ms.setdefault(name, []).append((time.perf_counter() - begun) * 1000)

    def first_visit(self) -> tuple[int, int]:
        """Return the bytes and the requests of a first visit."""
        page = self.get("/now")
        parts = set(re.findall(rb'(?:src|href)="(/static/[^"]+)"', page))
        return len(page) + sum(len(self.get(part.decode())) for part in parts), 1 + len(parts)

    def idle_share(self, pages: int, secs: float) -> float:
        """Return the share of a core, in percent, that each of some idle pages takes.

        The server's own share is in it.
        """
        streams = [self._stream() for _ in range(pages)]
        process = psutil.Process(self.process.pid)
        before = process.cpu_times()
        time.sleep(secs)
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


def main() -> None:
    """Measure, print, judge."""
    arguments = parser(__doc__)
    arguments.add_argument("--events", type=int, default=1_000_000)
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
            with Page(setting) as page:
                figures = measured(page, options.rounds, options.idle_secs)
        finally:
            setting.close()
    print(f"{options.events:,} events, {sessions:,} sessions")
    for name, spent in page.spent_ms.items():
        print(f"  {name:10} median {statistics.median(spent):7.1f} ms, p95 {p95(spent):7.1f} ms")
    conclude(options, figures, page.spent_ms)


def measured(page: Page, rounds: int, idle_secs: float) -> list[Figure]:
    """Visit every view and one session; return the figures."""
    idle = page.megabytes()
    share = page.idle_share(LIVE_PAGES, idle_secs)
    size, requests = page.first_visit()
    for view in VIEWS:
        page.visit(view, f"/{view}", rounds)
    page.visit("ended", "/now?all=1", rounds)
    found = json.loads(page.get("/now.json?all=1"))["sessions"][0]
    page.visit("session", f"/session/{found['home']}/{found['id']}", rounds)
    worst = max(page.spent_ms, key=lambda name: p95(page.spent_ms[name]))
    slowest = p95(page.spent_ms[worst])
    return [
        Figure(f"page, p95 of the slowest view ({worst})", slowest, "ms", P95_MS, is_time=True),
        Figure("page, first visit", size / 1000, "kB", FIRST_KB),
        Figure("page, first visit", requests, "requests", FIRST_REQUESTS),
        Figure("page, memory idle", idle, "MB", IDLE_MB),
        Figure(f"page, each of {LIVE_PAGES} live and idle", share, "% of a core", IDLE_PERCENT),
        Figure("page, memory after all views", page.megabytes(), "MB", USED_MB),
    ]


def p95(spent: list[float]) -> float:
    """Return the 95th percentile."""
    return statistics.quantiles(spent, n=20)[-1] if len(spent) > 1 else spent[0]


if __name__ == "__main__":
    main()
