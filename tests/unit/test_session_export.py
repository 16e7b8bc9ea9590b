"""session.yaml shows the state of the last session and never replaces a file of others."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hivepipe.db.database import Database
from hivepipe.files.manifest import Manifest
from hivepipe.home import locate
from hivepipe.install.holdings import holdings
from hivepipe.operations.session_export import SessionExport
from tests.store_scene import AT_NS, apply, new_database

MINUTE_NS = 60 * 10**9


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "shop" / ".hive-mind"
    made.mkdir(parents=True)
    monkeypatch.setenv("HIVEPIPE_HOME", str(made))
    monkeypatch.setattr(
        "hivepipe.operations.session_export.database_path", lambda _home: made / "hive.db"
    )
    Manifest(str(made)).begin()
    return made


@pytest.fixture
def db(home: Path) -> Iterator[Database]:
    with closing(new_database(home / "hive.db")) as made:
        yield made


def exported(home: Path) -> dict[str, str]:
    assert SessionExport(str(home)).finish()
    lines = (home.parent / ".claude-state" / "session.yaml").read_text().splitlines()
    assert lines.pop(0) == "# written by hivepipe"
    found = (line.partition(":") for line in lines)
    return {name: value.strip().strip('"') for name, _, value in found}


def test_the_file_follows_the_session(db: Database, home: Path) -> None:
    apply(db, "start_session", source="startup")
    known = {"id": "s-1", "started_at": "2026-11-21T01:00:00.000Z"}
    open_session = {**known, "last_turn_ended_at": "", "ended_at": "", "status": "active"}
    assert exported(home) == open_session
    apply(db, "pause_session", AT_NS + MINUTE_NS)
    turn_ended = {"last_turn_ended_at": "2026-11-21T01:01:00.000Z"}
    assert exported(home) == {**open_session, **turn_ended, "status": "paused"}
    apply(db, "activate_session", AT_NS + 2 * MINUTE_NS)
    assert exported(home) == {**open_session, **turn_ended}
    apply(db, "end_session", AT_NS + 3 * MINUTE_NS, reason="other")
    ended = {"ended_at": "2026-11-21T01:03:00.000Z", "status": "ended"}
    assert exported(home) == {**known, **turn_ended, **ended}
    apply(db, "start_session", AT_NS + 4 * MINUTE_NS, session="s-2", source="startup")
    assert exported(home)["id"] == "s-2"
    assert not [*(home.parent / ".claude-state").glob("*.tmp")]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_file_of_another_program_is_kept(db: Database, home: Path, when: str) -> None:
    apply(db, "start_session", source="startup")
    path = home.parent / ".claude-state" / "session.yaml"
    if when == "after":
        exported(home)
    path.parent.mkdir(exist_ok=True)
    path.write_text("id: mine\n")
    apply(db, "pause_session", AT_NS + MINUTE_NS)
    assert SessionExport(str(home)).finish()
    assert path.read_text() == "id: mine\n"
    assert str(path) not in holdings(locate(str(home.parent))).own


def test_a_purge_and_forgetting_delete_what_hivepipe_wrote(db: Database, home: Path) -> None:
    apply(db, "start_session", source="startup")
    exported(home)
    path = home.parent / ".claude-state" / "session.yaml"
    assert str(path) in holdings(locate(str(home.parent))).own
    db.execute("DELETE FROM sessions", {})
    assert SessionExport(str(home)).finish()
    assert not path.exists()


def test_a_home_outside_of_a_project_has_no_file(tmp_path: Path) -> None:
    home = tmp_path / "data" / "shop"
    home.mkdir(parents=True)
    with closing(new_database(home / "hive.db")) as db:
        apply(db, "start_session", source="startup")
    assert SessionExport(str(home)).finish()
    assert not [*tmp_path.rglob("session.yaml")]
