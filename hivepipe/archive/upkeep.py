"""Maintenance of the archives: compression, rebuilding the index, verification."""

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress

from hivepipe.archive.archive_files import ArchiveFiles, summed
from hivepipe.archive.catalog import Catalog
from hivepipe.archive.index import Entry
from hivepipe.archive.locks import locked
from hivepipe.archive.offsets import Offsets
from hivepipe.archive.sources import open_source
from hivepipe.errors import RefusedTranscriptError
from hivepipe.transcripts.lines import typed

COMPRESS_AFTER_SECS = 30 * 86400.0


def compress(catalog: Catalog, check_stop: Callable[[], None]) -> int:
    """Compress the archives that have not grown for a month; return their number.

    `check_stop` may raise an exception to stop the call. If an archive cannot be compressed, the
    others are compressed before OSError is raised.
    """
    changed: dict[str, Entry | None] = {}
    compressed = 0
    failed: OSError | None = None
    try:
        for key, entry in sorted(catalog.index.entries().items()):
            check_stop()
            try:
                with locked(catalog.root, key, check_stop), catalog.opened(entry) as kept:
                    compressed += _compress(kept, check_stop)
                    if kept.path != entry["path"]:
                        changed[key] = {**entry, "path": kept.path}
            except FileNotFoundError:
                continue
            except OSError as error:
                failed = error
    finally:
        if changed:
            catalog.index.change(changed)
    if failed:
        raise failed
    return compressed


def _compress(kept: ArchiveFiles, check_stop: Callable[[], None]) -> bool:
    status = kept.lines_status()
    if status is None or kept.is_packed or time.time() - status.st_mtime < COMPRESS_AFTER_SECS:
        return False
    if not kept.is_as_written():
        return False
    with closing(kept.pack()) as chunks:
        for _ in chunks:
            check_stop()
    return True


def adopt(catalog: Catalog) -> int:
    """Add the archives of 1.0.0, which had no manifest, to the manifest; return their number.

    An archive is added if its commit record and checksums match its files.
    """
    adopted, made = 0, catalog.manifest.made()
    for _, kept in catalog.each_on_disk():
        with suppress(OSError):
            is_new = kept.name.path not in made
            if is_new and Offsets.of_meta(kept.meta()) and kept.is_as_written():
                catalog.manifest.claim(kept.name.path)
                adopted += 1
    return adopted


def rebuild_index(catalog: Catalog) -> bool:
    """Rebuild archive-index.json from the archives' files; return whether it changed."""
    if not os.path.isdir(catalog.root):
        return False
    return catalog.index.rebuild(lambda: dict(catalog.on_disk()))


def verify(catalog: Catalog) -> Iterator[tuple[str, list[str]]]:
    """Yield every archive's path with the list of its problems."""
    entries = catalog.index.entries()
    found = dict(catalog.on_disk())
    for key, entry in sorted({**found, **entries}.items()):
        problems = []
        if key not in entries:
            problems.append("not in the index: `hivepipe archive rebuild-index`")
        elif key in found and found[key] != entry:
            problems.append("differs from the index: `hivepipe archive rebuild-index`")
        with locked(catalog.root, key):
            yield entry["path"], problems + _problems(catalog, found.get(key, entry))


def _problems(catalog: Catalog, entry: Entry) -> list[str]:
    try:
        with catalog.opened(entry) as kept:
            offsets, meta = kept.offsets(), kept.meta()
            described = Offsets.of_meta(meta)
            if kept.lines_status() is None:
                return ["its lines are missing"]
            if offsets is None or meta is None or described is None:
                return ["its metadata are missing or damaged, until the archive grows"]
            path = typed(meta["source"], "path", str)
            edited = [] if kept.meta_is_as_written() else ["its metadata were changed"]
            return [
                *edited,
                *_bad_modes(kept),
                *_bad_lines(kept, offsets),
                *_bad_source(path, described),
            ]
    except OSError as error:
        return [f"cannot be read: {error.strerror}"]


def _bad_modes(kept: ArchiveFiles) -> Iterator[str]:
    status = kept.lines_status()
    if status is None or not stat.S_ISREG(status.st_mode):
        yield "its lines are not a file"
    elif status.st_mode & 0o077:
        yield f"other users can read it: mode {stat.S_IMODE(status.st_mode):04o}, not 0600"


def _bad_lines(kept: ArchiveFiles, offsets: Offsets) -> Iterator[str]:
    try:
        with kept.open_to_read() as lines:
            length, checksum = summed(lines, offsets.length)
            # Only a killed process leaves a partial line
            is_longer = lines.readline().endswith(b"\n")
    except OSError as error:
        yield f"its lines cannot be read: {error}"
        return
    if length < offsets.length:
        yield f"{offsets.length - length} bytes are missing"
    elif checksum != offsets.checksum:
        yield "its lines were changed"
    elif is_longer:
        yield "it has more lines than hivepipe wrote"


def _bad_source(path: str, offsets: Offsets) -> Iterator[str]:
    """Yield an error if the archived part of a transcript was changed.

    A transcript that is deleted or cannot be read is no error.
    """
    folder = os.path.dirname(path)
    while folder not in ("", "/") and os.path.basename(folder) not in ("projects", "tasks"):
        folder = os.path.dirname(folder)
    with (
        suppress(OSError, RefusedTranscriptError),
        open_source(path, os.path.dirname(folder)) as source,
        os.fdopen(os.dup(source.descriptor), "rb") as lines,
    ):
        if summed(lines, offsets.source_bytes)[1] != offsets.source_checksum:
            yield "its transcript was changed later; the archive has the earlier content"
