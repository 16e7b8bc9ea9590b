"""The id of the job that is being executed, in a file that can be read after a kill -9.

Of the jobs that a dead worker had claimed, only the job in this file may have caused its death. The
blamed job runs alone the next time, and fails permanently after its third kill.
"""

import logging
import mmap
import os

_SIZE_BYTES = 64

logger = logging.getLogger("hivepipe.worker")


class CrashMarker:
    """A memory-mapped file. Its content survives the process, and a write costs only one memcpy."""

    def __init__(self, path: str) -> None:
        """Open or make the file. If the disk is full, no id is recorded, and no job is blamed."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            # The file needs a disk block: on a full disk, a write to a mapped hole kills the
            # process.
            os.pwrite(descriptor, os.pread(descriptor, _SIZE_BYTES, 0).ljust(_SIZE_BYTES, b"\0"), 0)
            self._memory = mmap.mmap(descriptor, _SIZE_BYTES)
        except OSError as error:
            logger.warning("%s: %s; a job that kills this worker is not found", path, error)
            self._memory = mmap.mmap(-1, _SIZE_BYTES)
        finally:
            os.close(descriptor)

    def record(self, job_id: str) -> None:
        """Record the id of the job that is being executed, or "" when it has ended."""
        self._memory[:] = job_id.encode("ascii", "replace")[:_SIZE_BYTES].ljust(_SIZE_BYTES, b"\0")

    def read(self) -> str:
        return bytes(self._memory[:]).rstrip(b"\0").decode("ascii", "replace")
