"""archive-index.json: the archive of each session and subagent.

An entry has only values that stay the same while the archive grows. A turn therefore does not
change the index, and a rebuilt index equals the old index. A new entry is written to a journal
first. A small index is then written at once, a large index at most every ten minutes. Readers use
both files.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from io import BytesIO
from sys import intern
from typing import Any, TypedDict, TypeGuard

import orjson

from hivepipe.archive.locks import locked
from hivepipe.archive.naming import is_archive_path
from hivepipe.files.exports import replace_own
from hivepipe.files.folders import Folder
from hivepipe.files.manifest import Manifest

FILE = "archive-index.json"
JOURNAL = ".archive-index.new"
_HEAD, _TAIL = b'{"schema": 1, "archives": {\n', b"\n}}\n"
SMALL_BYTES = 64 << 10
LARGE_EVERY_SECS = 600.0
_END_BYTES = 256
_UNKNOWN: tuple[object, ...] = (None, None, None)


class Entry(TypedDict):
    """The entry of one archive; `agent_id` and `agent_type` are empty for a main session."""

    kind: str  # main-session or subagent
    session_id: str
    agent_id: str
    agent_type: str
    started_at: str
    path: str


Entries = dict[str, Entry]


def key_of(entry: Entry) -> str:
    """Return the key of an archive: <session> or <session>/<agent>."""
    session, agent = entry["session_id"], entry["agent_id"]
    return f"{session}/{agent}" if agent else session


class Index:
    """The index of one root, cached until a file changes.

    An entry whose archive is not in the manifest is ignored. Each process reads a line of the
    journal once, so the cost of a new archive does not depend on the number of archives.
    """

    def __init__(self, root: str, manifest: Manifest) -> None:
        self._root = root
        self._manifest = manifest
        self._stamps = _UNKNOWN
        self._guard = threading.RLock()
        self._journal_bytes = 0  # how much of the journal was read
        self._journal_end = b""  # the last bytes that were read
        self._made: AbstractSet[str] = frozenset()
        self._unlisted: Entries = {}  # entries whose archives are not in the manifest
        self._entries: Entries = {}
        self._agents: dict[str, Entries] = {}  # session -> the entries of its subagents

    def entries(self) -> Entries:
        """Return key -> entry. The caller must not change the mapping."""
        try:
            with Folder(self._root) as folder:
                return self._read(folder)
        except FileNotFoundError:  # no archive was made here yet
            return {}

    def of_agents(self, session: str) -> Entries:
        """Return key -> entry of a session's subagents. The caller must not change the mapping."""
        return self._agents.get(session, {}) if self.entries() else {}

    def change(self, changes: Mapping[str, Entry | None]) -> None:
        """Set the entries in `changes`. Remove an entry whose value is None."""
        with locked(self._root, ""), Folder(self._root) as folder:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            with os.fdopen(folder.open(JOURNAL, flags), "ab") as journal:
                # A newline first: it ends a partial line that a killed process left.
                journal.write(b"\n" + _lines(changes))
            if _is_due(folder):
                self._write(folder, self._read(folder))

    def tidy(self) -> None:
        """Write the index file if this is due and the journal has entries that the file lacks."""
        with Folder(self._root) as folder:
            waiting = folder.status(JOURNAL)
            if waiting is None or not waiting.st_size or not _is_due(folder):
                return
        self.change({})

    def move_to_journal(self) -> None:
        """Write all entries to the journal, because the index file is about to be replaced.

        `uninstall` calls this function before it restores a predecessor's file of the same name.
        """
        with locked(self._root, ""), Folder(self._root) as folder:
            folder.replace(JOURNAL, _lines(self._read(folder)))

    def rebuild(self, find: Callable[[], Entries]) -> bool:
        """Replace all entries with the result of `find`; return whether they changed."""
        with locked(self._root, ""), Folder(self._root) as folder:
            entries = find()
            if folder.read(FILE) == _text(entries) and self._read(folder) == entries:
                return False
            self._write(folder, entries)
            return True

    def _read(self, folder: Folder) -> Entries:
        with self._guard:
            stamps, before = self._stamps_of(folder), self._stamps
            if stamps == before:
                return self._entries
            # set again when all is read: after an error, the next call reads all
            self._stamps = _UNKNOWN
            changes: dict[str, Entry | None] | None = None
            if stamps[0] == before[0]:
                changes = self._new_in_journal(folder)
            if changes is None:  # seldom: a large index takes long to parse
                self._read_all(folder)
            else:
                if changes:
                    self._apply(changes)
                made = self._manifest.made()
                if made is not self._made or self._unlisted:
                    self._filter()
            self._stamps = stamps
            return self._entries

    def _read_all(self, folder: Folder) -> None:
        self._entries = _parsed(folder.read(FILE))
        self._unlisted, self._journal_bytes, self._journal_end = {}, 0, b""
        for key, entry in (self._new_in_journal(folder) or {}).items():
            _set(self._entries, key, entry)
        self._filter()

    def _new_in_journal(self, folder: Folder) -> dict[str, Entry | None] | None:
        """Read what was added to the journal: key -> entry, or None for a removed entry.

        Return None if the journal no longer has the bytes that were read before.
        """
        try:
            descriptor = folder.open(JOURNAL)
        except FileNotFoundError:
            return None if self._journal_bytes else {}
        with os.fdopen(descriptor, "rb") as journal:
            journal.seek(self._journal_bytes - len(self._journal_end))
            data = journal.read()
        if not data.startswith(self._journal_end):
            return None
        data = data[: data.rfind(b"\n") + 1]  # another process may write the rest just now
        added = data[len(self._journal_end) :]
        self._journal_bytes += len(added)
        self._journal_end = data[-_END_BYTES:]
        return dict(filter(None, map(_change, added.splitlines())))

    def _apply(self, changes: Mapping[str, Entry | None]) -> None:
        """Apply changes to copies, because other threads may read the mappings."""
        entries, made = dict(self._entries), self._manifest.made()
        for key, entry in changes.items():
            known = entry or entries.get(key)
            if known and known["agent_id"]:
                agents = dict(self._agents.get(known["session_id"], {}))
                _set(agents, key, entry)
                self._agents[known["session_id"]] = agents
            _set(entries, key, entry)
            self._unlisted.pop(key, None)
            if entry and entry["path"].removesuffix(".gz") not in made:
                self._unlisted[key] = entry  # `_filter` removes it from `entries`
        self._entries = entries

    def _filter(self) -> None:
        """Leave out the entries whose archives are not in the manifest, and group the others."""
        self._made = self._manifest.made()
        made = {path: path for path in self._made}
        known = {**self._entries, **self._unlisted}
        self._entries = {key: each for key, each in known.items() if _is_in(made, each)}
        self._unlisted = {key: each for key, each in known.items() if key not in self._entries}
        agents: dict[str, Entries] = {}
        for key, entry in self._entries.items():
            if entry["agent_id"]:
                agents.setdefault(entry["session_id"], {})[key] = entry
        self._agents = agents  # at once, because other threads may read it

    def _write(self, folder: Folder, entries: Entries) -> None:
        if replace_own(folder, self._manifest, FILE, _text(entries), _is_damaged):
            # The journal is emptied last: an entry in both files is harmless.
            os.close(folder.open(JOURNAL, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
        else:  # a person edited the file: it stays, and the journal keeps all entries
            gone = {key: None for key in _parsed(folder.read(FILE)) if key not in entries}
            folder.replace(JOURNAL, _lines({**gone, **entries}))

    def _stamps_of(self, folder: Folder) -> tuple[object, ...]:
        """Return a value that changes when the index file, its journal or the manifest changes."""
        return folder.stamp(FILE), folder.stamp(JOURNAL), self._manifest.stamp()


def _is_due(folder: Folder) -> bool:
    status = folder.status(FILE)
    if status is None or status.st_size < SMALL_BYTES:
        return True
    return not 0 <= time.time() - status.st_mtime < LARGE_EVERY_SECS


def _lines(changes: Mapping[str, Entry | None]) -> bytes:
    """Return the journal's text for these changes: one line for each."""
    return b"".join(orjson.dumps([key, entry]) + b"\n" for key, entry in changes.items())


def _is_in(made: Mapping[str, str], entry: Entry) -> bool:
    """Tell whether the manifest lists an archive, by the path of its uncompressed lines.

    The entry then shares the manifest's string object, which saves memory.
    """
    path = entry["path"]
    listed = made.get(path.removesuffix(".gz"))
    if listed == path:
        entry["path"] = listed
    return listed is not None


def _text(entries: Entries) -> bytes:
    """Return the content of archive-index.json: one entry per line, sorted by key."""
    lines = (orjson.dumps(key) + b": " + orjson.dumps(entries[key]) for key in sorted(entries))
    return _HEAD + b",\n".join(lines) + _TAIL


def _parsed(data: bytes | None) -> Entries:
    """Return the entries in an index file, or {} if it cannot be parsed and must be rebuilt."""
    try:
        return {
            key: _shared(key, entry) for key, entry in _pairs(data or b"{}") if is_of(entry, key)
        }
    except (ValueError, AttributeError):
        return {}


def _pairs(data: bytes) -> Iterator[tuple[str, Any]]:
    """Yield keys and entries line by line, because parsing all at once takes twice the memory."""
    if not (data.startswith(_HEAD) and data.endswith(_TAIL)):
        yield from orjson.loads(data).get("archives", {}).items()
        return
    lines = BytesIO(data)
    lines.seek(len(_HEAD))
    while lines.tell() < len(data) - len(_TAIL):
        yield from orjson.loads(b"{%b}" % lines.readline().rstrip(b",\n")).items()


def _shared(key: str, entry: Entry) -> Entry:
    """Return the entry with strings that are shared between entries, which saves memory."""
    entry["kind"], entry["agent_type"] = intern(entry["kind"]), intern(entry["agent_type"])
    if not entry["agent_id"]:
        entry["session_id"] = key
    return entry


def _is_damaged(data: bytes) -> bool:
    return not _parsed(data)


def _change(line: bytes) -> tuple[str, Entry | None] | None:
    """Return the key and the entry (None: removed) of a journal's line, or None if invalid."""
    try:
        key, entry = orjson.loads(line)
    except (ValueError, TypeError):  # the line is empty, incomplete or not hivepipe's
        return None
    is_valid = isinstance(key, str) if entry is None else is_of(entry, key)
    return (key, entry) if is_valid else None


def _set(entries: Entries, key: str, entry: Entry | None) -> None:
    if entry is None:
        entries.pop(key, None)
    else:
        entries[key] = entry


def is_of(value: object, key: str) -> TypeGuard[Entry]:
    """Tell whether the value is a valid entry with this key."""
    return is_entry(value) and key == key_of(value)


def is_entry(value: object) -> TypeGuard[Entry]:
    """Tell whether the value is a valid entry.

    The index may have other values, because users can edit the file, and git can replace it.
    """
    return (
        isinstance(value, dict)
        and all(isinstance(value.get(name), str) for name in Entry.__annotations__)
        and value["session_id"] != ""
        and is_archive_path(value["path"])
    )
