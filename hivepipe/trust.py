"""Which files of a project's work tree its user has said yes to (`hivepipe trust`).

    <home>/trusted.json    {"v": 1, "projects": {"<project>": {"<name>": {...}}}}; 0600
                           sha256 of the bytes, the text where it is told or counts, the time

The copy counts, never the file: whatever git puts in its place has no effect before the user has
seen it. A home in a work tree trusts nothing, for git could bring this file, too.
"""

import json
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from hivepipe.home import is_in_project, make_folders, read_record, user_folder, write_small
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


def untrusted(home: str, files: Iterable[tuple[str, str]]) -> set[str]:
    """Return of files (real path, SHA-256) those that a repository may have brought, without a yes.

    What lies in no work tree is the user's, or Claude's.
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
    """Does a folder lie in a checkout, or in a project of hivepipe's?

    Not what lies in the home, or in the folder of Claude Code, which people keep in git, too.
    """
    ends = (home, user_folder(), f"{user_folder()}/.claude", "/", "")
    while folder not in ends:
        if os.path.lexists(f"{folder}/.git") or read_record(folder):
            return True
        folder = os.path.dirname(folder)
    return False


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
