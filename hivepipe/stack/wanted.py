"""The files in the runtime folder that tell the supervisor which on-demand programs to run.

<name>.wanted    exists while the program should run; it can contain the path of a lock: then the
                 program is started only while no process holds the lock
"""

import os
from contextlib import suppress

WANTED = ".wanted"


def set_wanted(runtime: str, program: str, is_wanted: bool, lock: str = "") -> None:
    """Have the supervisor start or stop a program within a few seconds. Ignore an OSError."""
    path = f"{runtime}/{program}{WANTED}"
    with suppress(OSError):
        if not is_wanted:
            os.unlink(path)
        elif not os.path.exists(path):
            with open(path, "x", encoding="utf-8") as file:
                file.write(lock)
