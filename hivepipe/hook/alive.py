"""Detect that the process of an instance is dead. A doubtful process is not reported as dead.

A pid identifies a process only together with the start time of the process, and only in one pid
namespace, one boot and one machine.
"""

import re
import sqlite3
from collections.abc import Mapping
from typing import Any, NamedTuple

from hivepipe.home import read_small
from hivepipe.programs import process_exists

_OURS = re.compile(r"instance-[0-9]+-[0-9a-f]{8}")
_DEAD = ("Z", "X")  # a zombie still accepts signals; its parent may never reap it


class Liveness(NamedTuple):
    """Whether a process lives.

    `lives` is None if this is unknown. `reason` says why a process is dead.
    """

    lives: bool | None
    reason: str = ""


LIVES = Liveness(True)
UNKNOWN = Liveness(None)


def liveness_of(
    instance: "Mapping[str, Any] | sqlite3.Row", here: tuple[str, str, str]
) -> Liveness:
    """Return whether the process of a row of `instances` lives, as seen from this machine."""
    pid = instance["pid"] or 0
    # An instance named by its launcher has the pid of the hook's parent, not of Claude Code.
    if pid <= 0 or not _OURS.fullmatch(instance["id"]):
        return UNKNOWN
    machine = (instance["host"] or "", instance["boot"] or "", instance["pid_space"] or "")
    return liveness_on(machine, pid, instance["pid_started"] or "", here)


def liveness_on(
    machine: tuple[str, str, str], pid: int, started: str, here: tuple[str, str, str]
) -> Liveness:
    """Tell whether a process of `machine` lives, seen from `here`: (host, boot, pid namespace).

    A part of a machine that is "" is unknown. If boot and pid namespace are equal and only the host
    name differs, the machine was renamed. An equal boot alone does not prove this, because all
    containers of a machine have the same boot.
    """
    host, boot, pid_space = machine
    was_renamed = boot and pid_space and (boot, pid_space) == here[1:]
    if host != here[0] and not was_renamed:
        return UNKNOWN
    if (boot or here[1]) != here[1]:
        return Liveness(False, "machine restarted")
    if (pid_space or here[2]) != here[2]:
        return UNKNOWN
    return LIVES if lives(pid, started) else Liveness(False, "process gone")


def lives(pid: int, started: str) -> bool:
    """Tell whether the process lives. `started` is its start time in the kernel, or ""."""
    if pid <= 0 or not process_exists(pid):
        return False
    state, now = _state_and_start(pid)
    return state not in _DEAD and (not started or not now or now == started)


def start_time(pid: int) -> str:
    """Return the start time of a process as the kernel counts it, or "" if unknown."""
    return _state_and_start(pid)[1]


def _state_and_start(pid: int) -> tuple[str, str]:
    """Return state and start time from /proc, or empty texts without it."""
    fields = read_small(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (fields[0], fields[19]) if len(fields) >= 20 else ("", "")
