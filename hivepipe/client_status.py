"""What Claude Code's process says of itself: it works, waits for a person, or is idle.

Each interactive process keeps `sessions/<pid>.json` in its settings folder. No document describes
the file: what is absent or odd in it says nothing, and events alone count.
"""

import json
import os
from typing import NamedTuple

from hivepipe.home import read_small
from hivepipe.install.claude_code import config_folder

BUSY, WAITING, IDLE = "busy", "waiting", "idle"
MOST_BYTES = 1 << 16
MOST_WORDS = 100


class ClientStatus(NamedTuple):
    """What a process said, and when; `waits_for` is empty unless it waits."""

    status: str
    at_ns: int
    waits_for: str = ""


def client_status(
    pid: int, started: str, session: str, transcript: str | None
) -> ClientStatus | None:
    """Return what this very process says of this session; None: nothing that can be believed.

    `transcript`: of the session, which lies in the settings folder of its Claude Code.
    """
    text = read_small(f"{_settings_folder(transcript or '')}/sessions/{pid}.json", MOST_BYTES)
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or said.get("sessionId") != session:
        return None
    if said.get("pid", pid) != pid or str(said.get("procStart") or started) != started:
        return None
    status, at_ms = said.get("status"), said.get("statusUpdatedAt", said.get("updatedAt"))
    if status not in (BUSY, WAITING, IDLE) or not isinstance(at_ms, int | float):
        return None
    waits_for = said.get("waitingFor") if status == WAITING else ""
    words = waits_for[:MOST_WORDS] if isinstance(waits_for, str) else ""
    return ClientStatus(status, int(at_ms * 1_000_000), words)


def _settings_folder(transcript: str) -> str:
    """Return the folder above `projects/<project>/<session>.jsonl`."""
    folder = os.path.dirname(os.path.dirname(transcript))
    return os.path.dirname(folder) if os.path.basename(folder) == "projects" else config_folder()
