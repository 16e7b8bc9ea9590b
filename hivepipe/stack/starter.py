"""The program that a hook runs to start the stack.

    python -I -m hivepipe.stack.starter STARTING

STARTING is a file that prevents other hooks from starting the stack too (hivepipe.hook.autostart).
After a failure it contains the reason and the time of the next attempt. The delay is 60 s at first
and doubles with each failure, up to an hour. It stays 60 s while another container runs the stack,
which stores the events of this one.
"""

import os
import sys
import time
from typing import NamedTuple

from hivepipe.config.config_file import load_and_use
from hivepipe.home import read_small, write_small
from hivepipe.stack import kernel, lifecycle
from hivepipe.stack.runtime_folder import Stack

FIRST_WAIT_SECS = 60
LONGEST_WAIT_SECS = 3600
SETTLED_SECS = 10  # hooks that just saw no stack must not start a second one
LONGEST_REASON = 300


class Starting(NamedTuple):
    not_before: float  # seconds since 1970
    failures: int  # successive failures
    reason: str  # reason of the last failure


def read_starting(folder: str) -> Starting:
    """Return the content of the file `starting` in this runtime folder.

    A missing or invalid file counts as one without failures, whose time has passed.
    """
    words = read_small(f"{folder}/starting").split(maxsplit=2)
    try:
        not_before, failures = float(words[0]), int(words[1])
    except (IndexError, ValueError):
        return Starting(0, 0, "")
    return Starting(not_before, failures, words[2].strip() if len(words) > 2 else "")


def main(path: str) -> int:
    """Start the stack of HIVEPIPE_HOME and record the result; return the exit code."""
    os.umask(0o077)
    home = load_and_use()[0].home
    try:
        lifecycle.start_for_hook(Stack.prepared(home))
    except Exception as error:  # noqa: BLE001  its stderr is /dev/null
        _write_starting(path, _after_failure(path, home, str(error) or type(error).__name__))
        return 1
    _write_starting(path, Starting(time.time() + SETTLED_SECS, 0, ""))
    return 0


def _after_failure(path: str, home: str, reason: str) -> Starting:
    if kernel.other_machine(home):
        return Starting(time.time() + FIRST_WAIT_SECS, 0, reason)
    failures = read_starting(os.path.dirname(path)).failures
    wait = min(FIRST_WAIT_SECS * 2**failures, LONGEST_WAIT_SECS)
    return Starting(time.time() + wait, failures + 1, reason)


def _write_starting(path: str, starting: Starting) -> None:
    reason = " ".join(starting.reason.split())[:LONGEST_REASON]
    if os.path.isdir(os.path.dirname(path)):  # if not, `down` has removed the folder
        write_small(path, f"{starting.not_before:.3f} {starting.failures} {reason}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
