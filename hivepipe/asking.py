"""The files of a work tree that ask for something, and what their user has said to each.

    hivepipe.toml                    settings and texts by keyword: see hivepipe.request
    .claude-state/preferences.*      notes that sessions are told when they start
    .claude-state/progress.*

Whoever writes to the repository writes these. A file is a regular one, reached through no link, of
at most 64 kB. Read by commands alone.
"""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from hivepipe import request, trust
from hivepipe.folders import Folder

LIMIT_BYTES = 1 << 16
NOTES_FOLDER = ".claude-state"
_NOTES = ("preferences", "progress")
_NOTE_SUFFIXES = (".md", ".txt", ".yaml", ".yml", ".json", ".toml")

NEW, CHANGED, TRUSTED, GONE, UNUSABLE = "new", "changed", "trusted", "gone", "unusable"


class Asking(NamedTuple):
    """One file: `state` as the user left it, `trouble` why it cannot be trusted."""

    name: str
    state: str
    sha256: str = ""
    text: str = ""
    trouble: str = ""

    @property
    def waits(self) -> bool:
        """Is the user to be asked?"""
        return self.state in (NEW, CHANGED)


def files_asking(home: str, project: str) -> list[Asking]:
    """Return every file that asks for something, and those that did and are gone."""
    known = trust.trusted_files(home, project)
    found = [_look(project, name, known.get(name)) for name in _names(project)]
    names = {file.name for file in found}
    gone = [Asking(name, GONE, known[name].sha256) for name in known if name not in names]
    return [*found, *gone]


def waiting(home: str, project: str) -> list[Asking]:
    """Return those that the user has said nothing to as they are now."""
    return [file for file in files_asking(home, project) if file.waits]


def as_trusted(file: Asking) -> trust.Trusted:
    """Return what is kept of a file that the user says yes to."""
    return trust.Trusted(file.sha256, file.text, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}.000Z")


def in_a_line(files: list[Asking]) -> str:
    """Say of files that wait which they are."""
    named = [f"{each.name} (changed)" if each.state == CHANGED else each.name for each in files]
    more = [f"{len(named) - 3} more"] if len(named) > 3 else []
    return ", ".join([*named[:3], *more])


def _names(project: str) -> Iterator[str]:
    if request.NAME in _listed(project):
        yield request.NAME
    there = _listed(project, NOTES_FOLDER)
    for note in _NOTES:
        name = next((note + each for each in _NOTE_SUFFIXES if note + each in there), "")
        if name:
            yield f"{NOTES_FOLDER}/{name}"


def _listed(project: str, *below: str) -> list[str]:
    try:
        with Folder(project, *below) as folder:
            return folder.names()
    except OSError:  # there is none, or it is a link
        return []


def _look(project: str, name: str, known: trust.Trusted | None) -> Asking:
    *folders, last = name.split("/")
    try:
        with Folder(project, *folders) as folder:
            data = folder.read(last, LIMIT_BYTES) or b""
    except OSError as error:
        return Asking(name, UNUSABLE, trouble=error.strerror or str(error))
    sha256 = hashlib.sha256(data).hexdigest()
    text = data.decode("utf-8", "backslashreplace")
    if known and known.sha256 == sha256:
        return Asking(name, TRUSTED, sha256, text)
    if name == request.NAME and (trouble := request.Request(text, "", "").unreadable):
        return Asking(name, UNUSABLE, sha256, text, trouble)
    return Asking(name, CHANGED if known else NEW, sha256, text)
