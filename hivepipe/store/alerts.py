"""Alerts on record: since when each stands, and until when it stood."""

from pathlib import Path

from hivepipe.errors import StoreError
from hivepipe.store.database import Database
from hivepipe.store.listings import listings


def raise_alert(db: Database, name: str, text: str, time: str) -> None:
    """Record that an alert began to stand; one of that name and time is there once."""
    sql = """
        INSERT INTO alerts (name, text, raised_at) VALUES (:name, :text, :time)
        ON CONFLICT (name, raised_at) DO NOTHING
    """
    db.execute(sql, {"name": name, "text": text, "time": time})


def end_alert(db: Database, name: str, time: str) -> None:
    """Record that it stands no more, whenever it was raised before."""
    sql = """
        UPDATE alerts SET ended_at = :time
        WHERE name = :name AND ended_at IS NULL AND raised_at < :time
    """
    db.execute(sql, {"name": name, "time": time})


def standing(path: Path) -> dict[str, str]:
    """Return since when each alert stands, by name; none where there is no store."""
    sql = "SELECT name, min(raised_at) AS since FROM alerts WHERE ended_at IS NULL GROUP BY name"
    try:
        with listings(path) as store:
            return {row["name"]: row["since"] for row in store.rows(sql, {})}
    except StoreError:  # or one of an older hivepipe, without the table
        return {}
