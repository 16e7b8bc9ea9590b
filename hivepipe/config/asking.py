"""Files of a work tree that hivepipe uses only if the user trusts them, and the user's decisions.

    hivepipe.toml                    settings and texts by keyword: see hivepipe.config.request
    .claude-state/preferences.*      notes for the context of starting sessions
    .claude-state/progress.*
    SOUL.md and similar files        in `profile_dir`, if that is in the work tree
    *.md, *.txt                      in `<profile_dir>/memory` and `memory_dirs`, in the work tree

Any author of the repository can write these files. Special files, files above 64 kB and files whose
path has a link are never trusted. Only commands read them.
"""

import hashlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from errno import ELOOP
from itertools import islice
from typing import NamedTuple

from hivepipe import settings
from hivepipe.config import request, trust
from hivepipe.events.claude_code import IDENTITY_FILES
from hivepipe.files.folders import Folder
from hivepipe.home import absolute

LIMIT_BYTES = 1 << 16
MOST_MEMORIES = 500  # the number of memory files that are examined
NOTES_FOLDER = ".claude-state"
_NOTES = ("preferences", "progress")
_NOTE_SUFFIXES = (".md", ".txt", ".yaml", ".yml", ".json", ".toml")

NEW, CHANGED, TRUSTED, GONE, UNUSABLE = "new", "changed", "trusted", "gone", "unusable"


class Asking(NamedTuple):
    """A file that needs trust.

    `state` is the user's decision. `trouble` says why the file cannot be trusted.
    """

    name: str
    state: str
    sha256: str = ""
    text: str = ""
    trouble: str = ""

    @property
    def waits(self) -> bool:
        """Tell whether the user still has to decide about the file."""
        return self.state in (NEW, CHANGED)


def files_asking(home: str, project: str) -> list[Asking]:
    """Return the files of the project that need trust, and trusted files that were deleted."""
    known = trust.trusted_files(home, project)
    found = [_examined(project, name, known.get(name)) for name in _names(project)]
    names = {file.name for file in found}
    gone = [Asking(name, GONE, known[name].sha256) for name in known if name not in names]
    return [*found, *gone]


def waiting(home: str, project: str) -> list[Asking]:
    """Return the files whose current content the user has not decided on."""
    return [file for file in files_asking(home, project) if file.waits]


def as_trusted(file: Asking) -> trust.Trusted:
    text = file.text if is_read_from_copy(file.name) else ""
    return trust.Trusted(file.sha256, text, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}.000Z")


def is_read_from_copy(name: str) -> bool:
    """Tell whether a trusted file's text is stored (requests and notes), not only its hash."""
    return name == request.NAME or name.startswith(f"{NOTES_FOLDER}/")


def in_a_line(files: list[Asking]) -> str:
    """Return the names of the first three files and the number of further files, on one line."""
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
    profile = _below(project, settings.of_files("HIVEPIPE_PROFILE_DIR") or "")
    if profile:
        there = _listed(project, *profile.split("/"))
        yield from (f"{profile}/{name}" for name in IDENTITY_FILES if name in there)
    dirs = (settings.variable("HIVEPIPE_MEMORY_DIRS") or "").split(":")
    folders = {_below(project, each) for each in dirs} | {f"{profile}/memory" if profile else ""}
    for folder in sorted(folders - {""}):
        yield from islice(_memories(project, folder), MOST_MEMORIES)


def _below(project: str, folder: str) -> str:
    """Return a folder's path relative to the project, or "" if it lies elsewhere."""
    path = os.path.realpath(absolute(folder)) if folder else ""
    return path.removeprefix(f"{project}/") if path.startswith(f"{project}/") else ""


def _memories(project: str, folder: str) -> Iterator[str]:
    for root, folders, names in os.walk(f"{project}/{folder}"):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.endswith((".md", ".txt")) and not name.startswith("."):
                yield f"{root}/{name}".removeprefix(f"{project}/")


def _listed(project: str, *below: str) -> list[str]:
    try:
        with Folder(project, *below) as folder:
            return folder.names()
    except OSError:  # the folder is missing, or a link
        return []


def _examined(project: str, name: str, known: trust.Trusted | None) -> Asking:
    *folders, last = name.split("/")
    try:
        with Folder(project, *folders) as folder:
            data = folder.read(last, LIMIT_BYTES) or b""
    except OSError as error:
        trouble = "it is a link" if error.errno == ELOOP else error.strerror or str(error)
        return Asking(name, UNUSABLE, trouble=trouble)
    sha256 = hashlib.sha256(data).hexdigest()
    text = data.decode("utf-8-sig", "backslashreplace")
    if known and known.sha256 == sha256:
        return Asking(name, TRUSTED, sha256, text)
    if name == request.NAME and (trouble := request.Request(text, "", "").unreadable):
        return Asking(name, UNUSABLE, sha256, text, trouble)
    return Asking(name, CHANGED if known else NEW, sha256, text)
