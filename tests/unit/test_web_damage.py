"""Files damaged under an open page: the rest is shown, and the missing part is named."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hivepipe.home import record_path, short_hash
from tests.web_scene import SESSION, TOKEN

VERIFY = "hivepipe archive verify"


@pytest.fixture(autouse=True)
def _every_answer_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hivepipe.web.view_cache.LASTS_SECS", 0.0)


@pytest.fixture
def path(client_with_archive: Any) -> str:
    """The path of the archived session, whose page was opened once."""
    home = client_with_archive.get("/now.json?all=1").json()["sessions"][0]["home"]
    found = f"/session/{home}/{SESSION}"
    assert client_with_archive.get(f"{found}.json").json()["archive_trouble"] == ""
    return found


def lines_of(home: Path, id: str) -> Path:
    (found,) = (home / "archive").rglob(f"2026*_{id}.jsonl")
    return found


def test_a_session_is_shown_without_its_archive(
    client_with_archive: Any, home: Path, path: str
) -> None:
    ref = client_with_archive.get("/search.json?q=cart").json()["hits"][-1]["ref"]
    lines = lines_of(home, SESSION)
    for damage in (Path.unlink, lambda lines: lines.symlink_to(lines)):
        damage(lines)
        case = "a link" if lines.is_symlink() else "missing"
        shown = client_with_archive.get(f"{path}.json").json()
        assert (shown["pieces"], shown["session"]["id"]) == ([], SESSION), case
        assert VERIFY in shown["archive_trouble"], case
        page = client_with_archive.get(path)
        assert (page.status_code, VERIFY in page.text) == (200, True), case
        opened = client_with_archive.get(f"/search.json?q=cart&open={ref}")
        assert (opened.status_code, opened.json()["opened"]["pieces"]) == (200, []), case
        assert opened.json()["opened"]["error"]


def test_the_rest_of_a_truncated_archive_is_shown(
    client_with_archive: Any, home: Path, path: str
) -> None:
    lines = lines_of(home, SESSION)
    whole = client_with_archive.get(f"{path}.json").json()["pieces"]
    kept = lines.read_bytes().splitlines(keepends=True)[:3]
    lines.write_bytes(b"".join(kept) + b'{"torn')
    shown = client_with_archive.get(f"{path}.json").json()
    *rest, note, _of_agent, _call, _result = shown["pieces"]
    assert rest == whole[: len(rest)] != []
    assert (note["kind"], "it ends at byte" in note["text"]) == ("note", True)
    assert "it ends at byte" in client_with_archive.get(path).text
    lines.write_bytes(b"")
    assert client_with_archive.get(f"{path}.json").json()["pieces"][0]["kind"] == "note"


def test_a_missing_archive_of_an_agent_hides_nothing_else(
    client_with_archive: Any, home: Path, path: str
) -> None:
    whole = client_with_archive.get(f"{path}.json").json()["pieces"]
    (agent,) = {piece["id"] for piece in whole if piece["kind"] == "agent"}
    lines_of(home, agent).unlink()
    shown = client_with_archive.get(f"{path}.json").json()
    assert shown["archive_trouble"] == ""
    assert [piece["text"] for piece in shown["pieces"] if not piece["depth"]] == [
        piece["text"] for piece in whole if not piece["depth"]
    ]
    assert [VERIFY in piece["text"] for piece in shown["pieces"] if piece["kind"] == "note"] == [
        True
    ]


def test_a_damaged_line_hides_no_other_hit(client_with_archive: Any, home: Path, path: str) -> None:
    before = client_with_archive.get("/search.json?q=cart").json()
    lines = lines_of(home, SESSION)
    lines.write_bytes(b"\xff" * lines.stat().st_size)
    after = client_with_archive.get("/search.json?q=cart").json()
    assert (after["total"], len(after["hits"])) == (before["total"], len(before["hits"]))
    of_agents = [
        [hit["text"] for hit in found["hits"] if hit["agent_type"]] for found in (before, after)
    ]
    assert of_agents[0] == of_agents[1] != []


def test_a_database_of_a_newer_version_is_named(
    client_with_archive: Any, home: Path, path: str
) -> None:
    """Views of unchanged tables are shown. The others give the reason and the remedy."""
    with closing(sqlite3.connect(home / "hive.db")) as db, db:
        db.execute("INSERT INTO schema_migrations VALUES ('9999 of tomorrow', '')")
        assert (
            client_with_archive.get("/now").status_code
            == client_with_archive.get(path).status_code
            == 200
        )
        db.execute("ALTER TABLE usage RENAME TO charges")
    for view in ("/now", "/agents", "/costs", path):
        answer = client_with_archive.get(f"{view}.json")
        assert (answer.status_code, "upgrade hivepipe" in answer.text) == (404, True)
    for view in ("/search?q=cart", "/skills", "/queues", "/health"):
        assert client_with_archive.get(view).status_code == 200
    call = {"name": "costs", "arguments": {}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    response = client_with_archive.post(
        "/mcp", content=json.dumps(request), headers={"Authorization": f"Bearer {TOKEN}"}
    )
    assert "upgrade hivepipe" in response.text


def test_a_database_of_an_older_version_is_named(client: Any, home: Path) -> None:
    with closing(sqlite3.connect(home / "hive.db")) as db, db:
        db.execute(
            "DELETE FROM schema_migrations WHERE id = (SELECT max(id) FROM schema_migrations)"
        )
        db.execute("ALTER TABLE sessions RENAME COLUMN client TO program")
    answer = client.get("/now.json")
    assert (answer.status_code, "an older hivepipe made" in answer.text) == (404, True)
    client.get("/health")


def test_a_program_is_told_why_a_home_cannot_be_read(client: Any, home: Path) -> None:
    (home / "spool").write_text("no folder")
    for path in ("/metrics", "/status.json"):
        answer = client.get(path)
        assert (answer.status_code, "Not a directory" in answer.text) == (500, True)


def test_one_session_id_in_two_homes_is_two_sessions(
    client_with_archive: Any, home: Path, path: str
) -> None:
    other = home.with_name("other")
    shutil.copytree(home, other)
    record = Path(record_path(str(other)))
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(f"home={other}\nproject={other}\n")
    keys = {short_hash(str(home)), short_hash(str(other))}
    with closing(sqlite3.connect(other / "hive.db")) as db, db:
        db.execute("UPDATE sessions SET objective = 'the other one'")
    sessions = client_with_archive.get("/now.json?all=1").json()["sessions"]
    assert {(each["home"], each["id"]) for each in sessions} == {(key, SESSION) for key in keys}
    paths = [f"/session/{key}/{SESSION}.json" for key in keys]
    titles = [client_with_archive.get(each).json()["session"]["objective"] for each in paths]
    assert titles.count("the other one") == 1
    hits = client_with_archive.get("/search.json?q=cart").json()["hits"]
    assert {hit["home"] for hit in hits} == keys
    for hit in hits[:2]:
        opened = client_with_archive.get(f"/search.json?q=cart&open={hit['ref']}").json()["opened"]
        assert (opened["home"], opened["error"]) == (hit["home"], "")
    assert {
        each["home"] for each in client_with_archive.get("/agents.json").json()["sessions"]
    } == keys
    for key in keys:
        assert f"/session/{key}/{SESSION}" in client_with_archive.get("/now?all=1").text
