"""The files that `uninstall --purge` deletes, and the files that it keeps, with reasons."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hivepipe.db.location import SUFFIXES, database_path, files_of_database
from hivepipe.files.known_hives import known, trusted_state_folder
from hivepipe.files.manifest import FILE, SESSION_FILE, Manifest
from hivepipe.files.regular_file import read_bytes
from hivepipe.home import (
    IN_PROJECT,
    Place,
    is_in_project,
    kept_folder,
    short_hash,
    state_folder,
    tree_of,
)
from hivepipe.install.data import size_of
from hivepipe.install.export_files import ExportFiles
from hivepipe.queue.spool import LOST, NOTES
from hivepipe.queue.spooled import own_folders
from hivepipe.stack.home_files import has_own_ignore, why_not_ours
from hivepipe.stack.home_marks import is_marked
from hivepipe.stack.last_home import last_home
from hivepipe.summaries.consent import consent_path

_CARD = "worker.json"


class Left(NamedTuple):
    """A file, or a hive worker's folder, that is not deleted."""

    path: str
    why: str


class Holdings(NamedTuple):
    """Files and worker folders that hivepipe made (`own`), and the files beside them that stay."""

    own: list[str]
    left: list[Left]

    def sizes(self) -> list[tuple[str, int]]:
        """Return path and size in bytes of each of hivepipe's files."""
        return [(path, size_of(path)) for path in self.own if os.path.lexists(path)]


def holdings(place: Place) -> Holdings:
    """Return a place's files: those that hivepipe made, and those to keep; verify the archives."""
    found = [*_each(place)]
    own = [path for path, why in found if not why]
    return Holdings(own, [Left(path, why) for path, why in found if why])


def _each(place: Place) -> Iterator[tuple[str, str]]:
    if not _is_used(place):
        if os.path.lexists(place.home):
            yield place.home, "hivepipe never worked in this folder"
        return
    if is_in_project(place.home) and os.path.isdir(newer := last_home(place.project)):
        yield newer, "hivepipe 1.0.0 does not use it: run `uninstall --purge` again to delete it"
    manifest = Manifest(place.home)
    kept = kept_folder(place.home)
    yield from _state_ignore(place.home, manifest)
    yield from _session_file(kept, manifest)
    if not os.path.islink(kept) and not os.path.islink(os.path.dirname(kept)):
        yield from ExportFiles(kept, manifest).files()
    yield from _hive_workers(place.home)
    yield from ((path, "") for path in _elsewhere(place) if os.path.isfile(path))
    yield from ((path, "") for path in _spare_events(place.home))
    for folder, _, names in os.walk(place.home):
        if f"{folder}/".startswith(f"{kept}/"):
            continue
        for path in (f"{folder}/{name}" for name in sorted(names)):
            name = os.path.relpath(path, place.home)
            yield path, "" if name == FILE else why_not_ours(place.home, name)


def _is_used(place: Place) -> bool:
    """Tell whether this home is hivepipe's: marked as a home, or missing, or empty.

    Any other folder may be a predecessor's home. A link is not hivepipe's either.
    """
    if os.path.islink(place.home):
        return False
    names = set(os.listdir(place.home)) if os.path.isdir(place.home) else set()
    return not names - {".gitignore"} or is_marked(place.home)


def _state_ignore(home: str, manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yield (path of `.claude-state/.gitignore`, "") if hivepipe made this file.

    1.0.0, which had no manifest, made it in each project.
    """
    folder = os.path.dirname(kept_folder(home))
    is_older = is_in_project(home) and not manifest.fact("installed_at")
    is_made = bool(tree_of(home)) and (is_older or manifest.made_at("../.gitignore") is not None)
    if is_made and has_own_ignore(folder):
        yield f"{folder}/.gitignore", ""


def _session_file(kept: str, manifest: Manifest) -> Iterator[tuple[str, str]]:
    path = os.path.normpath(f"{kept}/{SESSION_FILE}")
    if manifest.made_at(SESSION_FILE) is not None and os.path.isfile(path):
        is_own = not os.path.islink(path) and manifest.wrote(SESSION_FILE, read_bytes(path))
        yield path, "" if is_own else "it was changed since hivepipe wrote it"


def _hive_workers(home: str) -> Iterator[tuple[str, str]]:
    """Yield the folders and files of hives, each with the reason to keep it, or ""."""
    for hive in known(home):
        if not hive.endswith("/.hive") or os.path.islink(hive):
            continue
        state = trusted_state_folder(hive)
        for kind in ("workers", "archive"):
            for path in _folders_in(f"{hive}/{kind}"):
                is_own = os.path.isfile(f"{state}/{kind}/{path.name}/{_CARD}")
                yield str(path), "" if is_own else "hivepipe did not start this worker"
            for path in _folders_in(f"{state}/{kind}"):
                yield str(path), ""
        files = [str(path) for path in sorted(Path(state).glob("*")) if path.is_file()]
        yield from ((path, "") for path in (*files, f"{state}.lock"))


def _folders_in(folder: str) -> list[Path]:
    if os.path.islink(folder) or not os.path.isdir(folder):
        return []
    found = (path for path in Path(folder).iterdir() if not path.is_symlink())
    return sorted(path for path in found if path.is_dir())


def _elsewhere(place: Place) -> Iterator[str]:
    yield str(consent_path(place.home))
    for folder in _database_folders(place.home):
        yield from (f"{folder}/{name}" for name in files_of_database(Path(folder, "hive.db")))
        if has_own_ignore(folder):
            yield f"{folder}/.gitignore"


def _spare_events(home: str) -> Iterator[str]:
    """Yield the files of events that were spooled outside the home, which was unwritable."""
    for folder in own_folders(home)[1:]:
        for path in sorted(Path(folder).rglob("*")):
            name = os.path.relpath(path, folder)
            if name.startswith(("spool/", NOTES, LOST)) and not why_not_ours(folder, name):
                yield str(path)


def _database_folders(home: str) -> list[str]:
    """Return the folder that hivepipe made for a database outside the home, as a list, or []."""
    folder = os.path.dirname(database_path(home))
    is_made = folder in (
        f"{tree_of(home)}{IN_PROJECT}",
        f"{state_folder()}/databases/{short_hash(home)}",
    )
    return [folder] if is_made and folder != home else []


def bases_of(place: Place) -> list[str]:
    """Return the folders that hivepipe may have made, which are removed if they are empty."""
    if not _is_used(place):
        return []
    kept = kept_folder(place.home)
    hives = [hive for hive in known(place.home) if hive.endswith("/.hive")]
    found = [place.home, kept, os.path.dirname(consent_path(place.home))]
    for folder in own_folders(place.home)[1:]:
        found += [os.path.dirname(folder), folder]
    for hive in hives:
        state = trusted_state_folder(hive)
        found += [f"{folder}/{kind}" for folder in (hive, state) for kind in ("workers", "archive")]
        found += [f"{hive}/state", state]
    if kept.endswith("/.claude-state/logs"):
        found.append(os.path.dirname(kept))
    return found + _database_folders(place.home)


def delete(own: list[str], bases: list[str]) -> None:
    """Delete these files, the manifest last, and then `bases` and folders below if empty."""
    for path in sorted(own, key=lambda path: path.endswith(f"/{FILE}")):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            for suffix in SUFFIXES if path.endswith(".db") else ("",):
                Path(f"{path}{suffix}").unlink(missing_ok=True)  # readers create these files, too
    inner = {folder for base in bases[:1] for folder, _, _ in os.walk(base)}  # folders of the home
    folders = {os.path.dirname(path) for path in own} | {*bases} | inner
    for folder in sorted(folders, key=len, reverse=True):
        _remove_empty(folder, bases)


def _remove_empty(folder: str, bases: list[str]) -> None:
    while any(f"{folder}/".startswith(f"{base}/") for base in bases):
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            pass
        except OSError:
            return
        folder = os.path.dirname(folder)
