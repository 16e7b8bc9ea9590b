"""Find, read and remove the archives of one root.

The metadata of recently used archives are cached while their files stay the same.
"""

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from itertools import groupby

import orjson

from hivepipe.archive.archive_files import META_SUFFIX, ArchiveFiles, Meta
from hivepipe.archive.found_values import Learning
from hivepipe.archive.index import Entry, Index, is_entry, key_of
from hivepipe.archive.locks import locked, secrets_stamp, wait_for_holders
from hivepipe.archive.month_folders import month_folders, remove_empty
from hivepipe.archive.naming import ArchiveName
from hivepipe.archive.totals import TotalsCache
from hivepipe.errors import ArchiveError
from hivepipe.files.folders import Folder
from hivepipe.files.manifest import Manifest
from hivepipe.files.state_cache import StateCache
from hivepipe.transcripts.lines import typed
from hivepipe.transcripts.totals import Totals

CACHED_METAS = 256
CACHED_SESSIONS = 4


class Catalog:
    """The archives below one root."""

    def __init__(self, root: str, manifest: Manifest) -> None:
        self.root = root
        self.manifest = manifest
        self.index = Index(root, manifest)
        self._totals_cache = TotalsCache()
        self._metas: StateCache[Meta | None] = StateCache(CACHED_METAS)
        self._secrets: StateCache[dict[str, tuple[str, ...]]] = StateCache(CACHED_SESSIONS)

    @contextmanager
    def opened(self, entry: Entry) -> Iterator[ArchiveFiles]:
        """Open the archive of an index entry. Raises FileNotFoundError if its folder is gone."""
        name = ArchiveName.of_path(entry["path"])
        with Folder(self.root, *name.folders) as folder:
            yield ArchiveFiles(folder, name)

    def meta(self, kept: ArchiveFiles) -> Meta | None:
        """Return the metadata, or None if they are missing or cannot be parsed.

        The metadata are cached until their file changes.
        """
        return self._metas.get(kept.name.path, kept.meta_stamp(), kept.meta)

    def totals(self, kept: ArchiveFiles) -> Totals | None:
        """Return an archive's totals, or None if the archive has no commit record.

        The caller must not change the totals.
        """
        offsets = kept.offsets()
        if offsets is None:
            return None
        counted = self._totals_cache.take(kept, offsets)
        self._totals_cache.keep(kept, counted)
        return counted.totals

    def meta_of(self, entry: Entry) -> Meta | None:
        """Return the metadata of an entry's archive, or None if they cannot be read."""
        try:
            with self.opened(entry) as kept:
                return self.meta(kept)
        except OSError:
            return None

    def of_session(self, session: str) -> dict[str, Entry]:
        """Return key -> entry of the archives of a session and its subagents."""
        entry = self.index.entries().get(session)
        own = {session: entry} if entry else {}
        return own | self.of_subagents(session)

    def of_subagents(self, session: str) -> dict[str, Entry]:
        return dict(sorted(self.index.of_agents(session).items()))

    def not_described(self) -> dict[str, Entry]:
        """Return key -> entry of sessions whose metadata must be written again.

        The metadata of such a session are not newer than those of one of its subagents, and so may
        lack the subagent's last lines. An equal time does not count as newer, because two files
        that are written at once may have the same time.
        """
        entries, newest = self.index.entries(), dict[str, int]()
        for key, entry in entries.items():
            session, _, agent = key.partition("/")
            if agent and session in entries:
                newest[session] = max(newest.get(session, 0), self._described_ns(entry))
        return {
            session: entries[session]
            for session, at_ns in sorted(newest.items())
            if self._described_ns(entries[session]) <= at_ns
        }

    def _described_ns(self, entry: Entry) -> int:
        with suppress(OSError), self.opened(entry) as kept:
            return kept.described_ns()
        return 0

    def known_of(self, session: str) -> list[str]:
        """Return the learned secrets of all archives of a session, for `Redactor.of_session`.

        Those of each archive are read once, and again after any archive has learned a secret.
        """
        read: dict[str, tuple[str, ...]] = self._secrets.get(
            session, secrets_stamp(self.root), dict
        )
        paths = [entry["path"] for entry in self.of_session(session).values()]
        for path, known in self._secrets_of([path for path in paths if path not in read]):
            read[path] = known
        return [*dict.fromkeys(each for path in paths for each in read.get(path, ()))]

    def _secrets_of(self, paths: list[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield (path, learned secrets) of each archive that can be read."""
        for folders, names in groupby(
            sorted(paths), lambda path: ArchiveName.of_path(path).folders
        ):
            with suppress(OSError), Folder(self.root, *folders) as folder:
                for path in names:
                    with suppress(OSError):
                        kept = ArchiveFiles(folder, ArchiveName.of_path(path))
                        yield path, Learning.of(kept).known

    def find(self, start: str) -> tuple[str, Entry]:
        """Return the archive with the id `start`, or else the only one whose id begins with it.

        Raises ArchiveError if there is none, or more than one.
        """
        entries = self.index.entries()
        found = [key for key in entries if start in (key, entries[key]["agent_id"])] or [
            key
            for key, entry in entries.items()
            if (entry["agent_id"] or entry["session_id"]).startswith(start)
        ]
        if not found:
            text = f"no archive of a session or subagent whose id begins with {start}"
            raise ArchiveError(f"{text}: see `hivepipe archive list --agents`")
        if len(found) > 1:
            some = ", ".join(sorted(found)[:5])
            raise ArchiveError(f"more than one archive has an id that begins with {start}: {some}")
        return found[0], entries[found[0]]

    def on_disk(self) -> Iterator[tuple[str, Entry]]:
        """Yield (key, entry) of each archive that has metadata and is in the manifest."""
        made = self.manifest.made()
        for entry, kept in self.each_on_disk():
            if kept.name.path in made:
                yield key_of(entry), entry

    def each_on_disk(self) -> Iterator[tuple[Entry, ArchiveFiles]]:
        """Yield (entry, files) of each archive with metadata, in the manifest or not."""
        for names in month_folders(self.root):
            with suppress(FileNotFoundError), Folder(self.root, *names) as folder:
                for file in folder.names():
                    if not file.endswith(META_SUFFIX):
                        continue
                    kept = ArchiveFiles(folder, ArchiveName(names, file.removesuffix(META_SUFFIX)))
                    meta = kept.meta()
                    if meta is None or kept.lines_status() is None:
                        continue
                    entry = entry_of(meta, kept)
                    if is_entry(entry):
                        yield entry, kept

    def holds(self, entry: Entry, is_held: Callable[[bytes], bool]) -> bool:
        """Tell whether `is_held` is true for any line of an archive, or for its metadata.

        Return False if the archive cannot be read.
        """
        with suppress(OSError), self.opened(entry) as kept:
            if is_held(orjson.dumps(kept.meta() or {})):
                return True
            with kept.open_to_read() as lines:
                return any(map(is_held, lines))
        return False

    def remove_sessions(self, sessions: Collection[str]) -> list[str]:
        """Remove the archives of sessions and their subagents; return their paths.

        Archives that are not in the index are removed, too. A session that continues is archived
        again unless the caller has recorded it as forgotten.
        """
        if not os.path.isdir(self.root):
            return []
        wait_for_holders(self.root)
        known = {**dict(self.on_disk()), **self.index.entries()}
        removed = []
        for key, entry in sorted(known.items()):
            if entry["session_id"] in sessions:
                with locked(self.root, key):
                    self._remove(key, entry)
                removed.append(entry["path"])
        return removed

    def remove_if_older(self, key: str, before: float) -> bool:
        """Remove an archive that has not grown since `before`; return whether it was removed.

        `before` is in seconds since 1970. An archive that was edited is kept, because a person
        works with it.
        """
        with locked(self.root, key):
            entry = self.index.entries().get(key)
            if entry is None:
                return False
            with suppress(FileNotFoundError), self.opened(entry) as kept:
                status = kept.lines_status()
                if status is not None and (status.st_mtime >= before or not kept.is_as_written()):
                    return False
            self._remove(key, entry)
        return True

    def _remove(self, key: str, entry: Entry) -> None:
        with suppress(FileNotFoundError), self.opened(entry) as kept:
            kept.remove()
            self._totals_cache.drop(kept)
        with suppress(FileNotFoundError):
            remove_empty(self.root, *ArchiveName.of_path(entry["path"]).folders)
        self.manifest.disown(ArchiveName.of_path(entry["path"]).path)
        self.index.change({key: None})


def entry_of(meta: Meta, kept: ArchiveFiles) -> Entry:
    return {
        "kind": typed(meta, "kind", str),
        "session_id": typed(meta, "session_id", str),
        "agent_id": typed(meta, "task_id", str),
        "agent_type": typed(meta, "agent_type", str),
        "started_at": kept.name.started_at,
        "path": kept.path,
    }
