"""Tell whether a process named by pid, start time and machine is still running."""

import os
from contextlib import suppress

from hivepipe.hook import alive
from hivepipe.hook.instance import this_machine


def machine() -> str:
    """Return an identifier of this machine and boot: a pid is valid within one boot only."""
    return " ".join(part or "-" for part in this_machine())


def lives(pid: int, started: str, on: str) -> bool | None:
    """Tell whether a process that was started on machine `on` is running.

    Return None if that is unknown, for instance because `on` is another machine.
    """
    parts = ["" if part == "-" else part for part in on.split(" ")]
    host, boot, pid_space, *_ = [*parts, "", ""]
    return alive.liveness_on((host, boot, pid_space), pid, started, this_machine()).lives


def group_lives(group: int) -> bool:
    """Tell whether any process of a process group exists."""
    try:
        with suppress(PermissionError):
            os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
