"""A new database has the number of its home, whenever the earlier one was deleted."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from hivepipe.db import database
from hivepipe.db.database import open_database
from hivepipe.team import shipment
from hivepipe.team.address import Address
from hivepipe.team.shipment import Shipment


def delete_files(folder: Path) -> None:
    for path in folder.glob("hive.db*"):
        path.unlink()


def test_a_database_that_is_deleted_while_a_team_is_connected_gets_the_number_of_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ".hive-mind"
    folder.mkdir()
    open_database(str(folder)).close()

    def connect(_address: Address) -> SimpleNamespace:
        delete_files(folder)
        return SimpleNamespace(close=lambda: None)

    monkeypatch.setattr(shipment.server, "connect", connect)
    monkeypatch.setattr(Shipment, "greet", lambda _self: None)
    with Shipment(str(folder), Address("team.example", 5432, "team"), {}):
        pass
    open_database(str(folder)).close()


@pytest.mark.parametrize("moment", ["before it is opened", "while it is opened"])
def test_a_new_database_after_a_deleted_one_has_the_number_of_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    folder = tmp_path / ".hive-mind"
    folder.mkdir()
    prepare = database.prepare

    def prepare_and_delete(home: str) -> int:
        number = prepare(home)
        delete_files(folder)
        return number

    open_database(str(folder)).close()
    if moment == "before it is opened":
        delete_files(folder)
    else:
        with monkeypatch.context() as patch:
            patch.setattr(database, "prepare", prepare_and_delete)
            open_database(str(folder)).close()
    open_database(str(folder)).close()
