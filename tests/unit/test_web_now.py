"""The view Now of `hivepipe web`: what is read from the end of an open session's transcript."""

from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from starlette.testclient import TestClient

from hivepipe.db.database import Database
from hivepipe.db.listings import Listings
from hivepipe.reading.latest import TAIL_BYTES, Latest, context_window, latest
from tests.archive_scene import SESSION, line
from tests.web_scene import AT, HOSTILE, call, insert


def message_line(at: str, model: str = "claude-opus-4-5", **usage: Any) -> bytes:
    message = {"id": at, "model": model, "content": [], "usage": {"output_tokens": 10, **usage}}
    return line(1, message=message, timestamp=at)


@pytest.fixture
def transcript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / ".claude" / "projects" / "-shop" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    return path


def test_context_and_cache_are_those_of_the_last_message(transcript: Path) -> None:
    hour = {"ephemeral_1h_input_tokens": 700, "ephemeral_5m_input_tokens": 0}
    first = message_line(
        "2026-11-21T10:00:00Z", input_tokens=5, cache_creation_input_tokens=700, cache_creation=hour
    )
    second = message_line("2026-11-21T10:10:00Z", input_tokens=5, cache_read_input_tokens=700)
    side = message_line("2026-11-21T10:20:00Z", input_tokens=9)
    side = side.replace(b"{", b'{"isSidechain": true, ', 1)
    transcript.write_bytes(first + call(3, "Bash", "t1", command="ls") + second + side)
    assert latest(str(transcript)) == Latest("Bash", 715, "2026-11-21T11:10:00.000Z")
    minutes = message_line("2026-11-21T10:30:00Z", input_tokens=5, cache_creation_input_tokens=100)
    transcript.write_bytes(minutes)
    assert latest(str(transcript)) == Latest("", 115, "2026-11-21T10:35:00.000Z")
    transcript.write_bytes(message_line("2026-11-21T10:30:00Z", input_tokens=5))
    assert latest(str(transcript)) == Latest("", 15, "")


def test_a_malformed_or_foreign_transcript_gives_nothing(transcript: Path) -> None:
    odd = (b"", b"\n\n", b"{", b"[]\n", b"\x00" * 100, b'{"message": 7}\n', b"x" * 3_000_000)
    for content in odd:
        transcript.write_bytes(content)
        assert latest(str(transcript)) == Latest(), content[:20]
    for path in ("", "/etc/passwd", "/dev/zero", "/nothing/x.jsonl", "\x00"):
        assert latest(path) == Latest(), path
    # Only the end of a large one is read.
    early = call(1, "Early", "t1", command="x" * TAIL_BYTES)
    transcript.write_bytes(early + call(2, "Late", "t2", command="ls"))
    assert latest(str(transcript)).tool == "Late"


@pytest.mark.parametrize(
    ("model", "tokens", "window"),
    [
        ("claude-opus-5", 1000, 200_000),
        ("claude-opus-5[1m]", None, 1_000_000),
        ("claude-sonnet-4-5", 200_001, 1_000_000),
        ("gpt-5", 1000, None),
        ("", 1000, None),
    ],
)
def test_the_window_of_a_model(model: str, tokens: int | None, window: int | None) -> None:
    assert context_window(model, tokens) == window


def test_a_card_shows_the_tool_the_context_and_the_tasks(
    client: TestClient, home: Path, transcript: Path
) -> None:
    transcript.write_bytes(
        call(1, HOSTILE, "t1") + message_line("2026-11-21T10:00:00Z", input_tokens=49_990)
    )  # fmt: skip
    with closing(Database(home / "hive.db")) as db:
        update = "UPDATE sessions SET transcript_path = :path, model = 'claude-opus-5'"
        db.execute(update, {"path": str(transcript)})
        insert(db, "tasks", id="t", text=HOSTILE, status="open", session_id=SESSION, created_at=AT)
    (card,) = client.get("/now.json").json()["sessions"]
    assert card["last_tool"] == HOSTILE
    assert (card["context_tokens"], card["context_window"]) == (50_000, 200_000)
    assert card["open_tasks"] == 1
    page = client.get("/now").text
    assert "25% of 200k" in page
    assert "<img" not in page


def test_sessions_are_read_by_as_many_queries_whatever_their_number(
    client: TestClient, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Mock(wraps=Listings.rows)
    monkeypatch.setattr(Listings, "rows", lambda *of: rows(*of))
    made = []
    for number in range(1, 21):
        with closing(Database(home / "hive.db")) as db:
            row = {"status": "ended", "created_at": AT, "updated_at": AT}
            insert(db, "sessions", id=f"ended-{number}", **row)
        if number in (1, 20):
            rows.reset_mock()
            assert len(client.get("/now.json?all=1").json()["sessions"]) == number + 1
            made.append(rows.call_count)
    assert made[0] == made[1]


def test_ended_sessions_are_in_a_table(client: TestClient, home: Path) -> None:
    with closing(Database(home / "hive.db")) as db:
        db.execute("UPDATE sessions SET status = 'ended'", {})
    assert "No open session" in client.get("/now").text
    page = client.get("/now?all=1").text
    assert 'aria-label="Ended sessions"' in page
    assert 'class="card"' not in page
