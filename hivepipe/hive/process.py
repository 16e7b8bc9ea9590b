"""Is a process that somebody wrote down still that very process?"""

import os

from hivepipe.intake import fate
from hivepipe.intake.instance import this_machine


def machine() -> str:
    """Return what names this run of this kernel: pids of another, or of before, mean nothing."""
    return " ".join(part or "-" for part in this_machine())


def lives(pid: int, started: str, on: str) -> bool | None:
    """Does the process live that had this pid and start time? None: it is another machine's."""
    here = machine()
    if on != here:
        host, boot, *_ = [*on.split(" "), "", ""]
        now_host, now_boot, *_ = here.split(" ")
        # The same machine, booted since: whatever ran is gone.
        return False if host == now_host and boot != now_boot else None
    return fate.lives(pid, started)


def start_time(pid: int) -> str:
    """Return when a process started, as the kernel counts; empty where it does not say."""
    return fate.start_time(pid)


def group_lives(group: int) -> bool:
    """Is anybody left of a process group?"""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
