"""The files of a home on disk: their paths and sizes."""

import os
from pathlib import Path
from typing import NamedTuple

from redis import RedisError

from hivepipe.archive import index
from hivepipe.db.listings import is_unused
from hivepipe.db.location import database_path
from hivepipe.files import logs
from hivepipe.files.known_hives import known, trusted_state_folder
from hivepipe.files.manifest import Manifest
from hivepipe.files.regular_file import ANY_SIZE, read_bytes
from hivepipe.home import IN_PROJECT, Place, is_in_project, read_small, state_folder, tree_of
from hivepipe.hook.status_line import FILE as STATUS_LINE_FILE
from hivepipe.queue.connection import ACCEPTED_KEY, connect
from hivepipe.queue.spooled import has_spooled
from hivepipe.stack.ping import answers
from hivepipe.stack.registration import IGNORE_ALL
from hivepipe.summaries.consent import consent_path

# The other folders (projects, prompts, learnings) belong to the user.
_OURS_OF_HIVE = ("workers", "state", "archive")
# The index does not count as data, because the manifest also lists each archive.
_NO_DATA = {*logs.NAMES, index.FILE, ".gitignore", "../.gitignore"}
# Files that exist before the first event. Redis and the database are checked separately.
_OF_AN_EMPTY_HOME = (
    *(".gitignore", "environment", "appendonly", "hive.db", "kernel", "logs/", "lost-events"),
    *("manifest.db", "redaction.key", "redis.lock", STATUS_LINE_FILE, "stay"),
)


class Data(NamedTuple):
    """One file or folder that hivepipe made."""

    path: str
    size_bytes: int


def data_of(place: Place) -> list[Data]:
    """Return the existing files and folders of a place."""
    found = [place.home, str(consent_path(place.home))]
    database = str(database_path(place.home))
    if database.startswith(f"{state_folder()}/databases/"):
        found.append(os.path.dirname(database))
    tree = tree_of(place.home)
    if tree:
        found += [] if is_in_project(place.home) else [f"{tree}{IN_PROJECT}"]
        found += _of_state(f"{tree}/.claude-state")
    for hive in known(place.home):  # a `git pull` may have changed the hive's file
        if hive.endswith("/.hive") and not os.path.islink(hive):
            found += [f"{hive}/{name}" for name in _OURS_OF_HIVE]
            found.append(trusted_state_folder(hive))
    return [Data(path, size_of(path)) for path in found if os.path.lexists(path)]


def _of_state(folder: str) -> list[str]:
    """Return the paths in `.claude-state` that hivepipe made; [] if the folder is a link."""
    if os.path.islink(folder):
        return []
    is_ours = read_small(f"{folder}/.gitignore") == IGNORE_ALL
    return [f"{folder}/logs", *([f"{folder}/.gitignore"] if is_ours else [])]


def holds_nothing(place: Place) -> bool:
    """Tell whether no event was ever recorded in this place, so that a deletion loses nothing."""
    home = Path(place.home)
    files = [str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()]
    if not all(name.startswith(_OF_AN_EMPTY_HOME) for name in files):
        return False
    has_events = has_spooled(place.home) or _redis_took_any(place)
    if has_events or Manifest(place.home).made() - _NO_DATA:
        return False
    database = database_path(place.home)
    return not database.exists() or is_unused(database)


def _redis_took_any(place: Place) -> bool:
    """Tell whether Redis ever accepted a job. If Redis is stopped, search its file.

    Return True also if Redis answers with an error, or if the file has the key of the job counter
    but no job, as after a kill.
    """
    if answers(place.socket):
        try:
            with connect(place.socket) as client:
                return bool(client.exists(ACCEPTED_KEY))
        except RedisError:
            return True
    home = Path(place.home)
    files = [home / "appendonly.aof", *home.glob("append*/**/*")]
    return any(
        ACCEPTED_KEY.encode() in read_bytes(path, ANY_SIZE) for path in files if path.is_file()
    )


def size_of(path: str) -> int:
    """Return the size in bytes of a file, or of all files below a folder."""
    total = os.lstat(path).st_size if not os.path.isdir(path) else 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(f"{folder}/{name}").st_size
            except OSError:
                continue
    return total
