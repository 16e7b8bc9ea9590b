"""The folder of the exports, which are files for other programs.

A file is replaced atomically under one lock. Readers need no lock: they see the old file or the new
one.
"""

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hivepipe.files.exports import replace_own
from hivepipe.files.folders import Folder, make_root, try_lock
from hivepipe.files.log_lines import append_whole
from hivepipe.files.logs import claim_names, name_to_rotate_to
from hivepipe.files.manifest import Manifest

LOCK_SECS = 1.0
POLL_SECS = 0.02
TAIL_BYTES = 1 << 16
LOG_BYTES = 1_000_000

logger = logging.getLogger("hivepipe.exports")


class ExportFolder:
    """The open folder of exports. Its lock is held as long as the object is used."""

    def __init__(self, folder: Folder, lock: int, manifest: Manifest) -> None:
        """Keep folder, lock and manifest; the caller closes the folder and the lock."""
        self._folder = folder
        self._lock = lock
        self._manifest = manifest

    def stored_number(self) -> int:
        """Return the number stored in the lock file, or 0."""
        text = os.pread(self._lock, 32, 0)
        return int(text) if text.strip().isdigit() else 0

    def store_number(self, number: int) -> None:
        """Store a number in the lock file, for the next holder of the lock."""
        os.pwrite(self._lock, f"{number:>20}\n".encode(), 0)

    def replace(self, name: str, data: bytes) -> None:
        """Write a file atomically and durably.

        An existing file that hivepipe did not write is renamed first. A file that a person changed
        is kept, and nothing is written.
        """
        if not replace_own(self._folder, self._manifest, name, data):
            logger.warning("%s was changed by another program: hivepipe no longer writes it", name)

    def tail(self, name: str, size: int = TAIL_BYTES) -> bytes:
        """Return the last `size` bytes of a file, or b"" without a file."""
        try:
            descriptor = self._folder.open(name)
        except FileNotFoundError:
            return b""
        with os.fdopen(descriptor, "rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - size, 0))
            return file.read()

    def append(self, name: str, lines: list[str]) -> None:
        """Append lines to a log in one write. A large log is first renamed to `<name>.1`."""
        claim_names(self._folder.path, self._manifest)
        torn = self.tail(name, 1) not in (b"", b"\n")  # a power cut interrupted a write
        data = (("\n" if torn else "") + "".join(f"{line}\n" for line in lines)).encode()
        descriptor = self._folder.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            if os.fstat(descriptor).st_size > LOG_BYTES:
                path = Path(self._folder.path, name)
                self._folder.rename(name, name_to_rotate_to(path, self._manifest).name)
                self.append(name, lines)
                return
            append_whole(descriptor, data)
        finally:
            os.close(descriptor)


@contextmanager
def locked(path: str, name: str, manifest: Manifest) -> Iterator[ExportFolder]:
    """Hold the lock of this name. Raises TimeoutError if another process keeps it for a second."""
    make_root(path)
    with Folder(path) as folder:
        lock = folder.open(f".{name}.lock", os.O_RDWR | os.O_CREAT)
        try:
            _acquire(lock, name)
            yield ExportFolder(folder, lock, manifest)
        finally:
            os.close(lock)


def _acquire(lock: int, name: str) -> None:
    deadline = time.monotonic() + LOCK_SECS
    while not try_lock(lock):
        if time.monotonic() > deadline:
            raise TimeoutError(f"another process holds the lock of {name}")
        time.sleep(POLL_SECS)
