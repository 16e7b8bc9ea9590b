"""Disable core files for processes that hold texts or keys."""

import ctypes
import resource
import sys

_PR_SET_DUMPABLE = 4


def leave_none() -> None:
    """Set the size limit of core files to zero, for this process and its children."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def close_memory() -> None:
    """Keep other processes of the user, and crash handlers, from reading this process's memory.

    Only Linux supports this protection. The protection also makes /proc/<pid> unreadable, so use it
    only for processes that need no inspection. The protection ends when the process executes
    another program.
    """
    leave_none()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
