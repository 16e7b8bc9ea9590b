"""The file that Claude Code's process keeps of itself: believed where it is whole, and of us."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from hivepipe.operations.client_status import ClientStatus, client_status

SAID: dict[str, Any] = {
    "pid": 7,
    "sessionId": "s1",
    "procStart": "4711",
    "status": "idle",
    "statusUpdatedAt": 1_795_000_000_123,
    "updatedAt": 1_795_000_009_999,
}


def read(home: Path, said: object, pid: int = 7) -> ClientStatus | None:
    folder = home / ".claude" / "sessions"
    folder.mkdir(parents=True, exist_ok=True)
    text = said if isinstance(said, str) else json.dumps(said)
    (folder / f"{pid}.json").write_text(text)
    return client_status(7, "4711", "s1", str(home / ".claude/projects/-shop/s1.jsonl"))


def test_it_is_read_beside_the_transcripts(tmp_path: Path) -> None:
    at_ns = 1_795_000_000_123 * 10**6
    assert read(tmp_path, SAID) == ClientStatus("idle", at_ns)
    waiting = SAID | {"status": "waiting", "waitingFor": "approve Bash"}
    assert read(tmp_path, waiting) == ClientStatus("waiting", at_ns, "approve Bash")
    assert read(tmp_path, waiting | {"waitingFor": 3}) == ClientStatus("waiting", at_ns)


def test_an_older_client_has_one_time_for_all(tmp_path: Path) -> None:
    said = {name: value for name, value in SAID.items() if name != "statusUpdatedAt"}
    assert read(tmp_path, said) == ClientStatus("idle", 1_795_000_009_999 * 10**6)


@pytest.mark.parametrize(
    "odd",
    [
        {"sessionId": "s2"},
        {"procStart": "4712"},
        {"pid": 8},
        {"status": "asleep"},
        {"status": None},
        {"statusUpdatedAt": "today"},
        {"statusUpdatedAt": 1_795_000_000_123 * 10**6},
        {"statusUpdatedAt": math.inf},
        {"statusUpdatedAt": math.nan},
    ],
    ids=str,
)
def test_what_is_odd_or_of_another_says_nothing(tmp_path: Path, odd: dict[str, Any]) -> None:
    assert read(tmp_path, SAID | odd) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000])
def test_what_is_no_such_file_says_nothing(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) is None
    assert read(tmp_path, SAID, pid=9) is None or text
