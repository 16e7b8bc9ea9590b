"""Find programs in the absolute folders of PATH only.

A relative entry, such as `.` or `node_modules/.bin`, names a folder of the current project: a clone
could contain a `git` or a `redis-server` there.
"""

import os
import shutil

from hivepipe import settings


def find_program(name: str) -> str | None:
    """Return the absolute path of a program, given by its name or its path, or None."""
    if "/" in name:
        return shutil.which(os.path.abspath(name))  # noqa: TID251  the only caller
    path = settings.absolute_entries(settings.environment("PATH") or "")
    return shutil.which(name, path=path)  # noqa: TID251
