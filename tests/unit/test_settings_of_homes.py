"""A process that reads several homes uses the settings of each: the page, and the tools."""

import errno
import json
import os
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from hivepipe import settings
from hivepipe.archive.archives import Archives
from hivepipe.archive.search import index
from hivepipe.db.changes import is_captured, start_capture
from hivepipe.db.database import Database
from hivepipe.db.listings import listings
from hivepipe.files.sqlite_file import open_to_write
from hivepipe.home import locate, record_path, short_hash
from hivepipe.mcp_server.server import call
from hivepipe.mcp_server.tool_call import ToolCall
from hivepipe.operations.archive import archives_of
from hivepipe.reading import session_lookup
from hivepipe.reading.homes import KnownHome, known_homes, settings_of
from hivepipe.team import capture
from hivepipe.times import stored_time
from tests.store_scene import new_database
from tests.web_scene import insert, insert_usage


def garden(tmp_path: Path) -> Path:
    """Register a second project, whose home sets another database and a short `stalled_secs`."""
    project, home = tmp_path / "garden", tmp_path / "garden-home"
    for folder in (project / "soul", home):
        folder.mkdir(parents=True)
    database = tmp_path / "elsewhere.db"
    lines = (f'db = "{database}"', "stalled_secs = 5", f'profile_dir = "{project}/soul"')
    (home / "config.toml").write_text("\n".join(lines))
    (project / "soul" / "SOUL.md").write_text("I am a gardener.")
    for path, record in ((home, f"home={home}\nproject={project}\n"), (project, f"home={home}\n")):
        file = Path(record_path(str(path)))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(record)
    at = stored_time(time.time_ns() - 60 * 10**9)
    with closing(new_database(database)) as db:
        insert(db, "sessions", id="s-garden", status="active", created_at=at, updated_at=at)
        insert(db, "activity", session_id="s-garden", since_ms=1, last_active_at=at, calls=1,
               failed=0, denied=0, warned=0, open_calls=0, turn_is_open=1)  # fmt: skip
        insert_usage(db, session_id="s-garden", created_at=at, input=7, output=0)
    return home


@pytest.fixture
def two(client: TestClient, tmp_path: Path) -> tuple[TestClient, Path]:
    """The page of one project, and the home of another."""
    return client, garden(tmp_path)


def states(page: TestClient, path: str) -> dict[str, str]:
    return {each["id"]: each["state"] for each in page.get(path).json()["sessions"]}


def test_each_session_of_the_page_is_of_its_own_database(
    two: tuple[TestClient, Path], home: Path
) -> None:
    page, other = two
    key = short_hash(str(other))
    assert states(page, f"/now.json?home={key}") == {"s-garden": "silent"}
    assert len(states(page, "/now.json")) == 2
    costs = page.get("/costs.json?all=1").json()["costs"]
    assert sorted(each["tokens"]["input"] for each in costs) == [7, 1000]
    assert page.get(f"/session/{key}/s-garden.json").json()["id"] == "s-garden"


def test_homes_are_read_again_only_after_a_change(
    two: tuple[TestClient, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, other = two
    here = locate(str(other))

    def databases() -> list[Path]:
        return [known.database() for known in known_homes(here)]

    before = databases()
    with monkeypatch.context() as patched:
        for reader in ("database_path", "records", "project_of"):
            patched.delattr(f"hivepipe.reading.homes.{reader}")
        assert databases() == before
    (other / "config.toml").write_text(f'db = "{tmp_path}/later.db"')
    assert set(databases()) - set(before) == {tmp_path / "later.db"}
    Path(record_path(str(tmp_path / "third"))).write_text(f"home={tmp_path}/third-home\n")
    assert tmp_path / "third-home" / "hive.db" in databases()
    Path(record_path(str(tmp_path / "third"))).unlink()
    assert tmp_path / "third-home" / "hive.db" not in databases()


def test_the_database_of_the_pages_own_home_is_not_that_of_other_homes(
    two: tuple[TestClient, Path], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, other = two
    (other / "config.toml").unlink()
    monkeypatch.setattr(settings, "_from_files", {"HIVEPIPE_DB": str(home / "hive.db")})
    assert states(page, f"/now.json?home={short_hash(str(other))}") == {}
    assert len(states(page, "/now.json")) == 1


def test_a_variable_counts_only_for_the_home_where_the_page_was_started(
    two: tuple[TestClient, Path], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, other = two
    moved = tmp_path / "moved.db"
    (home / "hive.db").rename(moved)
    monkeypatch.setenv("HIVE_DB", str(moved))
    monkeypatch.setenv("HIVEPIPE_STALLED_SECS", "1e8")
    assert states(page, f"/now.json?home={short_hash(str(other))}") == {"s-garden": "silent"}
    assert len(states(page, f"/now.json?home={short_hash(str(home))}")) == 1
    assert len(states(page, "/now.json")) == 2


def test_a_home_is_read_with_the_variables_of_its_own_stack(
    two: tuple[TestClient, Path], home: Path
) -> None:
    page, other = two
    (other / "config.toml").unlink()
    database = other.parent / "elsewhere.db"
    (other / "environment").write_text(f"HIVEPIPE_DB={database}\nHIVEPIPE_STALLED_SECS=1e8\n")
    assert states(page, f"/now.json?home={short_hash(str(other))}") == {"s-garden": "works"}
    assert len(states(page, "/now.json")) == 2


def test_a_status_names_the_files_that_this_home_is_asked_to_trust(
    two: tuple[TestClient, Path], home: Path
) -> None:
    page, other = two
    report = page.get(f"/status.json?home={short_hash(str(other))}").json()
    assert report["asking"] == ["soul/SOUL.md"]
    assert page.get("/status.json").json()["asking"] == []


def test_the_tools_read_the_database_of_each_home(two: tuple[TestClient, Path], home: Path) -> None:
    def rows(name: str, **given: Any) -> list[dict[str, Any]]:
        found = call(locate(str(home.parent)), name, given)
        assert not found.failed, found.text
        return [json.loads(line) for line in found.text.splitlines()[1:]]

    total, *of_sessions, _ = rows("costs", by="session")
    assert total["total"]["tokens"]["input"] == 1007
    assert {row["session"]: row["tokens"]["input"] for row in of_sessions}["s-garden"] == 7
    (facts, *_) = rows("timeline", session="s-garden")
    assert facts["session"] == "s-garden"


def test_a_search_shows_the_other_homes_beside_one_on_a_read_only_disk(
    two: tuple[TestClient, Path], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, other = two

    def open_index(path: Path, secs: float) -> sqlite3.Connection:
        if path.is_relative_to(other):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return open_to_write(path, secs)

    monkeypatch.setattr(index, "open_to_write", open_index)
    trouble = f"cannot use {other}/search.db: Read-only file system"
    found = call(locate(str(home.parent)), "search", {"query": "cart"})
    assert not found.failed, found.text
    assert trouble in found.text
    shown = page.get("/search.json?q=cart").json()
    assert (shown["troubles"], shown["error"]) == ([trouble], "")


def test_one_home_that_cannot_be_read_leaves_the_others(two: tuple[TestClient, Path]) -> None:
    names = ["/one", "/two"]
    homes = [KnownHome(name, name, name) for name in names]

    def read(known: KnownHome) -> str:
        if known.home == "/one":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "/one/x")
        return known.home

    found, problems = ToolCall(homes, "", {}).of_each(read)
    assert found == ["/two"]
    assert problems == ["/one: [Errno 13] Permission denied: '/one/x'"]


def test_a_session_is_found_beside_a_home_that_cannot_be_read(
    two: tuple[TestClient, Path], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def archives(path: str) -> Archives:
        if path == str(home):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return archives_of(path)

    monkeypatch.setattr(session_lookup, "archives_of", archives)
    found = call(locate(str(home.parent)), "timeline", {"session": "s-garden"})
    assert not found.failed, found.text
    found = call(locate(str(home.parent)), "timeline", {"session": "s-unknown"})
    assert (found.failed, found.text) == (True, f"hivepipe: {home}: Permission denied")


def test_settings_belong_to_one_thread_and_are_read_again_after_an_edit(
    two: tuple[TestClient, Path], home: Path
) -> None:
    with settings_of(str(two[1])):
        assert settings.number("HIVEPIPE_STALLED_SECS") == 5
        with settings_of(str(home)):
            assert settings.number("HIVEPIPE_STALLED_SECS") == 900
        assert settings.number("HIVEPIPE_STALLED_SECS") == 5
        with ThreadPoolExecutor() as other_thread:
            assert other_thread.submit(settings.number, "HIVEPIPE_STALLED_SECS").result() == 900
    assert settings.number("HIVEPIPE_STALLED_SECS") == 900
    (two[1] / "config.toml").write_text("stalled_secs = 77777")
    with settings_of(str(two[1])):
        assert settings.number("HIVEPIPE_STALLED_SECS") == 77777


def test_a_machine_that_leaves_its_team_captures_no_home_any_more(
    tmp_path: Path, home: Path
) -> None:
    other = garden(tmp_path)
    database = tmp_path / "elsewhere.db"
    with closing(Database(database)) as db:
        start_capture(db)
    with settings_of(str(other)):
        capture.stop(str(other))
    with listings(database) as store:
        assert not is_captured(store)
