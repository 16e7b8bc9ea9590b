"""What is there: every archive of a root can be found, read and removed.

The metadata of the last few are at hand as long as their files do not change: a turn reads nothing
that it need not.
"""

import os
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress

import orjson

from hivepipe.archive.index import Entry, Index, is_entry, key_of
from hivepipe.archive.kept import META_SUFFIX, Kept, Meta, Stamp
from hivepipe.archive.learning import Learning
from hivepipe.archive.locks import let_everybody_finish, locked
from hivepipe.archive.months import month_folders, remove_empty
from hivepipe.archive.naming import ArchiveName
from hivepipe.archive.tallies import Tallies
from hivepipe.errors import ArchiveError
from hivepipe.folders import Folder
from hivepipe.ownership.manifest import Manifest
from hivepipe.transcripts.tally import Tally

AT_HAND = 256


class Shelf:
    """What is kept below one root."""

    def __init__(self, root: str, manifest: Manifest) -> None:
        """Nothing is made or read yet."""
        self.root = root
        self.manifest = manifest
        self.index = Index(root, manifest)
        self._tallies = Tallies()
        self._metas: OrderedDict[str, tuple[Stamp, Meta]] = OrderedDict()

    @contextmanager
    def opened(self, entry: Entry) -> Iterator[Kept]:
        """Open the archive of an entry; FileNotFoundError: its folder is gone."""
        name = ArchiveName.of_path(entry["path"])
        with Folder(self.root, *name.folders) as folder:
            yield Kept(folder, name)

    def meta(self, kept: Kept) -> Meta | None:
        """Return the metadata of an archive."""
        stamp = kept.meta_stamp()
        known = self._metas.get(kept.name.path)
        if known and known[0] == stamp:
            return known[1]
        meta = kept.meta()
        if meta is not None:
            self.remember(kept, stamp, meta)
        return meta

    def remember(self, kept: Kept, stamp: Stamp, meta: Meta) -> None:
        """Have metadata at hand as long as their file is the same."""
        self._metas[kept.name.path] = (stamp, meta)
        self._metas.move_to_end(kept.name.path)
        if len(self._metas) > AT_HAND:
            self._metas.popitem(last=False)

    def tally(self, kept: Kept) -> Tally | None:
        """Return what an archive adds up to, for reading only."""
        reach = kept.reach()
        if reach is None:
            return None
        counted = self._tallies.take(kept, reach)
        self._tallies.keep(kept, counted)
        return counted.tally

    def meta_of(self, entry: Entry) -> Meta | None:
        """Return the metadata of an entry's archive; None: they are gone, or cannot be read."""
        try:
            with self.opened(entry) as kept:
                return self.meta(kept)
        except OSError:
            return None

    def of_session(self, session: str) -> dict[str, Entry]:
        """Return the entries of a session and its subagents, by their keys."""
        entry = self.index.entries().get(session)
        own = {session: entry} if entry else {}
        return own | self.of_subagents(session)

    def of_subagents(self, session: str) -> dict[str, Entry]:
        """Return the entries of a session's subagents, by their keys."""
        entries = self.index.entries()
        keys = [key for key in entries if key.startswith(f"{session}/")]
        return {key: entries[key] for key in sorted(keys)}

    def known_of(self, session: str) -> list[str]:
        """Return what was found in any archive of a session, as `Redactor.of_session` takes it."""
        known: dict[str, None] = {}
        for entry in self.of_session(session).values():
            with suppress(OSError), self.opened(entry) as kept:
                known |= dict.fromkeys(Learning.of(kept).known)
        return list(known)

    def find(self, start: str) -> tuple[str, Entry]:
        """Return the one archive whose session or subagent begins so; ArchiveError otherwise."""
        entries = self.index.entries()
        found = [key for key in entries if start in (key, entries[key]["agent_id"])] or [
            key
            for key, entry in entries.items()
            if (entry["agent_id"] or entry["session_id"]).startswith(start)
        ]
        if not found:
            raise ArchiveError(f"no archive of a session or subagent {start}")
        if len(found) > 1:
            some = ", ".join(sorted(found)[:5])
            raise ArchiveError(f"more than one archive begins with {start}: {some}")
        return found[0], entries[found[0]]

    def on_disk(self) -> Iterator[tuple[str, Entry]]:
        """Yield every archive of ours that has metadata, whatever the index says."""
        made = self.manifest.made()
        for entry, kept in self.each_on_disk():
            if kept.name.path in made:
                yield key_of(entry), entry

    def each_on_disk(self) -> Iterator[tuple[Entry, Kept]]:
        """Yield whatever looks like an archive of ours, by its metadata."""
        for names in month_folders(self.root):
            with suppress(FileNotFoundError), Folder(self.root, *names) as folder:
                for file in folder.names():
                    if not file.endswith(META_SUFFIX):
                        continue
                    kept = Kept(folder, ArchiveName(names, file.removesuffix(META_SUFFIX)))
                    meta = kept.meta()
                    if meta is None or kept.lines_status() is None:
                        continue
                    entry = entry_of(meta, kept)
                    if is_entry(entry):
                        yield entry, kept

    def holds(self, entry: Entry, is_held: Callable[[bytes], bool]) -> bool:
        """Is something in any line of an archive, or in its metadata?"""
        with suppress(OSError), self.opened(entry) as kept:
            if is_held(orjson.dumps(kept.meta() or {})):
                return True
            with kept.open_to_read() as lines:
                return any(map(is_held, lines))
        return False

    def remove_sessions(self, sessions: Collection[str]) -> list[str]:
        """Remove the archives of sessions and their subagents; return which there were.

        Also those that the index does not know. A session that goes on is archived anew, unless it
        is said before to be forgotten.
        """
        if not os.path.isdir(self.root):
            return []
        let_everybody_finish(self.root)
        known = {**dict(self.on_disk()), **self.index.entries()}
        removed = []
        for key, entry in sorted(known.items()):
            if entry["session_id"] in sessions:
                with locked(self.root, key):
                    self._remove(key, entry)
                removed.append(entry["path"])
        return removed

    def remove_if_older(self, key: str, before: float) -> bool:
        """Remove an archive that has not grown since `before` (seconds of 1970); was it so?

        One that is not as it was written stays: somebody works with it.
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
            self._tallies.drop(kept)
        with suppress(FileNotFoundError):
            remove_empty(self.root, *ArchiveName.of_path(entry["path"]).folders)
        self.manifest.disown(ArchiveName.of_path(entry["path"]).path)
        self.index.change({key: None})


def entry_of(meta: Meta, kept: Kept) -> Entry:
    """Return the index's entry of an archive."""
    return {
        "kind": text_of(meta, "kind"),
        "session_id": text_of(meta, "session_id"),
        "agent_id": text_of(meta, "task_id"),
        "agent_type": text_of(meta, "agent_type"),
        "started_at": kept.name.started_at,
        "path": kept.path,
    }


def text_of(meta: Meta, name: str) -> str:
    """Return a text of the metadata; empty where there is none."""
    value = meta.get(name)
    return value if isinstance(value, str) else ""
