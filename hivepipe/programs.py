"""Programs on PATH, found in its absolute folders only.

A relative entry, as `.` or `node_modules/.bin`, names a folder of whatever project the process
stands in: a clone could ship a `git` or a `redis-server` of its own there.
"""

import os
import shutil

from hivepipe import settings


def find_program(name: str) -> str | None:
    """Return the absolute path of a program, given by its name or its path; None: there is none."""
    if "/" in name:
        return shutil.which(os.path.abspath(name))  # noqa: TID251  the one caller
    path = settings.absolute_entries(settings.environment("PATH") or "")
    return shutil.which(name, path=path)  # noqa: TID251
