"""`hivepipe what` names all tables with personal data."""

from pathlib import Path

from hivepipe.cli.what import KEPT
from hivepipe.db.database import Database
from hivepipe.db.listings import listings

# Tables without other personal data: numbers, links between rows, ids.
BESIDE = {
    *("cost_states", "usage_sums", "repeated_messages", "imported_skills", "profiles"),
    *("profile_sessions", "identity_baselines", "activity", "memory_ratings", "alerts"),
    *("hive_workers", "hive_runs", "swarms", "instance_sessions", "deleted_sessions"),
    *("forgotten_sessions", "cleanups", "counters", "applied", "imported", "slots"),
    *("schema_migrations",),
}


def test_every_table_is_named_or_holds_no_personal_data(tmp_path: Path) -> None:
    Database(tmp_path / "hive.db").close()
    with listings(tmp_path / "hive.db") as store:
        tables = {name for name in store.counts() if not name.startswith("sqlite_")}
    assert tables == set(KEPT) | BESIDE
