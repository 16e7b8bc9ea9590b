"""`hivepipe what` names all tables with personal data."""

from pathlib import Path

from hivepipe.cli.what import BESIDE, KEPT
from hivepipe.db.database import Database
from hivepipe.db.listings import listings


def test_every_table_is_named_or_holds_no_personal_data(tmp_path: Path) -> None:
    Database(tmp_path / "hive.db").close()
    with listings(tmp_path / "hive.db") as store:
        tables = {name for name in store.counts() if not name.startswith("sqlite_")}
    assert tables == set(KEPT) | BESIDE
