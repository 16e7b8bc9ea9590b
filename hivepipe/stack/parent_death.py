"""End a process of a stack when its supervisor is killed."""

import ctypes
import os
import signal
import sys

from hivepipe.errors import StackError
from hivepipe.home import read_small
from hivepipe.stack.runtime_folder import Stack

_PR_SET_PDEATHSIG = 1


def end_with_supervisor(stack: Stack) -> None:
    """Have the kernel send SIGTERM when the stack's supervisor ends, even after an `exec`.

    This works on Linux, and only below the stack's own supervisord, which has one thread. With
    another parent, the signal would come when the forking thread ends. Raise StackError if the
    supervisor has already ended.
    """
    if sys.platform != "linux" or not stack.supervises_this_process():
        return
    end_with_parent()
    if not is_child_of_supervisor(stack):  # the supervisor ended before the call of prctl
        raise StackError("the supervisor was killed")


def end_with_parent() -> None:
    """On Linux, have the kernel send SIGTERM when the parent's thread that forked us ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def is_child_of_supervisor(stack: Stack) -> bool:
    """Tell whether the parent is the stack's supervisor; return True if /proc is unreadable."""
    words = read_small(f"/proc/{os.getppid()}/cmdline").split("\0")
    return words == [""] or stack.config in words
