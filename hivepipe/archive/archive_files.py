"""The files of one archive: its lines, their commit record (`Offsets`) and derived files.

The files are written in this order: lines, commit record, metadata, totals. One write overwrites
the commit record in place. Metadata and totals are replaced atomically and can be rebuilt from the
lines.

The commit record contains the checksum of the lines, and the metadata contain their own. If a
checksum does not match, another program changed the file, and hivepipe leaves it as it is.
"""

import dataclasses
import gzip
import os
import shutil
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, cast

import orjson

from hivepipe.archive.naming import ArchiveName
from hivepipe.archive.offsets import Offsets
from hivepipe.files.change_stamp import Stamp
from hivepipe.files.folders import Folder

Meta = dict[str, Any]

COPY_BYTES = 1 << 20
META_SUFFIX = ".meta.json"
# Hidden files: found secrets, hashes of lines that the transcript no longer has, totals
LEARNED, REMOVED_LINES, TOTALS = "learned", "surplus", "tally"
_META_SUM = "meta_crc32"


class ArchiveFiles:
    """The files of one archive, in an open folder."""

    def __init__(self, folder: Folder, name: ArchiveName) -> None:
        self.name = name
        self._folder = folder
        self._lines = f"{name.stem}.jsonl"
        self._packed = f"{name.stem}.jsonl.gz"
        # The plain file is tried twice, because another process may unpack the lines meanwhile.
        self._forms = (self._lines, self._packed, self._lines)
        self._meta = f"{name.stem}{META_SUFFIX}"
        self._offsets = self._hidden("reach")

    def _hidden(self, suffix: str) -> str:
        return f".{self.name.stem}.{suffix}"

    # ---- files other than the lines

    def offsets(self) -> Offsets | None:
        """Return the last commit record, or None if it is lost and all lines must be read again."""
        data = self._folder.read(self._offsets)
        if not data:
            return Offsets.of_meta(self.meta())
        first, *others = Offsets.all_in(data)
        # A process was killed while it replaced the lines: their checksum shows which commit record
        # applies.
        return next((each for each in others if each and self._is_whole(each)), first)

    def write_offsets(self, offsets: Offsets) -> None:
        """Commit the lines that were written since the last commit.

        The folder is marked as changed, because searches read only changed folders. This is done
        before the write, in case the process is killed, and again after the write, for a search
        that ran in between.
        """
        self._folder.touch()
        self._folder.overwrite(self._offsets, offsets.text())
        self._folder.touch()

    def hidden(self, suffix: str) -> bytes:
        """Return the content of the hidden file with this suffix, or b"" if it is missing."""
        return self._folder.read(self._hidden(suffix)) or b""

    def write_hidden(self, suffix: str, data: bytes) -> None:
        self._folder.replace(self._hidden(suffix), data)

    def remove_hidden(self, suffix: str) -> None:
        self._folder.remove(self._hidden(suffix))

    def meta(self) -> Meta | None:
        """Return the metadata, or None if they are missing or cannot be parsed."""
        return _meta_of(self._folder.read(self._meta))

    def write_meta(self, meta: Meta) -> None:
        self._folder.replace(self._meta, _meta_text(meta))

    def meta_is_as_written(self) -> bool:
        """Tell whether the metadata are as hivepipe wrote them.

        Return True also if they are missing or damaged, and for metadata of 1.0.0, which have no
        checksum.
        """
        data = self._folder.read(self._meta)
        meta = _meta_of(data)
        if data is None or meta is None:
            return True
        try:
            return _META_SUM.encode() not in data or data == _meta_text(meta)
        except orjson.JSONEncodeError:  # nested deeper than hivepipe writes
            return False

    def meta_size(self) -> int:
        """Return the size of the metadata in bytes, or 0 without metadata."""
        status = self._folder.status(self._meta)
        return status.st_size if status else 0

    def meta_stamp(self) -> Stamp:
        """Return a value that changes whenever the metadata change."""
        return self._folder.stamp(self._meta)

    def described_ns(self) -> int:
        """Return when the metadata were written (ns since 1970), or 0 without metadata."""
        status = self._folder.status(self._meta)
        return status.st_mtime_ns if status else 0

    def changed_ns(self) -> int:
        """Return a time (ns since 1970) not before the last change of the committed lines, or 0."""
        names = (self._offsets, self._hidden(LEARNED), self._meta)
        found = map(self._folder.status, names)
        return max((status.st_ctime_ns for status in found if status), default=0)

    def lines_stamp(self) -> Stamp:
        """Return a value that changes with the committed lines and the learned secrets."""
        names = (self._lines, self._packed, self._offsets, self._hidden(LEARNED))
        return tuple(
            number
            for status in map(self._folder.status, names)
            for number in ((status.st_ino, status.st_ctime_ns) if status else (0, 0))
        )

    # ---- lines

    @property
    def is_packed(self) -> bool:
        """Tell whether the archive has only the compressed file of its lines."""
        return self._folder.status(self._lines) is None and bool(self._folder.status(self._packed))

    @property
    def path(self) -> str:
        """Return the path of the lines' file, relative to the root."""
        return f"{self.name.path}.gz" if self.is_packed else self.name.path

    def lines_status(self) -> os.stat_result | None:
        return next(filter(None, map(self._folder.status, self._forms)), None)

    def open_to_append(self) -> int:
        """Return a descriptor to read and append lines, after unpacking a compressed archive."""
        if self.is_packed:
            self._unpack()
        return self._folder.open(self._lines, os.O_RDWR | os.O_CREAT)

    @contextmanager
    def open_to_read(self) -> Iterator[BinaryIO]:
        """Open the lines for reading, compressed or not.

        Raises FileNotFoundError without a file. A damaged file raises BadGzipFile, even during
        reading.
        """
        descriptor, is_packed = self._open_any_form()
        with os.fdopen(descriptor, "rb") as file:
            if not is_packed:
                yield file
                return
            try:
                with gzip.open(file) as unpacked:
                    yield cast(BinaryIO, unpacked)
            except (EOFError, zlib.error) as error:
                raise gzip.BadGzipFile(str(error)) from error

    def lines_until(self, length: int, start: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yield (offset, content) of lines up to the byte `length`; later lines may be torn."""
        with self.open_to_read() as lines:
            lines.seek(start)
            while start < length and (line := lines.readline()):
                if start + len(line) <= length:
                    yield start, line
                start += len(line)

    def _open_any_form(self) -> tuple[int, bool]:
        """Return a descriptor of the lines, and whether they are compressed."""
        for name in self._forms[:2]:
            with suppress(FileNotFoundError):
                return self._folder.open(name), name == self._packed
        return self._folder.open(self._lines), False

    def replace_lines(self, lines: Iterable[bytes], offsets: Offsets) -> Offsets:
        """Replace all lines, but not the file's modification time; return the new commit record."""
        length = checksum = 0
        with self._folder.replacing(self._lines) as out:
            for line in lines:
                out.write(line)
                length += len(line)
                checksum = zlib.crc32(line, checksum)
            out.flush()
            before = self.lines_status()
            if before:
                os.utime(out.fileno(), ns=(before.st_atime_ns, before.st_mtime_ns))
            stamp = os.fstat(out.fileno()).st_mtime_ns
            after = dataclasses.replace(offsets, length=length, checksum=checksum, stamp=stamp)
            self._folder.replace(self._offsets, offsets.text() + after.text())
        self._folder.replace(self._offsets, after.text())
        self._folder.remove(self._packed)
        return after

    def _unpack(self) -> None:
        with self.open_to_read() as packed, self._folder.replacing(self._lines) as out:
            shutil.copyfileobj(packed, out, COPY_BYTES)
        self._folder.remove(self._packed)

    def pack(self) -> Generator[int, None, None]:
        """Compress the lines; yield the size of each chunk, so that the caller can stop in between.

        The modification time is kept, because retention depends on it.
        """
        with (
            os.fdopen(self._folder.open(self._lines), "rb") as lines,
            self._folder.replacing(self._packed) as out,
        ):
            with gzip.GzipFile("", "wb", fileobj=out, mtime=0) as packed:
                while chunk := lines.read(COPY_BYTES):
                    packed.write(chunk)
                    yield len(chunk)
            out.flush()
            status = os.fstat(lines.fileno())
            os.utime(out.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))
        self._folder.remove(self._lines)

    def is_untouched(self, offsets: Offsets) -> bool:
        """Tell whether the lines are unchanged since the last commit, judged by time and size."""
        status = self.lines_status()
        if status is None or status.st_mtime_ns != offsets.stamp:
            return False
        return self.is_packed or status.st_size == offsets.length

    def were_redacted_by(self, rules: int, offsets: Offsets) -> bool:
        """Tell whether rules with this checksum redacted all lines, and no line changed later."""
        is_by_these = offsets.rules == rules != 0
        return is_by_these and (self.is_untouched(offsets) or self._is_whole(offsets))

    def exists(self) -> bool:
        return any(self._folder.status(each) for each in (self._lines, self._packed, self._meta))

    def is_as_written(self) -> bool:
        """Tell whether the archive's files are as hivepipe wrote them. This reads all lines."""
        return self.meta_is_as_written() and self.lines_are_as_written()

    def lines_are_as_written(self) -> bool:
        """Tell whether the lines' file has exactly the committed lines. This reads all lines."""
        offsets = self.offsets()
        return offsets is not None and self._is_whole(offsets)

    def _is_whole(self, offsets: Offsets) -> bool:
        if self.lines_status() is None:
            return False
        with self.open_to_read() as lines:
            return summed(lines, offsets.length) == (offsets.length, offsets.checksum) and not (
                lines.read(1)
            )

    def remove(self) -> int:
        """Remove all files of the archive, the lines last; return the number of removed files."""
        hidden = map(self._hidden, (TOTALS, REMOVED_LINES, LEARNED))
        names = (self._meta, self._offsets, *hidden, self._packed, self._lines)
        halves = (f".{name.removeprefix('.')}.tmp" for name in names)
        return sum(self._folder.remove(name) for name in (*halves, *names))


def summed(lines: BinaryIO, size: int, checksum: int = 0) -> tuple[int, int]:
    """Read up to `size` bytes; return their number and their CRC-32.

    The CRC-32 continues `checksum`, the CRC-32 of the bytes before them.
    """
    length = 0
    while length < size and (chunk := lines.read(min(COPY_BYTES, size - length))):
        length += len(chunk)
        checksum = zlib.crc32(chunk, checksum)
    return length, checksum


def _meta_of(data: bytes | None) -> Meta | None:
    try:
        meta = orjson.loads(data) if data else None
    except ValueError:
        return None
    if not isinstance(meta, dict):
        return None
    meta.pop(_META_SUM, None)
    return meta


def _meta_text(meta: Meta) -> bytes:
    checksum = f"{zlib.crc32(orjson.dumps(meta)):08x}"
    return orjson.dumps({**meta, _META_SUM: checksum}, option=orjson.OPT_APPEND_NEWLINE)
