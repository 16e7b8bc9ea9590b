"""`projects.json`: the names and paths of the projects in which workers can be started."""

import json
import re
from pathlib import Path

from hivepipe.errors import HiveError
from hivepipe.files.typed_file import read_typed
from hivepipe.home import (
    absolute,
    data_folder,
    real_path,
    state_folder,
    user_config_folder,
    write_small,
)

UUID = re.compile(r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


def read(path: Path) -> dict[str, str]:
    """Return all projects, or {} if there is no file. Raise HiveError if it cannot be read."""
    try:
        return read_typed(path, dict[str, str])
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise HiveError(f"{path} is not an object of names and paths: {error}") from None


def folder_of(path: Path, name: str) -> str:
    """Return the folder of a project. Raise HiveError if it is not listed or has no folder."""
    projects = read(path)
    if name not in projects:
        known = ", ".join(sorted(projects)) or "none yet (`hivepipe hive projects add NAME PATH`)"
        raise HiveError(f"{path} names no project {name!r}; it names: {known}")
    folder = real_path(absolute(projects[name]))
    if not Path(folder).is_dir():
        raise HiveError(f"{name} is {projects[name]} in {path}, which is not a folder")
    _refuse_our_own(folder)
    return folder


def add(path: Path, name: str, folder: str) -> str:
    """Add a project; return its path. Raise HiveError if the name or folder cannot be used."""
    if not _NAME.fullmatch(name):
        raise HiveError(f"{name!r} cannot be a project's name: letters, digits, '.', '_', '-'")
    real = real_path(absolute(folder))
    if not Path(real).is_dir():
        raise HiveError(f"{folder} is not a folder")
    _refuse_our_own(real)
    _write(path, {**read(path), name: real})
    return real


def _refuse_our_own(folder: str) -> None:
    """Raise HiveError if a folder contains the files that grant rights to workers."""
    for held in (state_folder(), data_folder(), user_config_folder()):
        if f"{real_path(held)}/".startswith(f"{folder.rstrip('/')}/"):
            raise HiveError(
                f"{folder} holds {held}, which sets what workers may do: name a folder within it"
            )


def remove(path: Path, name: str) -> None:
    """Remove a project from the list. Raise HiveError if the list does not have it."""
    projects = read(path)
    if projects.pop(name, None) is None:
        raise HiveError(f"{path} names no project {name!r}")
    _write(path, projects)


def project_of(worker: str, projects: dict[str, str]) -> str:
    """Return the name of the project that a worker's id begins with.

    The name ends before the UUID. Without a UUID it is the longest listed name that fits, so that
    `project-a-b-1` is not taken for `project-a`.
    """
    plain = UUID.sub("", worker)
    if plain != worker:
        return plain
    fitting = [name for name in projects if worker.startswith(f"{name}-")]
    return max(fitting, key=len, default=worker.rpartition("-")[0] or worker)


def _write(path: Path, projects: dict[str, str]) -> None:
    write_small(str(path), json.dumps(projects, indent=2, sort_keys=True) + "\n")
