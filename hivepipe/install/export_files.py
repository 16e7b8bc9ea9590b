"""Decide which files in the folder of exports hivepipe made, by the manifest."""

import re
from collections.abc import Iterator
from pathlib import Path

from hivepipe.archive.archive_files import ArchiveFiles
from hivepipe.archive.naming import ArchiveName
from hivepipe.files import logs
from hivepipe.files.exports import Owner, owner_of
from hivepipe.files.folders import Folder
from hivepipe.files.manifest import Manifest
from hivepipe.files.regular_file import read_text
from hivepipe.stack.registration import IGNORE_ALL

_HELPERS = re.compile(
    r"\.archive-index\.new|\.archive-locks/([0-9a-f]{2}|index|secrets)|\.(skill-usage|cleanup)\.lock"
    r"|\.(archive-index|skill-usage|skill-usage-index)\.json\.tmp",
    re.ASCII,
)
_OF_AN_ARCHIVE = re.compile(
    r"\.?(?P<stem>[^/]+?)(\.jsonl|\.jsonl\.gz|\.meta\.json|\.reach|\.tally|\.surplus|\.learned)(\.tmp)?"
)


class ExportFiles:
    """The files below the folder of exports. Each archive is read once to verify its content."""

    def __init__(self, root: str, manifest: Manifest) -> None:
        self._root = root
        self._manifest = manifest
        self._archives: dict[str, str] = {}

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield each file with the reason why it is kept, or "" if hivepipe made it."""
        aside = set(self._manifest.renamed().values())
        for path in sorted(Path(self._root).rglob("*")):
            if path.is_dir() and not path.is_symlink():
                continue
            name = str(path.relative_to(self._root))
            if name not in aside:
                yield str(path), self._why_not_ours(name, path)

    def _why_not_ours(self, name: str, path: Path) -> str:
        if path.is_symlink() or not path.is_file():
            return "it is a link or not a regular file"
        if _HELPERS.fullmatch(name):
            return ""
        if name == ".gitignore":
            made = self._manifest.made_at(name) is not None
            return "" if made and read_text(path) == IGNORE_ALL else "hivepipe did not make it"
        if path.name.startswith(logs.NAMES) and "/" not in name:
            return "" if logs.is_own(path, self._manifest) else "hivepipe did not write all of it"
        if name.startswith(("main-session/", "subagent/")):
            return self._archive(name)
        with Folder(self._root) as folder:
            owner = owner_of(folder, self._manifest, name) if "/" not in name else Owner.OTHER
        if owner is Owner.PERSON:
            return "it was changed since hivepipe wrote it"
        return "" if owner is Owner.HIVEPIPE else "hivepipe did not make it"

    def _archive(self, name: str) -> str:
        *folders, file = name.split("/")
        found = _OF_AN_ARCHIVE.fullmatch(file)
        if not found:
            return "hivepipe did not make it"
        archive = ArchiveName(tuple(folders), found["stem"])
        if archive.path not in self._archives:
            self._archives[archive.path] = self._look_at(archive)
        return self._archives[archive.path]

    def _look_at(self, name: ArchiveName) -> str:
        if name.path not in self._manifest.made():
            return "hivepipe did not make it"
        with Folder(self._root, *name.folders) as folder:
            kept = ArchiveFiles(folder, name)
            try:
                is_whole = kept.lines_status() is None or kept.is_as_written()
            except OSError:
                is_whole = False
        return "" if is_whole else "it was changed since hivepipe wrote it"
