"""Which programs on demand the supervisor is to run: those with a file in the runtime folder.

<name>.wanted    exists while the program is to run; the path of a lock in it, if it has one:
                 the program is started only while nobody holds that
"""

import os
from contextlib import suppress

WANTED = ".wanted"


def want(runtime: str, program: str, is_wanted: bool, lock: str = "") -> None:
    """Have the supervisor start or stop a program within seconds."""
    path = f"{runtime}/{program}{WANTED}"
    with suppress(OSError):
        if not is_wanted:
            os.unlink(path)
        elif not os.path.exists(path):
            with open(path, "x", encoding="utf-8") as file:
                file.write(lock)
