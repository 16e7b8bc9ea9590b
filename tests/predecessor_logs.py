"""The folder `.claude-state/logs` of the predecessor, as its documents describe it."""

import gzip
import json
import os
import time
from pathlib import Path

DAY = 86_400
SKILL = "systematic-debugging"
TOKEN = "sk-ant-api03-" + "Ab3" * 20
USED = "2025-01-10T14:30:00Z"
FIRST_USE = {
    "timestamp": USED,
    "session_id": "abc123",
    "context": f"Fix auth bug {TOKEN}",
    "success": True,
}
SECOND_USE = {
    "timestamp": "2025-01-10T14:31:00Z",
    "session_id": "def456",
    "context": "again",
    "success": False,
}
COUNTED = {
    "count": 42,
    "last_used": USED,
    "invocations": [FIRST_USE, SECOND_USE],
    "sessions": ["abc123", "def456", "0ld"],
    "success_rate": 0.95,
}
USAGE = {"skills": {SKILL: COUNTED, "brainstorming": {"count": 3}}}
SUBAGENT_META = {
    "task_id": "task-xyz",
    "agent_type": "architect",
    "parent_session_id": "abc123",
    "outcome": "success",
    "message_count": 12,
    "duration_seconds": 420,
    "deliverables": ["api.md"],
}
MAIN = "main-session/2025-01/2025-01-10_14-30-00_abc123"
SUBAGENT = "subagent/architect/2025-01/2025-01-10_14-35-00_task-xyz"

State = dict[str, tuple[bytes, int, int]]


def message_line(text: str, **more: str) -> bytes:
    line = {"type": "user", "message": {"role": "user", "content": text}, **more}
    return json.dumps(line).encode() + b"\n"


def make(logs: Path) -> State:
    """Make every kind of file with different ages and return their state."""
    write(logs / f"{MAIN}.jsonl", message_line(f"oldword {TOKEN}") + message_line("second"), 400)
    write(logs / f"{MAIN}.meta.json", as_json({"session_id": "abc123", "message_count": 2}), 400)
    write(logs / f"{SUBAGENT}.jsonl", message_line("middleword"), 100)
    write(logs / f"{SUBAGENT}.meta.json", as_json(SUBAGENT_META), 100)
    fresh = "main-session/2025-02/2025-02-01_08-00-00_fresh1"
    write(logs / f"{fresh}.jsonl", message_line("freshword", sessionId="fresh1"), 0)
    packed = "main-session/2024-12/2024-12-24_20-00-00_xmas"
    write(logs / f"{packed}.jsonl.gz", gzip.compress(message_line("packedword")), 500)
    write(logs / f"{packed}.meta.json", b'{"session_id": "xm', 500)
    write(logs / "skill-usage.json", as_json(USAGE), 10, 0o640)
    write(logs / "skill-usage-index.json", b'{"abc123": ["systematic-debugging"]}', 10)
    write(logs / "archive-index.json", b'{"sessions": ["abc123"]}', 10)
    error = b"[2025-01-10T14:30:00Z] [post-tool-use] [ERROR] File lock timeout\n"
    write(logs / "hook-errors.log", error, 40)
    write(logs / "hook-errors.log.1", error, 90)
    write(logs / "security-audit.log", b"[2025-01-10T14:30:00Z] Redacted 3 API keys from x\n", 40)
    write(logs / "security-audit.log.2025-01-09", b"[2025-01-09T14:30:00Z] Redacted 1\n", 400)
    write(logs / "cleanup.log", b"cleaned up 3 agents\n", 40)
    write(logs / "notes.txt", b"a person's own\n", 700)
    return state(logs)


def write(path: Path, data: bytes, days: float, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)
    past = time.time() - days * DAY
    os.utime(path, (past, past))


def as_json(value: object) -> bytes:
    return json.dumps(value, indent=2).encode()


def state(logs: Path, only: State | None = None) -> State:
    """Return bytes, mode and mtime of every file, or only of those in another state."""
    found = {}
    for path in logs.rglob("*"):
        name = str(path.relative_to(logs))
        if path.is_file() and (only is None or name in only):
            status = path.lstat()
            found[name] = (path.read_bytes(), status.st_mode, status.st_mtime_ns)
    return found
