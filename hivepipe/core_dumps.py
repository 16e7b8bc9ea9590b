"""No memory on the disk: processes that hold texts or keys leave no core file when they crash."""

import ctypes
import resource
import sys

_PR_SET_DUMPABLE = 4


def leave_none() -> None:
    """Set the limit to nothing, for this process and those it starts."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def close_memory() -> None:
    """Let no process of the same user read this one's memory, and no crash handler either.

    Where the kernel has such a switch. For processes that nobody needs to look at: it closes
    /proc/<pid> as well. A program that this one becomes is open again.
    """
    leave_none()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
