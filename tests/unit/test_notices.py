"""Claude Code's notices become one line each, with their reason."""

from typing import Any

import pytest

from hivepipe.events import parse_event
from hivepipe.events.notices import MOST_REFUSED, noticed
from tests import payloads
from tests.payloads import changed, encoded

TASK = changed(payloads.POST_BASH, tool_name="TaskCreate", tool_input={"subject": "Do it"})
DONE = changed(
    payloads.POST_BASH, tool_name="TaskUpdate", tool_input={"taskId": "1", "status": "completed"}
)
RENAMED = changed(
    payloads.POST_BASH, tool_name="TaskUpdate", tool_input={"taskId": "1", "subject": "Do that"}
)


def kinds_and_texts(payload: dict[str, Any]) -> list[tuple[object, object]]:
    event = parse_event("", encoded(payload))
    assert event is not None
    return [(notice["kind"], notice["text"]) for notice in noticed(event)]


NOTICES: list[tuple[dict[str, Any], list[tuple[str, str]]]] = [
    (payloads.PERMISSION_REQUEST, [("permission_asked", "Bash (A failing call)")]),
    (payloads.PERMISSION_DENIED,
     [("permission_denied", "Bash (Tidy up): Classifier unavailable")]),
    (payloads.POST_BATCH,
     [("call_refused", "Edit: File has not been read yet. Read it first.")]),
    (payloads.NOTIFICATION, [("notification", "Claude needs your permission")]),
    (payloads.MODEL_SWITCH,
     [("model_switched", "claude-opus-5 to claude-haiku-4-5, by command")]),
    (TASK, [("task_created", "Do it")]),
    (DONE, [("task_completed", "number 1")]),
    (RENAMED, []),
    (payloads.PRE_COMPACT, []),
]  # fmt: skip


@pytest.mark.parametrize(("payload", "expected"), NOTICES)
def test_every_notice_has_a_reason(
    payload: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert kinds_and_texts(payload) == expected


def test_only_part_of_a_large_batch_is_reported() -> None:
    calls = payloads.POST_BATCH["tool_calls"][:1] * 50
    assert len(kinds_and_texts(changed(payloads.POST_BATCH, tool_calls=calls))) == MOST_REFUSED
