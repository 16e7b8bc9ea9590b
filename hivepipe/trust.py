"""Which files of a project's work tree its user has said yes to (`hivepipe trust`).

    <home>/trusted.json    {"v": 1, "projects": {"<project>": {"<name>": {...}}}}; 0600
                           sha256 of the bytes, the text where it is told or counts, the time

The copy counts, never the file: whatever git puts in its place has no effect before the user has
seen it. A home in a work tree trusts nothing, for git could bring this file, too.
"""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from hivepipe.home import is_in_project, make_folders, write_small
from hivepipe.regular_file import read_bytes

NAME = "trusted.json"
LIMIT_BYTES = 16 << 20


class Trusted(NamedTuple):
    """A file as it was when the user said yes; `text` is empty where the hash alone matters."""

    sha256: str
    text: str
    at: str


def path_of(home: str) -> str:
    """Return where it is kept."""
    return f"{home}/{NAME}"


def projects(home: str) -> list[str]:
    """Return the projects of which something is trusted."""
    return sorted(_read(home))


def trusted_files(home: str, project: str) -> dict[str, Trusted]:
    """Return what is trusted of a project, by the names of the files in it."""
    return _read(home).get(project, {})


def is_trusted(home: str, path: str, sha256: str) -> bool:
    """Did the user say yes to a file with these bytes at this path?"""
    return any(
        path == f"{project}/{name}" and sha256 == file.sha256
        for project, files in _read(home).items()
        for name, file in files.items()
    )


def change(home: str, project: str, *, add: dict[str, Trusted], remove: Iterable[str] = ()) -> None:
    """Trust some files of a project, and some no longer; OSError."""
    found = _read(home)
    files = {**found.get(project, {}), **add}
    for name in remove:
        files.pop(name, None)
    found[project] = files
    kept = {
        each: {name: file._asdict() for name, file in files.items()}
        for each, files in found.items()
        if files
    }
    make_folders(home)
    write_small(path_of(home), json.dumps({"v": 1, "projects": kept}) + "\n")


def _read(home: str) -> dict[str, dict[str, Trusted]]:
    """Return project -> name -> file; nothing where the file is none of ours."""
    if is_in_project(home):
        return {}
    try:
        said = json.loads(read_bytes(path_of(home), LIMIT_BYTES))
        return {
            project: {name: _trusted(file) for name, file in files.items()}
            for project, files in said["projects"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _trusted(file: dict[str, Any]) -> Trusted:
    return Trusted(str(file["sha256"]), str(file["text"]), str(file["at"]))
