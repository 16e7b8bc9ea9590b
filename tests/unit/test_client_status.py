"""The status file of a Claude Code process is used only if it is valid and of the right session."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from hivepipe.operations.client_status import ClientStatus, client_status

STATUS: dict[str, Any] = {
    "pid": 7,
    "sessionId": "s1",
    "procStart": "4711",
    "status": "idle",
    "statusUpdatedAt": 1_795_000_000_123,
    "updatedAt": 1_795_000_009_999,
}


def read(home: Path, content: object, pid: int = 7) -> ClientStatus | None:
    folder = home / ".claude" / "sessions"
    folder.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / f"{pid}.json").write_text(text)
    return client_status(7, "4711", "s1", str(home / ".claude/projects/-shop/s1.jsonl"))


def test_the_status_file_beside_the_transcripts_is_read(tmp_path: Path) -> None:
    at_ns = 1_795_000_000_123 * 10**6
    assert read(tmp_path, STATUS) == ClientStatus("idle", at_ns)
    assert read(tmp_path, STATUS | {"status": "shell"}) == ClientStatus("shell", at_ns)
    waiting = STATUS | {"status": "waiting", "waitingFor": "approve Bash"}
    assert read(tmp_path, waiting) == ClientStatus("waiting", at_ns, "approve Bash")
    assert read(tmp_path, waiting | {"waitingFor": 3}) == ClientStatus("waiting", at_ns)


def test_an_older_client_writes_only_updated_at(tmp_path: Path) -> None:
    content = {name: value for name, value in STATUS.items() if name != "statusUpdatedAt"}
    assert read(tmp_path, content) == ClientStatus("idle", 1_795_000_009_999 * 10**6)


ODD = [
    *({"sessionId": "s2"}, {"procStart": "4712"}, {"pid": 8}, {"status": "asleep"}),
    *({"status": None}, {"statusUpdatedAt": "today"}, {"statusUpdatedAt": math.inf}),
    *({"statusUpdatedAt": 1_795_000_000_123 * 10**6}, {"statusUpdatedAt": math.nan}),
]


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_an_invalid_or_foreign_status_is_ignored(tmp_path: Path, odd: dict[str, Any]) -> None:
    assert read(tmp_path, STATUS | odd) is None


def test_a_malformed_or_missing_file_is_ignored(tmp_path: Path) -> None:
    assert read(tmp_path, STATUS, pid=9) is None
    for text in ("", "{", "[]", "null", "[" * 100_000):
        assert read(tmp_path, text) is None
