"""The environment of a home's processes, recorded by commands of the user and never by a hook.

    <home>/environment    the variables that stack processes get (hivepipe.settings.inherited), as
                          they were at the last `init`, `up` or `restart`: NAME=value, one per line

Hooks do not record the environment, because a project can set the environment of its hooks, and one
stack may serve many projects. The user's folders (HOME, XDG_*) are recorded by the first such
command, and later only by `init`.
"""

import os

from hivepipe.home import LARGEST_ENVIRONMENT, read_small, write_small
from hivepipe.settings import inherited

_KEPT = ("HOME=", "XDG_")


def record_environment(home: str, *, replace_folders: bool = False) -> None:
    """Record the variables for this home's processes; by default, keep recorded HOME and XDG_*."""
    now = [f"{os.fsdecode(name)}={os.fsdecode(value)}" for name, value in inherited().items()]
    before = read_small(f"{home}/environment", LARGEST_ENVIRONMENT).splitlines()
    if before and not replace_folders:
        now = [line for line in now if not line.startswith(_KEPT)]
        now += [line for line in before if line.startswith(_KEPT)]
    text = "".join(f"{line}\n" for line in sorted(now) if line.splitlines() == [line])
    write_small(f"{home}/environment", text)
