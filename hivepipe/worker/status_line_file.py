"""Write the file that the status line reads: today's cost, alerts, and the open sessions."""

import json
import logging
import time
from contextlib import suppress
from typing import Any

from hivepipe.costs.price_table import prices_in_force
from hivepipe.db import alerts
from hivepipe.db.listings import Listings, listings
from hivepipe.db.location import database_path
from hivepipe.errors import NothingRecordedError, PricesError, StoreError
from hivepipe.files.change_stamp import Stamp, stamps_of_database
from hivepipe.home import project_of, short_hash, write_small
from hivepipe.hook.status_line import FILE
from hivepipe.reading.costs import bills
from hivepipe.reading.homes import KnownHome
from hivepipe.reading.now import OpenSession, open_sessions
from hivepipe.times import ns_of, stored_time

LOOK_EVERY_SECS = 2.0
# The file is also rewritten without a change of the store, because some of it depends on the time.
REWRITE_SECS = 60.0
MOST_SESSIONS = 50

logger = logging.getLogger("hivepipe.status_line")


class StatusLineFile:
    def __init__(self, home: str) -> None:
        self._home = home
        self._looked_at = self._tried_at = float("-inf")
        self._seen: tuple[Stamp, ...] = ()

    def tidy(self) -> None:
        """Replace the file if the store has changed or a minute has passed; log a failure."""
        now = time.monotonic()
        if now - self._looked_at < LOOK_EVERY_SECS:
            return
        self._looked_at = now
        seen = stamps_of_database(database_path(self._home))
        if seen == self._seen and now - self._tried_at < REWRITE_SECS:
            return
        self._seen, self._tried_at = seen, now
        try:
            with suppress(NothingRecordedError):
                write_small(f"{self._home}/{FILE}", json.dumps(content(self._home)) + "\n")
        except (OSError, StoreError, PricesError) as error:
            logger.warning("%s is not updated: %s", FILE, error)


def content(home: str) -> dict[str, Any]:
    """Return the content of the status line's file.

    Raise NothingRecordedError if there is no database, StoreError or OSError if the database cannot
    be read, and PricesError if the user's prices cannot be read.
    """
    known = KnownHome(short_hash(home), home, project_of(home))
    path = database_path(home)
    with listings(path) as store:
        today_usd = _cost_of_today(home, store)
    sessions = open_sessions([known], with_ended=False, limit=MOST_SESSIONS)
    return {
        "v": 1,
        "day": time.strftime("%Y-%m-%d"),
        "today_usd": today_usd,
        "alerts": len(alerts.active_alerts(path)),
        "sessions": {session.id: _entry(session) for session in sessions},
    }


def _cost_of_today(home: str, store: Listings) -> float | None:
    """Return the cost in dollars since local midnight, or None if no used model has a price."""
    now = time.localtime()
    midnight = time.mktime((now.tm_year, now.tm_mon, now.tm_mday, 0, 0, 0, 0, 0, -1))
    total = bills(store, (), since=stored_time(int(midnight) * 10**9)).total
    return total.cost(prices_in_force(home)).rounded


def _entry(session: OpenSession) -> dict[str, Any]:
    return {
        "usd": session.dollars,
        "tokens": session.context_tokens,
        "window": session.context_window,
        "cache_until": ns_of(session.cache_until) // 10**9 if session.cache_until else None,
        "waits": session.waits,
    }
