"""Does the process of an instance still live? Only who is sure says no.

A pid means something in one pid namespace of one boot of one machine, together with its start time.
"""

import os
import re
import sqlite3
from collections.abc import Mapping
from typing import Any, NamedTuple

from hivepipe.home import read_small

_OURS = re.compile(r"instance-[0-9]+-[0-9a-f]{8}")
_DEAD = ("Z", "X")  # a zombie answers signals; whoever should have reaped it may never do so


class Fate(NamedTuple):
    """`lives` is None where nobody here can know; `reason` says how it ended."""

    lives: bool | None
    reason: str = ""


LIVES = Fate(True)
UNKNOWN = Fate(None)


def fate_of(instance: "Mapping[str, Any] | sqlite3.Row", here: tuple[str, str, str]) -> Fate:
    """Judge a row of `instances`, as seen from this machine."""
    host, boot, pid_space = here
    pid = instance["pid"] or 0
    # Named by a launcher: the pid is that of whatever ran the hook.
    if pid <= 0 or not _OURS.fullmatch(instance["id"]) or instance["host"] != host:
        return UNKNOWN
    if (instance["boot"] or boot) != boot:
        return Fate(False, "machine restarted")
    if (instance["pid_space"] or pid_space) != pid_space:
        return UNKNOWN
    return LIVES if lives(pid, instance["pid_started"] or "") else Fate(False, "process gone")


def lives(pid: int, started: str) -> bool:
    """Does this very process live? `started` as the kernel counts; empty where it does not say."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    state, now = _state_and_start(pid)
    return state not in _DEAD and (not started or not now or now == started)


def start_time(pid: int) -> str:
    """Return when a process started, as the kernel counts; empty where it does not say."""
    return _state_and_start(pid)[1]


def _state_and_start(pid: int) -> tuple[str, str]:
    """Return what Linux says; empty where there is no /proc, or not for us."""
    fields = read_small(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (fields[0], fields[19]) if len(fields) >= 20 else ("", "")
