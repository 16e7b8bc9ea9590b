"""All rows of all tables, for export to other programs."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from hivepipe.db.forget import NAMING
from hivepipe.db.listings import listings, quoted


def exported_rows(path: Path, session: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (table, row) of all sessions or of one. Yield nothing if there is no database.

    Raise StoreError if the database cannot be read.
    """
    if not path.exists():
        return
    with listings(path) as store:
        every = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
        tables = [row["name"] for row in store.rows(every, {})]
        for table in tables:
            name = quoted(table)
            if not session:
                rows = store.each(f"SELECT * FROM {name}", {})
            elif table in NAMING:
                sql = f"SELECT * FROM {name} WHERE {NAMING[table]} = :session"
                rows = store.each(sql, {"session": session})
            else:
                continue
            with closing(rows):  # closed before the database, even if the reader stops early
                for row in rows:
                    yield table, dict(row)
