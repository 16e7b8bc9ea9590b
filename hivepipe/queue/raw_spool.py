"""Events that the native hook wrote to the spool without an intake: their raw bytes.

    <folder>/spool/<event time>_<pid>.raw    a frame (hivepipe.hook.frame)

Whoever drains a spool first turns them into spool files of jobs, as the Python hook writes them.
That is done by a process of its own (hivepipe.hook.convert_spool), because the intake runs with the
environment of the event's hook.
"""

import os
import subprocess
import sys
from pathlib import Path

from hivepipe.queue.spool import spool_folders

RAW = ".raw"
_MODULE = "hivepipe.hook.convert_spool"
_SECS = 60  # it does what it can in that time, and the rest the next time


def raw_files(folder: str | Path) -> list[Path]:
    """Return the raw events of a spool, oldest first."""
    try:
        return [Path(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(RAW)]
    except OSError:
        return []


def convert_raw_events(home: str) -> None:
    """Turn the raw events of a home into spool files; what fails stays."""
    waiting = [path for folder in spool_folders(home) for path in raw_files(folder)]
    if waiting:
        command = [sys.executable, "-I", "-m", _MODULE, *map(str, waiting[:500])]
        try:
            subprocess.run(command, stdin=subprocess.DEVNULL, timeout=_SECS, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return
