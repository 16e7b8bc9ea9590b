"""The archives of one root: a transcript grows its archive; what is there can be found."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from hivepipe.archive.folders import Folder, make_root, month_folders, remove_empty
from hivepipe.archive.growth import Portion, Redact, portions
from hivepipe.archive.index import Entry, Index
from hivepipe.archive.kept import META_SUFFIX, Kept, Meta, Reach
from hivepipe.archive.locks import locked
from hivepipe.archive.naming import ArchiveName, is_archive_path
from hivepipe.archive.sources import Source
from hivepipe.archive.tallies import Tallies
from hivepipe.errors import ArchiveError, StoppedError
from hivepipe.transcripts.tally import Tally

MAIN, SUBAGENT = "main-session", "subagent"
METAS_AT_HAND = 256

# A tally and those of its subagents -> what people read of it
Describe = Callable[[Tally, list[Tally]], dict[str, Any]]
# What came, and the path of its archive; after a kill once more
Tell = Callable[[Source, str, Portion], None]


@dataclass(frozen=True, slots=True)
class Desk:
    """What an archive asks of whoever makes it grow."""

    redact: Redact
    describe: Describe
    tell: Tell = lambda _source, _path, _portion: None
    should_stop: Callable[[], bool] = lambda: False

    def check_stop(self) -> None:
        """Raise StoppedError when told to stop."""
        if self.should_stop():
            raise StoppedError


class Archives:
    """What is kept below one root."""

    def __init__(self, root: str) -> None:
        """Nothing is made or read yet."""
        self.root = root
        self.index = Index(root)
        self._tallies = Tallies()
        self._metas: OrderedDict[str, tuple[tuple[int, ...], Meta]] = OrderedDict()

    # ---- growing

    def extend(self, source: Source, desk: Desk, *, settled: bool = False) -> int:
        """Append what a transcript has and its archive has not; return how many lines.

        StoppedError: told to stop in the middle, what came until then is kept. `settled`: the
        transcript will not grow at once, so that one without any time in it may be named too.
        """
        make_root(self.root)
        with locked(self.root, source.key, desk.check_stop):
            name = self._name(source, settled)
            if name is None:
                return 0
            with Folder(self.root, *name.folders, make=True) as folder:
                lines = self._extend(Kept(folder, name), source, desk)
        if source.agent:  # also if it brought nothing: who came before may have been killed here
            self._describe_session(source.session, desk)
        self.index.tidy()
        return lines

    def _extend(self, kept: Kept, source: Source, desk: Desk) -> int:
        meta = self._meta(kept)
        reach = Reach.of_meta(meta) if meta else None
        lines = 0
        for portion in portions(kept, reach, source, self._tallies, desk.redact, desk.should_stop):
            who = _identity(source, meta)
            self._note(source.key, entry_of(who, kept))
            desk.tell(source, f"{self.root}/{kept.path}", portion)
            described = desk.describe(portion.counted.tally, self._subagents(source.key))
            meta = {**who, **described, **who, **portion.after.as_meta()}
            if portion.surplus:
                kept.write_surplus(portion.surplus)
            self._write_meta(kept, meta)
            if reach and reach.surplus and not portion.surplus:
                kept.remove_surplus()
            reach = portion.after
            self._tallies.keep(kept, portion.counted)
            lines += portion.lines
        if meta and reach and source.key not in self.index.entries():
            self._note(source.key, entry_of(meta, kept))
        return lines

    def has_all_of(self, source: Source) -> bool:
        """Is the archive as long as the transcript? The last look before it is read at all."""
        entry = self.index.entries().get(source.key)
        meta = self.meta_of(entry) if entry else None
        reach = Reach.of_meta(meta) if meta else None
        return (
            reach is not None
            and reach.source_path == source.path
            and reach.source_bytes == source.status.st_size
        )

    def _name(self, source: Source, settled: bool) -> ArchiveName | None:
        """Return what the archive is or will be called; None: it has no time to be named by."""
        entry = self.index.entries().get(source.key)
        if entry:
            return ArchiveName.of_path(entry["path"])
        head = source.head()
        time = head.time or (_changed_at(source) if settled and head.lines else "")
        if not time:
            return None
        name = ArchiveName.made(source.session, source.agent, source.agent_type, time)
        return name.of_another(source.session) if self._is_anothers(name, source) else name

    def _is_anothers(self, name: ArchiveName, source: Source) -> bool:
        """Does a subagent of the same id, in another session, have this name?"""
        try:
            with Folder(self.root, *name.folders) as folder:
                meta = Kept(folder, name).meta() or {}
        except FileNotFoundError:
            return False
        return _text(meta, "session_id") not in ("", source.session)

    def _note(self, key: str, entry: Entry) -> None:
        if self.index.entries().get(key) != entry:
            self.index.change({key: entry})

    def _describe_session(self, session: str, desk: Desk) -> None:
        """A session's tokens and files include those of its subagents, one of which has grown."""
        entry = self.index.entries().get(session)
        if entry is None:
            return
        with locked(self.root, session, desk.check_stop), self.opened(entry) as kept:
            meta = self._meta(kept)
            tally = self._tally(kept)
            if meta is None or tally is None:
                return
            described = desk.describe(tally, self._subagents(session))
            said = {**meta, **described, "session_id": session}
            if said != meta:
                self._write_meta(kept, said)

    def _subagents(self, session: str) -> list[Tally]:
        """Return what the subagents of a session add up to; of a subagent there are none."""
        found = []
        for key, entry in sorted(self.index.entries().items()):
            if key.startswith(f"{session}/"):
                with suppress(FileNotFoundError), self.opened(entry) as kept:
                    found.append(self._tally(kept))
        return [tally for tally in found if tally]

    def _tally(self, kept: Kept) -> Tally | None:
        """Return what an archive adds up to, for reading only."""
        meta = self._meta(kept)
        reach = Reach.of_meta(meta) if meta else None
        if reach is None:
            return None
        counted = self._tallies.take(kept, reach)
        self._tallies.keep(kept, counted)
        return counted.tally

    def _meta(self, kept: Kept) -> Meta | None:
        """Return the metadata, read again only when they have changed."""
        stamp, path = kept.meta_stamp(), kept.name.path
        known = self._metas.get(path)
        if known and stamp and known[0] == stamp:
            return known[1]
        meta = kept.meta()
        if meta is not None:
            self._remember(path, stamp, meta)
        return meta

    def _write_meta(self, kept: Kept, meta: Meta) -> None:
        kept.write_meta(meta)
        self._remember(kept.name.path, kept.meta_stamp(), meta)

    def _remember(self, path: str, stamp: tuple[int, ...], meta: Meta) -> None:
        self._metas[path] = (stamp, meta)
        if len(self._metas) > METAS_AT_HAND:
            self._metas.popitem(last=False)

    # ---- looking

    @contextmanager
    def opened(self, entry: Entry) -> Iterator[Kept]:
        """Open the archive of an entry; FileNotFoundError: its folder is gone."""
        name = ArchiveName.of_path(entry["path"])
        with Folder(self.root, *name.folders) as folder:
            yield Kept(folder, name)

    def meta_of(self, entry: Entry) -> Meta | None:
        """Return the metadata of an entry's archive; None: they are gone, or cannot be read."""
        try:
            with self.opened(entry) as kept:
                return self._meta(kept)
        except OSError:
            return None

    def find(self, start: str) -> tuple[str, Entry]:
        """Return the one archive whose session or subagent begins so; ArchiveError otherwise."""
        entries = self.index.entries()
        found = [key for key in entries if key == start or entries[key]["agent_id"] == start]
        if not found:
            found = [
                key
                for key, entry in entries.items()
                if (entry["agent_id"] or entry["session_id"]).startswith(start)
            ]
        if len(found) != 1:
            many = ", ".join(sorted(found)[:5])
            raise ArchiveError(
                f"more than one archive begins with {start}: {many}"
                if found
                else f"no archive of a session or subagent {start}"
            )
        return found[0], entries[found[0]]

    def on_disk(self) -> Iterator[tuple[str, Entry]]:
        """Yield every archive that has metadata, whatever the index says."""
        for names in month_folders(self.root):
            with suppress(FileNotFoundError), Folder(self.root, *names) as folder:
                for file in folder.names():
                    if not file.endswith(META_SUFFIX):
                        continue
                    kept = Kept(folder, ArchiveName(names, file.removesuffix(META_SUFFIX)))
                    meta = kept.meta()
                    if meta and kept.lines_status() and is_archive_path(kept.path):
                        yield key_of(meta), entry_of(meta, kept)

    # ---- forgetting

    def remove_session(self, session: str) -> list[str]:
        """Remove the archives of a session and its subagents; return which there were.

        Also those that the index does not know. A session that goes on is archived anew.
        """
        known = {**dict(self.on_disk()), **self.index.entries()}
        removed = []
        for key, entry in sorted(known.items()):
            if entry["session_id"] != session:
                continue
            with locked(self.root, key):
                with suppress(FileNotFoundError), self.opened(entry) as kept:
                    kept.remove()
                    self._metas.pop(kept.name.path, None)
                    self._tallies.drop(kept)
                with suppress(FileNotFoundError):
                    remove_empty(self.root, *ArchiveName.of_path(entry["path"]).folders)
                self.index.change({key: None})
            removed.append(entry["path"])
        return removed


def _identity(source: Source, known: Meta | None) -> Meta:
    """Return whose archive it is: what its first metadata said stays."""
    if not source.agent:
        return {"kind": MAIN, "session_id": source.session}
    return {
        "kind": SUBAGENT,
        "task_id": source.agent,
        "agent_type": (known or {}).get("agent_type") or source.agent_type,
        "parent_session_id": source.session,
        "session_id": source.session,
    }


def key_of(meta: Meta) -> str:
    """Return what an archive is known by, from its metadata."""
    session, agent = _text(meta, "session_id"), _text(meta, "task_id")
    return f"{session}/{agent}" if agent else session


def entry_of(meta: Meta, kept: Kept) -> Entry:
    """Return the index's entry of an archive."""
    return {
        "kind": _text(meta, "kind"),
        "session_id": _text(meta, "session_id"),
        "agent_id": _text(meta, "task_id"),
        "agent_type": _text(meta, "agent_type"),
        "started_at": kept.name.started_at,
        "path": kept.path,
    }


def _text(meta: Meta, name: str) -> str:
    value = meta.get(name)
    return value if isinstance(value, str) else ""


def _changed_at(source: Source) -> str:
    return datetime.fromtimestamp(source.status.st_mtime, UTC).isoformat()
