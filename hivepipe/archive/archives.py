"""Extends an archive from its transcript: lines first, then commit record, then metadata.

The metadata are written when the transcript is not expected to grow soon. While it grows, they are
written when the new lines have 16 times as many bytes as the metadata. A turn therefore writes
little more than its own lines, even in a long session.
"""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hivepipe.archive.append import Chunk, chunks
from hivepipe.archive.archive_files import REMOVED_LINES, ArchiveFiles, Meta
from hivepipe.archive.catalog import Catalog, entry_of
from hivepipe.archive.found_values import Learning, checksum_of, clear, is_cleared_of
from hivepipe.archive.index import Entry
from hivepipe.archive.locks import changing_secrets, locked
from hivepipe.archive.naming import ArchiveName
from hivepipe.archive.offsets import Offsets
from hivepipe.archive.sources import Source
from hivepipe.archive.totals import GROWTH_PER_SIZE
from hivepipe.errors import EditedArchiveError, StoppedError
from hivepipe.events.claude_code import clean
from hivepipe.files.change_stamp import Stamp
from hivepipe.files.folders import Folder, make_root
from hivepipe.transcripts.lines import typed
from hivepipe.transcripts.totals import Totals

if TYPE_CHECKING:
    from hivepipe.redact.redactor import Redactor

logger = logging.getLogger("hivepipe.archive")

MAIN, SUBAGENT = "main-session", "subagent"
_WHO = ("kind", "session_id", "task_id", "agent_type", "parent_session_id")

# (totals, totals of its subagents) -> metadata
Describe = Callable[[Totals, list[Totals]], dict[str, Any]]
# Called with each new chunk and the path of its archive; called again after a kill
OnChunk = Callable[[Source, str, Chunk], None]


@dataclass(frozen=True, slots=True)
class ArchiveCallbacks:
    """The functions and objects that the caller provides for extending an archive."""

    redactor: "Redactor"
    describe: Describe
    on_chunk: OnChunk = lambda _source, _path, _chunk: None
    # Called with the key of an archive and the number of its earlier lines that were redacted
    on_cleared: Callable[[str, int], None] = lambda _key, _lines: None
    is_forgotten: Callable[[str], bool] = lambda _session: False
    should_stop: Callable[[], bool] = lambda: False
    # Metadata -> more metadata, which a predecessor of hivepipe kept for this transcript
    more_metadata: Callable[[Meta], Meta] = lambda _described: {}

    def check_stop(self) -> None:
        if self.should_stop():
            raise StoppedError


class Archives(Catalog):
    """The archives below one root, with the operations that extend them."""

    def extend(
        self,
        source: Source,
        callbacks: ArchiveCallbacks,
        *,
        settled: bool = False,
        describes_session: bool = True,
    ) -> int:
        """Append the new lines of a transcript to its archive; return their number.

        `settled` means that the transcript will not grow soon. The archive's metadata are then
        updated, and an archive gets a name even if none of its lines has a time.
        `describes_session` means that new lines of a subagent also update the metadata of its
        session.

        Raises StoppedError if the process is to stop. The lines appended so far are kept.
        """
        make_root(self.root)
        with locked(self.root, source.key, callbacks.check_stop):
            # Checked under the lock, so that no other process removes the archive meanwhile
            if callbacks.is_forgotten(source.session):
                return 0
            try:
                lines, is_described = self._grow(source, callbacks, settled)
            except EditedArchiveError:
                self._abandon(source)
                lines, is_described = self._grow(source, callbacks, settled)
        if settled:
            self._clear_others(source, callbacks)
        if source.agent and describes_session and (is_described or settled):
            self.describe_again(source.session, callbacks)
        self.index.tidy()
        return lines

    def has_all_of(self, source: Source) -> bool:
        """Tell whether nothing remains to be done for the archive of a transcript.

        The archive then covers the whole transcript, judged by the transcript's size. The metadata
        belong to the same commit. The session's known secrets are redacted in the archive.
        """
        entry = self.index.entries().get(source.key)
        if entry is None:
            return False
        with suppress(OSError), self.opened(entry) as kept:
            offsets = kept.offsets()
            if offsets and offsets == Offsets.of_meta(self.meta(kept)):
                is_all = offsets.source_bytes == source.status.st_size
                return is_all and is_cleared_of(kept, self.known_of(source.session))
        return False

    def _grow(self, source: Source, callbacks: ArchiveCallbacks, settled: bool) -> tuple[int, bool]:
        """Append a transcript's new lines; return (their number, whether metadata were written).

        If the transcript is settled, known secrets are also removed from its earlier lines.
        """
        name = self._name(source, settled)
        if name is None:
            return 0, False
        with Folder(self.root, *name.folders, make=True) as folder:
            kept = ArchiveFiles(folder, name)
            lines = self._append(kept, source, callbacks)
            if settled:
                self._clear(kept, source.key, self.known_of(source.session), callbacks)
            is_described = self._describe_if_due(kept, source, callbacks, settled)
            if kept.offsets() and source.key not in self.index.entries():
                self._enter_in_index(kept, source)  # the index was rebuilt meanwhile
        return lines, is_described

    def _abandon(self, source: Source) -> None:
        """Stop extending an archive that was edited. The transcript then gets a new archive."""
        entry = self.index.entries()[source.key]
        logger.warning("%s was changed by another program: a new archive begins", entry["path"])
        self.index.change({source.key: None})
        self.manifest.disown(ArchiveName.of_path(entry["path"]).path)

    # ---- lines

    def _append(self, kept: ArchiveFiles, source: Source, callbacks: ArchiveCallbacks) -> int:
        offsets = kept.offsets()
        lines, rules = 0, None
        of_session = callbacks.redactor.of_session(self.known_of(source.session))
        before = set(of_session.known)
        for chunk in chunks(
            kept,
            offsets,
            source,
            self._totals_cache,
            of_session.redact_line,
            callbacks.redactor.redact_line,
            callbacks.should_stop,
            lambda: self._claim(kept, source),
        ):
            self._enter_in_index(kept, source)
            callbacks.on_chunk(source, f"{self.root}/{kept.path}", chunk)
            if new := [each for each in of_session.known if each not in before]:
                with changing_secrets(self.root):
                    Learning.of(kept).with_known(new).write(kept)
                before.update(new)
            if chunk.removed_lines:
                kept.write_hidden(REMOVED_LINES, chunk.removed_lines)
            if rules is None:
                rules = _rules_of(chunk.before, callbacks.redactor)
            after = replace(chunk.after, rules=rules)
            kept.write_offsets(after)
            if offsets and offsets.removed_lines and not chunk.removed_lines:
                kept.remove_hidden(REMOVED_LINES)
            offsets = after
            self._totals_cache.keep(kept, chunk.counted)
            lines += chunk.lines
        return lines

    def _name(self, source: Source, settled: bool) -> ArchiveName | None:
        """Return the archive's recorded or new name; None if no time is known for a new one."""
        entry = self.index.entries().get(source.key)
        if entry:
            return ArchiveName.of_path(entry["path"])
        head = source.head()
        time = head.time or source.started_at
        time = time or (_changed_at(source) if settled and head.lines else "")
        if not time:
            return None
        name = ArchiveName.made(source.session, source.agent, source.agent_type, time)
        return next(each for each in name.choices(source.session) if self._is_free(each, source))

    def _is_free(self, name: ArchiveName, source: Source) -> bool:
        """Tell whether this name is free for an archive.

        A name is taken if another program wrote a file with this name. The name is also taken if
        the file belongs to a subagent with the same id in another session.
        """
        try:
            with Folder(self.root, *name.folders) as folder:
                kept = ArchiveFiles(folder, name)
                if name.path not in self.manifest.made():
                    return not kept.exists()
                return typed(kept.meta() or {}, "session_id", str) in ("", source.session)
        except FileNotFoundError:
            return True

    def _claim(self, kept: ArchiveFiles, source: Source) -> None:
        """Record an archive before its first line, so that `forget` finds it after a kill.

        The file is made before its entry, because other processes open every archive in the index.
        """
        self.manifest.claim(kept.name.path)
        os.close(kept.open_to_append())
        self._enter_in_index(kept, source)

    def _enter_in_index(self, kept: ArchiveFiles, source: Source) -> None:
        """Add the archive to the index if its entry is missing or differs."""
        entry = entry_of(_identity(source, self.meta(kept)), kept)
        if self.index.entries().get(source.key) != entry:
            self.index.change({source.key: entry})

    # ---- secrets found earlier

    def _clear(
        self, kept: ArchiveFiles, key: str, known: list[str], callbacks: ArchiveCallbacks
    ) -> bool:
        """Redact a session's known secrets in an unedited archive; tell whether a line changed."""
        if is_cleared_of(kept, known) or not kept.lines_are_as_written():
            return False
        callbacks.check_stop()
        changed = clear(kept, callbacks.redactor.of_session(known).without_rules())
        if changed:
            self._totals_cache.drop(kept)
            callbacks.on_cleared(key, changed)
        replace(Learning.of(kept), cleared=checksum_of(known)).write(kept)
        return bool(changed)

    def _clear_others(self, source: Source, callbacks: ArchiveCallbacks) -> None:
        """Redact a session's archives except that of `source`, and update their metadata."""
        known = self.known_of(source.session)
        if not known:
            return
        for key, entry in self.of_session(source.session).items():
            if key == source.key or self._is_cleared(entry, known):
                continue
            changed = False
            lock = locked(self.root, key, callbacks.check_stop)
            with lock, suppress(OSError), self.opened(entry) as kept:
                changed = self._clear(kept, key, known, callbacks)
                if kept.path != entry["path"]:
                    self.index.change({key: {**entry, "path": kept.path}})
            if changed:
                self.describe_again(key, callbacks)

    def _is_cleared(self, entry: Entry, known: list[str]) -> bool:
        with suppress(OSError), self.opened(entry) as kept:
            return is_cleared_of(kept, known) and kept.path == entry["path"]
        return False

    # ---- metadata

    def _describe_if_due(
        self, kept: ArchiveFiles, source: Source, callbacks: ArchiveCallbacks, settled: bool
    ) -> bool:
        """Write an archive's metadata if they are due; return whether they were written."""
        offsets, meta = kept.offsets(), self.meta(kept)
        if offsets is None or offsets == Offsets.of_meta(meta) or not kept.meta_is_as_written():
            return False
        described_until = Offsets.of_meta(meta) or Offsets()
        is_much = offsets.length - described_until.length >= GROWTH_PER_SIZE * kept.meta_size()
        if meta is not None and not settled and not is_much:
            return False
        totals = self.totals(kept)
        if totals is None:
            return False
        who = _identity(source, meta)
        found = {"found": meta["found"]} if meta and "found" in meta else {}
        for described in self._descriptions(source.key, totals, callbacks):
            new_meta = {**who, **found, **described, **callbacks.more_metadata(described), **who}
            kept.write_meta({**new_meta, **offsets.as_meta(clean(source.path))})
        return True

    def describe_again(self, key: str, callbacks: ArchiveCallbacks) -> None:
        """Update the metadata of an archive after a later redaction or new lines of a subagent.

        The tokens and files of a session include its subagents' tokens and files. The metadata are
        rewritten even if unchanged, because `not_described` compares the times of the files.
        """
        entry = self.index.entries().get(key)
        if entry is None:
            return
        with locked(self.root, key, callbacks.check_stop), self.opened(entry) as kept:
            meta, totals, offsets = self.meta(kept), self.totals(kept), kept.offsets()
            if meta is None or totals is None or offsets is None:
                return
            path = meta.get("source", {}).get("path", "")
            who = {name: meta[name] for name in _WHO if name in meta}
            for described in self._descriptions(key, totals, callbacks):
                if kept.meta_is_as_written():
                    kept.write_meta({**meta, **described, **who, **offsets.as_meta(path)})

    def _descriptions(
        self, key: str, totals: Totals, callbacks: ArchiveCallbacks
    ) -> Iterator[dict[str, Any]]:
        """Yield a session's metadata; yield them again if a subagent's metadata changed meanwhile.

        `not_described` would miss such a change, because it only compares the times of the files.
        """
        before = None
        while before != (stamps := self._stamps_of_subagents(key)):
            before = stamps
            yield callbacks.describe(totals, self._subagents(key))

    def _stamps_of_subagents(self, session: str) -> list[Stamp]:
        found = []
        for entry in self.of_subagents(session).values():
            with suppress(OSError), self.opened(entry) as kept:
                found.append(kept.meta_stamp())
        return found

    def _subagents(self, session: str) -> list[Totals]:
        """Return the totals of a session's subagents ([] for a subagent), without damaged ones."""
        found = []
        for entry in self.of_subagents(session).values():
            with suppress(OSError), self.opened(entry) as kept:
                found.append(self.totals(kept))
        return [totals for totals in found if totals]


def _rules_of(before: Offsets, redactor: "Redactor") -> int:
    """Return the checksum of the redactor's rules, or 0 if other rules redacted earlier lines."""
    is_of_one = before.rules == redactor.checksum or not before.length
    return redactor.checksum if is_of_one else 0


def _identity(source: Source, known: Meta | None) -> Meta:
    """Return a transcript's ids and agent type as metadata; the type in `known` is preferred."""
    if not source.agent:
        return {"kind": MAIN, "session_id": source.session}
    return {
        "kind": SUBAGENT,
        "task_id": source.agent,
        "agent_type": typed(known or {}, "agent_type", str) or source.agent_type,
        "parent_session_id": source.session,
        "session_id": source.session,
    }


def _changed_at(source: Source) -> str:
    return datetime.fromtimestamp(source.status.st_mtime, UTC).isoformat()
