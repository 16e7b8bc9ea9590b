"""Import a predecessor's archives as copies.

    main-session/2025-01/2025-01-10_14-30-00_abc123.jsonl (or .jsonl.gz), .meta.json
    subagent/<type>/2025-01/2025-01-10_14-35-00_task-xyz.jsonl, .meta.json

Entry point for importers: `import_found(context, job, folder)`, which imports exports and archives.
"""

import gzip
import os
import re
import stat
import zlib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from hashlib import file_digest
from io import BufferedReader
from tempfile import TemporaryFile
from time import time
from typing import IO

import orjson

from hivepipe.archive.archive_files import META_SUFFIX, Meta
from hivepipe.archive.archives import ArchiveCallbacks, Archives
from hivepipe.archive.naming import ArchiveName
from hivepipe.archive.sources import UNKNOWN_TYPE, Source
from hivepipe.events.claude_code import CAP_NAME, clean, valid_id
from hivepipe.files.folders import Folder
from hivepipe.files.manifest import Found, Manifest
from hivepipe.home import kept_folder
from hivepipe.jobs.origin import Origin
from hivepipe.operations.archive import archives_of, callbacks_of
from hivepipe.operations.found_exports import KNOWN, REFUSED, TAKEN, Row, import_exports
from hivepipe.operations.job_context import JobContext

ARCHIVE = "archive"
KINDS = ("main-session", "subagent")
LARGEST_META_BYTES = 1 << 20
LARGEST_UNPACKED_BYTES = 4 << 30

_NAME = re.compile(r"(\d{4}-\d\d-\d\d)_(\d\d)-(\d\d)-(\d\d)_(.+)", re.ASCII)
_SUFFIXES = (".jsonl", ".jsonl.gz")
# The predecessor's values of these keys replace the values counted from the lines.
_ITS_OWN: dict[str, tuple[type, ...]] = {
    "message_count": (int,),
    "duration_seconds": (int, float),
    "outcome": (str,),
}


def import_archives(context: JobContext, job: Origin, folder: str) -> Iterator[Row]:
    """Copy the archives below a predecessor's logs folder to the home; yield a row per archive.

    The folder can be the home's own logs folder or another folder; hivepipe's own archives in it
    are skipped. The originals are only read. A copy is redacted, listed, searched and pruned like
    any archive of hivepipe; its retention period starts now. Its metadata have the keys of the
    predecessor's metadata, whose unchanged copy is under `found`. If hivepipe archives the session
    too, the lines go into one archive without duplicates. The cost of the messages is not recorded.

    Repeated calls import a file once: it is identified by its content and its session or agent.
    After a kill the next call continues. Two files with equal bytes become one archive if they
    belong to the same session or agent, and the second row names the first file.

    Missing or invalid metadata are reported; then the lines or the file name give the session.
    After StoreError or StoppedError the import can be repeated later.
    """
    archives = archives_of(context.home)
    callbacks = callbacks_of(context, job, with_usage=False)
    imports = _Imports(archives.manifest)
    for path in _found_in(folder, archives.manifest, context.home):
        callbacks.check_stop()
        try:
            yield _import_archive(context.home, archives, callbacks, imports, folder, path)
        except (OSError, EOFError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or str(error)
            yield Row(f"{folder}/{path}", ARCHIVE, REFUSED, f"it cannot be read: {reason}")


def import_found(context: JobContext, job: Origin, folder: str) -> list[Row]:
    """Import a predecessor's exports and archives from a folder; return a row for each file."""
    exports = import_exports(context.home, folder)
    return [*exports, *import_archives(context, job, folder)]


def unimported_archives(home: str) -> Iterator[tuple[str, list[str]]]:
    """Yield (path, problems) of foreign archives, if their current content is not imported."""
    manifest = Manifest(home)
    folder = kept_folder(home)
    known = {each.path: each.stamp for each in manifest.found(ARCHIVE)}
    for path in _found_in(folder, manifest, home):
        stamp = _stamp(os.lstat(f"{folder}/{path}"))
        before = known.get(f"{folder}/{path}")
        if before is None:
            text = "not written by hivepipe, and not imported: see `hivepipe archive sweep`"
            yield path, [text]
        elif before != stamp:
            yield path, ["not written by hivepipe, and changed since its import"]


def _found_in(folder: str, manifest: Manifest, home: str) -> list[str]:
    """Return the relative paths of the archives below a folder, without hivepipe's own."""
    made = manifest.made() if folder == kept_folder(home) else frozenset()
    found: list[str] = []
    for kind in KINDS:
        for inner, _, names in os.walk(f"{folder}/{kind}"):
            ours = [name for name in names if name.endswith(_SUFFIXES) and name[0] != "."]
            found += [os.path.relpath(f"{inner}/{name}", folder) for name in ours]
    return sorted(path for path in found if ArchiveName.of_path(path).path not in made)


class _Imports:
    """The files that were imported until now.

    They are read once, not for each file. A file that another process imports meanwhile may be
    imported again, which adds no line.
    """

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._by_path: dict[str, Found] = {}
        # (digest, key) -> path -> the import of the present content of the file at this path
        self._by_content: defaultdict[tuple[str, str], dict[str, Found]] = defaultdict(dict)
        for each in manifest.found(ARCHIVE):
            self._add(each)

    def at(self, path: str) -> Found | None:
        """Return the latest import of the file at `path`, or None."""
        return self._by_path.get(path)

    def same_as(self, found: Found) -> Found | None:
        """Return the first file of the same session or agent with equal bytes, or None."""
        return next(iter(self._by_content[found.digest, found.key].values()), None)

    def record(self, found: Found) -> None:
        self._manifest.record_found(found)
        self._add(found)

    def _add(self, found: Found) -> None:
        if before := self._by_path.get(found.path):
            self._by_content[before.digest, before.key].pop(found.path, None)
        self._by_path[found.path] = found
        self._by_content[found.digest, found.key][found.path] = found


def _import_archive(
    home: str,
    archives: Archives,
    callbacks: ArchiveCallbacks,
    imports: _Imports,
    folder: str,
    path: str,
) -> Row:
    whole = f"{folder}/{path}"
    with _opened(folder, path) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            return Row(whole, ARCHIVE, REFUSED, "it is not a file")
        if not status.st_size:
            return Row(whole, ARCHIVE, REFUSED, "it is empty")
        known, stamp = imports.at(whole), _stamp(status)
        if known and known.stamp == stamp:
            return Row(whole, ARCHIVE, KNOWN, key=known.key)
        digest = file_digest(file, "sha256").hexdigest()
        file.seek(0)
        meta, trouble = _meta(folder, path)
        with _plain(home, path, file) as lines:
            source = _source(whole, path, meta, lines)
            if callbacks.is_forgotten(source.session):
                return Row(whole, ARCHIVE, REFUSED, "its session was forgotten")
            its_meta = _redacted(meta, callbacks)
            found = Found(digest, ARCHIVE, whole, stamp, source.key, time())
            same = imports.same_as(found)
            if same:
                imports.record(found)
                return Row(whole, ARCHIVE, KNOWN, _as_other(found, same), found.key)
            archives.extend(source, _callbacks_for(callbacks, source, its_meta), settled=True)
    if source.key not in archives.index.entries():
        return Row(whole, ARCHIVE, REFUSED, "it has no line")
    imports.record(found)
    return Row(whole, ARCHIVE, TAKEN, trouble, source.key)


def _as_other(found: Found, same: Found) -> str:
    """Return a note with the path of `same` if another file still has this path, or ""."""
    is_moved = same.path == found.path or not os.path.lexists(same.path)
    return "" if is_moved else f"the same as {clean(same.path)}"


@contextmanager
def _opened(folder: str, path: str) -> Iterator[BufferedReader]:
    """Open a file below a folder. Raise OSError if its path has a link."""
    *inner, name = path.split("/")
    with Folder(folder, *inner) as there, os.fdopen(there.open(name), "rb") as file:
        yield file


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_size}-{status.st_mtime_ns}"


@contextmanager
def _plain(home: str, path: str, file: BufferedReader) -> Iterator[IO[bytes]]:
    """Yield an archive's lines as an open file, unpacked to a temporary file if compressed.

    Raise OSError if it is damaged or unpacks to more than 4 GB.
    """
    if not path.endswith(".gz"):
        yield file
        return
    with gzip.open(file) as packed, TemporaryFile(dir=home) as plain:
        while chunk := packed.read(1 << 20):
            plain.write(chunk)
            if plain.tell() > LARGEST_UNPACKED_BYTES:
                raise OSError("it unpacks to more than 4 GB")
        plain.flush()
        yield plain


# ---- session and agent


def _meta(folder: str, path: str) -> tuple[Meta, str]:
    """Return the predecessor's metadata and "", or {} and an error text."""
    stem = path.removesuffix(".gz").removesuffix(".jsonl")
    try:
        with _opened(folder, f"{stem}{META_SUFFIX}") as file:
            data = file.read(LARGEST_META_BYTES + 1)
    except FileNotFoundError:
        return {}, "it has no metadata"
    except OSError as error:
        return {}, f"its metadata cannot be read: {error.strerror}"
    if len(data) > LARGEST_META_BYTES:
        return {}, "its metadata are larger than 1 MB"
    try:
        meta = orjson.loads(data)
    except ValueError:
        return {}, "its metadata are not JSON"
    return (meta, "") if isinstance(meta, dict) else ({}, "its metadata are not an object")


def _source(whole: str, path: str, meta: Meta, lines: IO[bytes]) -> Source:
    """Return an archive's `Source`. Its ids come from the metadata, the lines or the file name."""
    kind, *folders, file = path.split("/")
    stem = file.removesuffix(".gz").removesuffix(".jsonl")
    named = _NAME.fullmatch(stem)
    id = _id(named[5] if named else stem)
    started_at = f"{named[1]}T{named[2]}:{named[3]}:{named[4]}.000Z" if named else ""
    source = Source(whole, "", "", "", lines.fileno(), started_at)
    session = _id_in(meta, "parent_session_id", "session_id") or source.head().session
    if kind == "main-session":
        return replace(source, session=session or id)
    agent = _id_in(meta, "task_id", "agent_id") or id
    kind_of_agent = meta.get("agent_type")
    if not isinstance(kind_of_agent, str) or not kind_of_agent:
        kind_of_agent = folders[0] if folders else UNKNOWN_TYPE
    agent_type = clean(kind_of_agent)[:CAP_NAME]
    return replace(source, session=session or agent, agent=agent, agent_type=agent_type)


def _id_in(meta: Meta, *names: str) -> str:
    for name in names:
        value = meta.get(name)
        if isinstance(value, str) and (id := valid_id(value)):
            return id
    return ""


def _id(text: str) -> str:
    """Return a valid id for a file name with any characters."""
    return valid_id(re.sub(r"[^A-Za-z0-9._-]", "_", text)[:100]) or "unknown"


# ---- metadata


def _redacted(meta: Meta, callbacks: ArchiveCallbacks) -> Meta:
    with suppress(ValueError, TypeError):
        found = orjson.loads(callbacks.redactor.redact_line(orjson.dumps(meta))[0])
        if isinstance(found, dict):
            return found
    return {}


def _callbacks_for(callbacks: ArchiveCallbacks, source: Source, its_meta: Meta) -> ArchiveCallbacks:
    """Return callbacks that add the predecessor's metadata (`its_meta`) to the counted metadata.

    For the keys in _ITS_OWN, a valid value of the predecessor replaces the counted value.
    """

    def its_own(counted: Meta) -> Meta:
        chosen = {
            name: value
            for name, value in its_meta.items()
            if name not in counted or isinstance(value, _ITS_OWN.get(name, ()))
        }
        found = {**its_meta, "path": clean(source.path)}
        return {**chosen, "found": found}

    return replace(callbacks, more_metadata=its_own)
