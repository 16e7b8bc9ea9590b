"""Find the home of a renamed project again after an `uninstall`, which removes the records.

<data>/hivepipe/projects/<name>-<hash>.renamed    a link to the home, which has the old name
"""

import os
from pathlib import Path

from hivepipe.home import home_of_project


def last_home(project: str) -> str:
    """Return the target of the project's `.renamed` link, else the home named after this path."""
    link = _link(project)
    return os.path.realpath(link if os.path.isdir(link) else home_of_project(project))


def link_renamed(project: str, old: str, home: str) -> None:
    """Make the link from a project that was renamed from `old` to its home."""
    unlink_renamed(old)
    unlink_renamed(project)
    if home != last_home(project):
        os.symlink(home, _link(project))


def unlink_renamed(project: str) -> None:
    """Remove the link from a project to its home, if the link exists."""
    Path(_link(project)).unlink(missing_ok=True)


def _link(project: str) -> str:
    return f"{home_of_project(project)}.renamed"
