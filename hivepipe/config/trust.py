"""The files of a project's work tree that the user trusts (`hivepipe trust`).

    <home>/trusted.json    {"v": 1, "projects": {"<project>": {"<name>": {...}}}}; 0600
                           sha256; text, if hivepipe uses it; time when it was trusted

hivepipe uses the stored copy, never the file. A version that comes with git has no effect until the
user has reviewed it. A home in a work tree trusts nothing, because git could replace this list.
"""

import json
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from hivepipe.files.regular_file import read_bytes
from hivepipe.home import is_in_project, make_folders, read_record, user_folder, write_small

NAME = "trusted.json"
LIMIT_BYTES = 16 << 20


class Trusted(NamedTuple):
    """A file at the time it was trusted; `text` is "" if only the hash is used."""

    sha256: str
    text: str
    at: str


def path_of(home: str) -> str:
    return f"{home}/{NAME}"


def projects(home: str) -> list[str]:
    return sorted(_read(home))


def trusted_files(home: str, project: str) -> dict[str, Trusted]:
    return _read(home).get(project, {})


def untrusted(home: str, files: Iterable[tuple[str, str]]) -> set[str]:
    """Return the paths of those files (real path, SHA-256) that need the user's trust and lack it.

    Files outside of work trees need no trust, because the user or Claude Code wrote them.
    """
    trusted = {
        (f"{project}/{name}", file.sha256)
        for project, files in _read(home).items()
        for name, file in files.items()
    }
    in_tree: dict[str, bool] = {}
    found = set()
    for path, sha256 in files:
        folder = os.path.dirname(path)
        if folder not in in_tree:
            in_tree[folder] = is_in_work_tree(folder, home)
        if in_tree[folder] and (path, sha256) not in trusted:
            found.add(path)
    return found


def is_in_work_tree(folder: str, home: str) -> bool:
    """Tell whether a folder is in a checkout, or in a registered project.

    The home and Claude Code's folder do not count, because some users keep them in git.
    """
    ends = (home, user_folder(), f"{user_folder()}/.claude", "/", "")
    while folder not in ends:
        if os.path.lexists(f"{folder}/.git") or read_record(folder):
            return True
        folder = os.path.dirname(folder)
    return False


def change(home: str, project: str, *, add: dict[str, Trusted], remove: Iterable[str] = ()) -> None:
    """Add and remove trusted files of a project. Raises OSError."""
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
    """Return project -> name -> file, {} if the list is missing, invalid or in a work tree."""
    if is_in_project(home):
        return {}
    try:
        content = json.loads(read_bytes(path_of(home), LIMIT_BYTES))
        return {
            project: {name: _trusted(file) for name, file in files.items()}
            for project, files in content["projects"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _trusted(file: dict[str, Any]) -> Trusted:
    return Trusted(str(file["sha256"]), str(file["text"]), str(file["at"]))
