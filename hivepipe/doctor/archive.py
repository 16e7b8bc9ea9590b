"""Checks whether transcripts can be archived and searched."""

import os
from collections.abc import Iterator
from pathlib import Path

from hivepipe.archive.index import FILE as ARCHIVE_INDEX
from hivepipe.archive.search.index_file import INDEX_FILE, skipped_lines
from hivepipe.doctor.facts import Facts, Finding
from hivepipe.home import kept_folder
from hivepipe.install.users_folder import is_read_only
from hivepipe.text.plurals import counted

_FOLDERS = (".archive-locks", "main-session", "subagent")


def folders(facts: Facts) -> Iterator[Finding]:
    """Find what prevents archiving: a path that is no folder, or a folder that is not writable."""
    kept = kept_folder(facts.place.home)
    wanted = [os.path.dirname(kept), kept, *(f"{kept}/{name}" for name in _FOLDERS)]
    consequence = "so transcripts are not archived"
    for path in filter(os.path.lexists, wanted):
        if os.path.islink(path) or not os.path.isdir(path):
            yield Finding(f"{path} is not a folder, {consequence}: move it away")
            return
        if not os.access(path, os.W_OK | os.X_OK):
            reason = "it is read-only here" if is_read_only(path) else "it must be your own folder"
            yield Finding(f"{path} cannot be written, {consequence}: {reason}")
            return
    index = f"{kept}/{ARCHIVE_INDEX}"
    if os.path.islink(index) or (os.path.lexists(index) and not os.path.isfile(index)):
        yield Finding(f"{index} is not a file, {consequence}: move it away")


NAMED = 5


def search_index(facts: Facts) -> Iterator[Finding]:
    """Find lines that are not in the search index, by archive and byte offset."""
    some, total = skipped_lines(Path(facts.place.home, INDEX_FILE), NAMED)
    if not some:
        return
    named = "; ".join(f"{each.key} at byte {each.offset}: {each.reason}" for each in some)
    more = f"; and {total - len(some)} more" if total > len(some) else ""
    what = "is archived but not indexed" if total == 1 else "are archived but not indexed"
    yield Finding(f"{counted(total, 'line')} {what} ({named}{more})", is_note=True)
