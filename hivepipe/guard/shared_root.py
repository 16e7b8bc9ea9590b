"""Check at the start of a stack, in a process of its own, whether the shared disk answers."""

import os
import signal
import sys
import time
from pathlib import Path

from hivepipe import settings
from hivepipe.guard.check import silence_path
from hivepipe.home import absolute, write_small

ANSWER_SECS = 2.0
_STEP_SECS = 0.01
_LOOK = "import posix, sys; posix.stat(sys.argv[1])"


def check_shared_root(home: str) -> None:
    """Write or remove the file that tells hooks of a silent shared disk. May raise OSError."""
    root = settings.variable("HIVEPIPE_SHARED_ROOT")
    if not root or _answers(absolute(root)):
        Path(silence_path(home)).unlink(missing_ok=True)
    else:
        write_small(silence_path(home), f"{root} did not answer within {ANSWER_SECS:.0f} s\n")


def _answers(root: str) -> bool:
    """Tell whether the disk answers in time. A process that hangs is not waited for."""
    command = [sys.executable, "-I", "-S", "-c", _LOOK, root]
    nowhere = [(os.POSIX_SPAWN_OPEN, number, "/dev/null", os.O_RDWR, 0) for number in (0, 1, 2)]
    child = os.posix_spawn(command[0], command, {}, file_actions=nowhere)
    end = time.monotonic() + ANSWER_SECS
    while time.monotonic() < end:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(_STEP_SECS)
    os.kill(child, signal.SIGKILL)
    return False
