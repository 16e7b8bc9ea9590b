"""The history of alerts: when each one was raised and when it ended."""

from pathlib import Path

from hivepipe.db.database import Database
from hivepipe.db.listings import listings
from hivepipe.errors import StoreError
from hivepipe.times import ahead_ns, stored_time


def raise_alert(db: Database, name: str, text: str, time: str) -> None:
    """Record an alert; a second call with the same name and time changes nothing."""
    db.insert("alerts", {"name": name, "text": text, "raised_at": time})


def end_alert(db: Database, name: str, time: str) -> None:
    """Record the end of the alerts of this name that were raised before `time`.

    An alert with a time in the future ends, too, because the clock was ahead when it was raised.
    """
    sql = """
        UPDATE alerts SET ended_at = :time
        WHERE name = :key AND ended_at IS NULL AND (raised_at < :time OR raised_at > :ahead)
    """
    db.execute(sql, {"key": name, "time": time, "ahead": stored_time(ahead_ns())})


def active_alerts(path: Path) -> dict[str, str]:
    """Return active alert -> time when it was raised, or {} if the store cannot be read."""
    sql = "SELECT name, min(raised_at) AS since FROM alerts WHERE ended_at IS NULL GROUP BY name"
    try:
        with listings(path) as store:
            return {row["name"]: row["since"] for row in store.rows(sql, {})}
    except StoreError:  # no database, or an older hivepipe's without the table
        return {}
