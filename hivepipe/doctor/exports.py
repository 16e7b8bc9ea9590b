"""Check whether transcripts can be archived."""

import os
from collections.abc import Iterator

from hivepipe.archive.index import FILE as ARCHIVE_INDEX
from hivepipe.doctor.facts import Facts, Finding
from hivepipe.home import kept_folder

_FOLDERS = (".archive-locks", "main-session", "subagent")


def usable(facts: Facts) -> Iterator[Finding]:
    """Find a file or link where a folder is needed, so that archiving fails."""
    kept = kept_folder(facts.place.home)
    wanted = [os.path.dirname(kept), kept, *(f"{kept}/{name}" for name in _FOLDERS)]
    consequence = "so transcripts are not archived"
    for path in filter(os.path.lexists, wanted):
        if os.path.islink(path) or not os.path.isdir(path):
            yield Finding(f"{path} is not a folder, {consequence}: move it away")
            return
        if not os.access(path, os.W_OK | os.X_OK):
            yield Finding(f"{path} cannot be written, {consequence}: it must be your own folder")
            return
    index = f"{kept}/{ARCHIVE_INDEX}"
    if os.path.islink(index) or (os.path.lexists(index) and not os.path.isfile(index)):
        yield Finding(f"{index} is not a file, {consequence}: move it away")
