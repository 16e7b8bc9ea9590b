"""`hivepipe search` over transcripts that the sweep archived."""

import json
import sqlite3
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hivepipe.cli.search import _show_found
from hivepipe.reading.search import Question, find
from tests.archive_scene import SESSION, TOKEN, line
from tests.conftest import Home, made_home, untagged
from tests.integration.test_cli_listings import command

OTHER = "ffffffff-0000-4000-8000-000000000000"


def transcript_line(home: Home, session: str, number: int, text: str, **more: Any) -> bytes:
    return line(number, text, sessionId=session, cwd=str(home.project), **more)


@pytest.fixture
def home(private_home: Home) -> Home:
    """A home of this test alone, for tests that change something."""
    return prepared(private_home)


@pytest.fixture(scope="module")
def shared() -> Iterator[Home]:
    """A home for all tests that only read."""
    with made_home() as home:
        yield prepared(home)


def prepared(home: Home) -> Home:
    """Archive two sessions."""
    command(home, "init", "--local", "--no-probe")
    folder = home.root / ".claude" / "projects" / "-shop"
    folder.mkdir(parents=True)
    (folder / f"{SESSION}.jsonl").write_bytes(
        transcript_line(home, SESSION, 1, f"The cart  forgets\nprices; key {TOKEN}")
        + transcript_line(home, SESSION, 2, "Payment is fine \x1b[2J")
    )
    (folder / f"{OTHER}.jsonl").write_bytes(
        transcript_line(home, OTHER, 3, "The cart again, in src/cart.py")
    )
    command(home, "archive", "sweep")
    return home


def hits(home: Home, *asked: str) -> list[dict[str, Any]]:
    answer = json.loads(command(home, "search", "--json", *asked))
    assert answer["schema"] == 1
    assert answer["total"] >= len(answer["hits"])
    found: list[dict[str, Any]] = answer["hits"]
    return found


def test_hits_are_shown_with_time_session_and_text(shared: Home) -> None:
    shown = untagged(command(shared, "search", "CART")).splitlines()
    assert shown == [
        f"2026-01-10 05:48:00  {OTHER[:8]}  claude: The cart again, in src/cart.py",
        f"    hivepipe transcript {OTHER} --around 0",
        f"2026-01-10 05:46:00  {SESSION[:8]}  claude: The cart forgets prices; key ***REDACTED***",
        f"    hivepipe transcript {SESSION} --around 0",
        "2 found",
    ]
    assert command(shared, "search", "cart", "--limit", "1").endswith("1 of 2 found\n")
    assert "2026-01-10 00:03:00Z" in command(shared, "search", "cart", "--utc")
    assert command(shared, "search", "nowhere") == "0 found\n"


def test_filters_narrow_the_search(shared: Home) -> None:
    assert [hit["session_id"] for hit in hits(shared, "cart", "--session", "ffff")] == [OTHER]
    assert hits(shared, "cart", "--agent", "Explore") == []
    assert hits(shared, "cart", "--role", "user") == []
    assert len(hits(shared, "cart", "--role", "claude")) == 2
    assert len(hits(shared, "cart", "--project", str(shared.project))) == 2
    assert hits(shared, "cart", "--project", str(shared.root / "elsewhere")) == []
    # 05:45 in Kathmandu is midnight of UTC.
    assert len(hits(shared, "cart", "--since", "2026-01-10T05:47")) == 1
    assert len(hits(shared, "cart", "--until", "2026-01-10T05:47")) == 1
    assert hits(shared, "cart", "--utc", "--since", "2026-01-11") == []
    assert datetime.fromisoformat(hits(shared, "cart")[0]["time"])


def test_an_incomplete_result_is_called_so(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for secs, number, words in (
        (-1, "0 found so far\n", "The result is incomplete"),
        (9, "2 found\n", ""),
    ):
        monkeypatch.setattr("hivepipe.reading.search.LEAST_INDEXING_SECS", secs)
        _show_found(find(str(home.path), Question("cart"), 20, indexing_secs=secs))
        said = capsys.readouterr()
        assert said.out.endswith(number)
        assert said.err.startswith(words)
        assert bool(said.err) == bool(words)


def test_a_lone_surrogate_is_searchable_and_doctor_names_skipped_lines(home: Home) -> None:
    path = home.root / ".claude" / "projects" / "-shop" / f"{OTHER}.jsonl"
    odd = {"type": "user", "sessionId": OTHER, "cwd": str(home.project), "uuid": "u"}
    lines = [{**odd, "message": {"role": "user", "content": "cut \ud83d"}}]
    with path.open("ab") as file:
        file.writelines(json.dumps(each).encode() + b"\n" for each in lines)
        file.write(b"half a li\n" + transcript_line(home, OTHER, 5, "behind it"))
    command(home, "archive", "sweep")
    assert len(hits(home, "cut")) == 1
    assert len(hits(home, "behind it")) == 1
    report = json.loads(command(home, "doctor", "--json", expect=None))
    (found,) = [each for each in report["findings"] if each["check"] == "search-index"]
    assert found["is_note"]
    assert f"({OTHER} at byte " in found["text"]
    assert "not a readable JSON object" in found["text"]


def test_an_index_of_another_version_is_rebuilt(home: Home) -> None:
    with sqlite3.connect(home.path / "search.db") as old:
        old.execute("CREATE TABLE archives (id)")
        old.execute("PRAGMA user_version=1")
    old.close()
    assert len(hits(home, "cart")) == 2
    answer = json.loads(command(home, "search", "--json", "cart"))
    assert answer["not_indexed_bytes"] == 0


def test_the_excerpt_contains_the_match(home: Home) -> None:
    path = home.root / ".claude" / "projects" / "-shop" / f"{OTHER}.jsonl"
    with path.open("ab") as file:
        file.write(
            transcript_line(home, OTHER, 5, "viewer " * 40 + 'view, {:ok, "x"}' + " end" * 40)
        )
    command(home, "archive", "sweep")
    assert "view, {:ok" in hits(home, "view", "-w")[0]["text"]
    assert "view, {:ok" in hits(home, '"{:ok,"')[0]["text"]
    assert len(hits(home, "iewe")) == 1
    assert hits(home, "iewe", "--word") == []


def test_invalid_arguments_and_a_damaged_index_are_errors(home: Home, tmp_path: Path) -> None:
    assert "nothing to search for" in command(home, "search", "  ", expect=1)
    command(home, "search", expect=64)
    command(home, "search", "x", "--since", "yesterday", expect=64)
    command(home, "search", "x", "--limit", "0", expect=64)
    (home.path / "search.db").write_bytes(b"torn" * 1000)
    assert "search.db" in command(home, "search", "cart", expect=1)
    (home.path / "search.db").unlink()
    assert len(hits(home, "cart")) == 2


def test_summaries_are_found_and_marked_as_such(home: Home) -> None:
    assert hits(home, "migrated") == []
    sql = """
        INSERT INTO summaries VALUES (?, 'a', '2026-01-12T00:00:00.000Z', 'plain', '', '', '', '',
          'Payments were migrated', '["mind the rounding"]', '["src/pay.py"]', '[]', 0, 0, 0, 0)
    """
    connection = sqlite3.connect(home.database)
    connection.execute(sql, (SESSION,))
    connection.commit()
    connection.close()
    (hit,) = hits(home, "migrated", "rounding")
    assert (hit["who"], hit["session_id"]) == ("summary", SESSION)
    assert f"{SESSION[:8]}  summary: Payments were migrated" in command(home, "search", "migrated")
    assert hits(home, "migrated", "--session", OTHER[:4]) == []
