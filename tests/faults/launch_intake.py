"""Run the intake and kill it at one call of the first event: `launch_intake.py ROOT AT VERSION`.

Calls that another process could notice are counted, before and after each. VERSION, if not empty,
is the only frame version that this intake knows.
"""

import sys

root, at = sys.argv[1], int(sys.argv[2])
sys.path.insert(0, root)

import posix  # noqa: E402

from hivepipe.hook import frame  # noqa: E402
from hivepipe.hook.intake_server import main  # noqa: E402

NOTICED = {
    "_accept", "recv", "sendall", "send", "connect", "close", "open", "read", "write", "pwrite",
    "ftruncate", "rename", "unlink", "mkdir", "lockf",
}  # fmt: skip
SIGKILL = 9
seen = 0


def kill(_frame: object, event: str, call: object) -> None:
    """Count from the first connection on."""
    global seen
    name = getattr(call, "__name__", "")
    if event in ("c_call", "c_return") and name in NOTICED and (seen or name == "_accept"):
        seen += 1
        if seen == at:
            posix.kill(posix.getpid(), SIGKILL)


if sys.argv[3]:
    frame.MAGIC = sys.argv[3].encode()
sys.setprofile(kill)
main()
