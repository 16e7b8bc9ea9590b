"""Find archives with lines, and summaries, that the search index does not have yet.

A folder is skipped if it has not changed since all of its archives were indexed. In a changed
folder, unchanged archives are skipped. So the cost of a search depends on the new lines only.
"""

import time
import zlib
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass

from hivepipe.archive.archive_files import ArchiveFiles
from hivepipe.archive.archives import Archives
from hivepipe.archive.index import Entry
from hivepipe.archive.naming import ArchiveName
from hivepipe.archive.search.index import Archived, FolderState, SearchIndex
from hivepipe.files.folders import Folder
from hivepipe.operations.search import archived_of, catch_up, index_path, new_summaries

SETTLED_NS = 1_000_000_000  # two changes within a tick of the clock have the same time


@dataclass(frozen=True, slots=True)
class ChangedFolder:
    """The archives of one folder that may have new lines.

    `state` is None if the folder changed just now, or if an archive cannot be read. In both cases
    the next search checks the folder again.
    """

    name: str
    state: FolderState | None
    archived: list[Archived]


@dataclass(frozen=True, slots=True)
class Unindexed:
    """Summaries to index, and archives that may have new lines: those whose folder changed."""

    summaries: list[Archived]
    folders: list[ChangedFolder]

    @property
    def archived(self) -> list[Archived]:
        """Return the summaries to index, then the archives, most recent first."""
        found = [each for folder in self.folders for each in folder.archived]
        found.sort(key=lambda each: each.began, reverse=True)
        return [*self.summaries, *found]

    @property
    def is_settled(self) -> bool:
        """Tell whether every folder has a state, so that the next check can skip all folders."""
        return all(each.state for each in self.folders)

    def missing_bytes(self, index: SearchIndex) -> int:
        """Return how many bytes of the summaries and archives are not indexed."""
        return sum(map(index.missing_bytes, self.archived))


def unindexed(home: str, index: SearchIndex, archives: Archives) -> Unindexed:
    """Return the unindexed summaries and the changed archives.

    If lines were replaced after they were indexed, the index is emptied first.
    """
    found = _find_unindexed(home, index, archives)
    if any(map(index.has_another_edition, found.archived)):
        index.start_empty()
        found = _find_unindexed(home, index, archives)
    return found


def index_new(
    index: SearchIndex,
    found: Unindexed,
    progress: Callable[[int], None] = lambda _bytes: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> int:
    """Index new lines of archives, until `should_stop`; return the number of bytes left."""
    left = catch_up(index, found.archived, progress, should_stop)
    states = {
        each.name: each.state
        for each in found.folders
        if each.state and not any(map(index.missing_bytes, each.archived))
    }
    if states:
        index.keep_folders(states)
    return left


def _find_unindexed(home: str, index: SearchIndex, archives: Archives) -> Unindexed:
    known = index.folders()
    by_folder: dict[str, dict[str, Entry]] = {}
    for key, entry in archives.index.entries().items():
        by_folder.setdefault(entry["path"].rpartition("/")[0], {})[key] = entry
    folders = []
    for name, entries in by_folder.items():
        # the folder may be gone
        with suppress(OSError), Folder(archives.root, *name.split("/")) as folder:
            changed = _changed(archives, name, folder, entries, known.get(name))
            folders += [changed] if changed else []
    return Unindexed(new_summaries(home, index), folders)


def _changed(
    archives: Archives,
    name: str,
    folder: Folder,
    entries: dict[str, Entry],
    known: FolderState | None,
) -> ChangedFolder | None:
    """Return a folder with its changed archives, or None if `known` is the folder's state."""
    keys = zlib.crc32("\n".join(entries).encode("utf-8", "surrogatepass"))
    state = FolderState(folder.changed_ns(), keys)
    if state == known:
        return None
    is_later = known is not None and known.keys == keys and known.changed_ns < state.changed_ns
    since_ns = known.changed_ns - SETTLED_NS if known and is_later else 0
    found, can_read_all = [], True
    for key, entry in entries.items():
        try:
            kept = ArchiveFiles(folder, ArchiveName.of_path(entry["path"]))
            if kept.changed_ns() >= since_ns and (each := archived_of(archives, key, entry, kept)):
                found.append(each)
        except OSError:
            can_read_all = False
    is_settled = time.time_ns() - state.changed_ns > SETTLED_NS
    return ChangedFolder(name, state if is_settled and can_read_all else None, found)


def update_search_index(home: str, archives: Archives, should_stop: Callable[[], bool]) -> None:
    """Update the search index of a home, if the home has one. Raise SearchError on failure."""
    if index_path(home).exists():
        with closing(SearchIndex(index_path(home))) as index:
            index_new(index, unindexed(home, index, archives), should_stop=should_stop)
