"""The status that Claude Code's process reports: busy, waiting for a person, idle or shell.

Each interactive process writes `sessions/<pid>.json` in its settings folder. The file is not
documented. If a field is missing or invalid, the file is ignored, and only events count.
"""

import os
from typing import NamedTuple

from hivepipe.home import read_small
from hivepipe.install.claude_code import config_folder
from hivepipe.transcripts.lines import read_object

BUSY, WAITING = "busy", "waiting"
IDLE = "idle"  # waits for a prompt; no command or agent runs in the background
SHELL = "shell"  # waits for a prompt, while a command runs in the background
MOST_BYTES = 1 << 16
MOST_WORDS = 100
LATEST_MS = 253_402_300_800_000  # the year 10000; no stored time can be as late


class ClientStatus(NamedTuple):
    """The reported status and its time; `waits_for` is "" unless the status is `waiting`."""

    status: str
    at_ns: int
    waits_for: str = ""


def client_status(
    pid: int, started: str, session: str, transcript: str | None
) -> ClientStatus | None:
    """Return the status that a Claude Code process reports for a session.

    Return None if the process reports no valid status, or reports another session.
    `transcript` is the session's transcript; its path leads to Claude Code's settings folder.
    """
    text = read_small(f"{_settings_folder(transcript or '')}/sessions/{pid}.json", MOST_BYTES)
    fields = read_object(text.encode("utf-8", "surrogateescape"))
    if fields is None or fields.get("sessionId") != session:
        return None
    if fields.get("pid", pid) != pid or str(fields.get("procStart") or started) != started:
        return None
    status = fields.get("status")
    at_ms = fields.get("statusUpdatedAt", fields.get("updatedAt"))
    if not isinstance(at_ms, int | float) or not 0 < at_ms < LATEST_MS:
        return None
    if status not in (BUSY, WAITING, IDLE, SHELL):
        return None
    waits_for = fields.get("waitingFor") if status == WAITING else ""
    words = waits_for[:MOST_WORDS] if isinstance(waits_for, str) else ""
    return ClientStatus(status, int(at_ms * 1_000_000), words)


def _settings_folder(transcript: str) -> str:
    """Return the parent of `projects/<project>/<session>.jsonl`, or else the default folder."""
    folder = os.path.dirname(os.path.dirname(transcript))
    return os.path.dirname(folder) if os.path.basename(folder) == "projects" else config_folder()
