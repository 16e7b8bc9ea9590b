"""One session's screens read that session's rows: they cost the same among a million others."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hivepipe.store.database import Database
from hivepipe.store.listings import _IDS, Listings, listings


class Explaining(Listings):
    """Keeps SQLite's plan of every query beside its answer."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        self.plans: list[str] = []

    def rows(self, sql: str, parameters: Any) -> list[dict[str, Any]]:
        explained = self._connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)
        self.plans += [row["detail"] for row in explained]
        return super().rows(sql, parameters)


@contextmanager
def explaining(folder: Path) -> Iterator[Explaining]:
    Database(folder / "hive.db").close()
    with listings(folder / "hive.db") as plain:
        yield Explaining(plain._connection)


@pytest.mark.parametrize("kind", _IDS)
def test_the_beginning_of_an_id_is_looked_up_in_an_index(tmp_path: Path, kind: str) -> None:
    with explaining(tmp_path) as store, pytest.raises(Exception, match=f"no {kind}"):
        store.full_id(kind, "7b1f")
    assert store.plans
    assert not scans(store.plans)


def test_a_session_is_shown_without_reading_others(tmp_path: Path) -> None:
    with explaining(tmp_path) as store:
        store.session("7b1f")
        store.instances("7b1f")
        store.log("7b1f")
        store.agents("7b1f")
    assert store.plans
    assert not scans(store.plans)


def scans(plans: list[str]) -> list[str]:
    return [plan for plan in plans if re.match(r"SCAN (?!CONSTANT|\()", plan)]
