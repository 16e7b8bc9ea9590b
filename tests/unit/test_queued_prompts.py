"""How readers of transcripts treat prompts that were typed while Claude was working."""

import json
from typing import Any

import pytest

from hivepipe.archive.search.passages import passage_of
from hivepipe.reading.pieces import NOTE, USER, pieces_of
from hivepipe.summaries.excerpt import excerpt_of
from hivepipe.transcripts.lines import read_line
from tests.archive_scene import totals_of

# A line of 2.1.331, without its ids.
LINE = {
    "isSidechain": False,
    "attachment": {
        "type": "queued_command",
        "prompt": "And then feed the numbat",
        "commandMode": "prompt",
        "origin": {"kind": "human"},
        "timestamp": "2026-11-24T20:37:42.709Z",
        "humanTurn": True,
    },
    "type": "attachment",
    "uuid": "85096e43-f8b5-4dfa-a735-c4d737893958",
    "timestamp": "2026-11-24T20:37:42.709Z",
    "rendered": [{"content": "<system-reminder>And then feed the numbat</system-reminder>"}],
    "renderedRole": "system",
    "sessionId": "ba7320ac-adde-4d5c-8921-1969b780c6cc",
}


def raw(**changed: Any) -> bytes:
    """Return the line with other fields of its attachment."""
    return json.dumps({**LINE, "attachment": {**LINE["attachment"], **changed}}).encode()  # type: ignore[dict-item]


def kinds(line: bytes) -> list[tuple[str, str]]:
    return [(piece.kind, piece.text) for piece in pieces_of(read_line(line) or {})]


def test_a_queued_prompt_is_a_message_of_the_user_everywhere() -> None:
    line = raw()
    assert kinds(line) == [(USER, "And then feed the numbat")]
    passage = passage_of(line)
    assert passage
    assert (passage.who, passage.words) == ("user", "And then feed the numbat")
    assert totals_of([line]).messages == 1
    assert "User: And then feed the numbat" in excerpt_of([line]).text


def test_blocks_of_a_queued_prompt_are_read_as_those_of_a_message() -> None:
    blocks = [{"type": "text", "text": "Look at this"}, {"type": "image", "source": {}}]
    assert kinds(raw(prompt=blocks)) == [(USER, "Look at this"), (USER, "[image]")]


def test_a_prompt_of_another_program_is_a_note() -> None:
    """An older version names no origin."""
    for origin in (None, {}, "human"):
        assert kinds(raw(origin=origin)) == [(USER, "And then feed the numbat")]
    for others in ({"origin": {"kind": "coordinator"}}, {"origin": None, "isMeta": True}):
        assert kinds(raw(**others)) == [(NOTE, "And then feed the numbat")]
    notice = raw(prompt="<task-notification> done", origin=None)
    assert [kind for kind, _ in kinds(notice)] == [NOTE]
    for mode in ("task-notification", "bash", None, 7):
        assert kinds(raw(commandMode=mode)) == []


@pytest.mark.parametrize("attachment", [None, [], "queued_command", {"type": "date"}])
def test_other_attachments_stay_as_they_are(attachment: object) -> None:
    line = {**LINE, "attachment": attachment}
    assert read_line(json.dumps(line).encode()) == line
