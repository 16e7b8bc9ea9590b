"""Which job is being executed, readable after a kill -9: the writer's flight recorder.

Of the two hundred jobs a dead writer held, one may have killed it. It alone is blamed, runs alone
the next time, and is dead after its third kill; the others are innocent.
"""

import mmap
import os

_SIZE_BYTES = 64


class BlackBox:
    """A mapped file: what is written into it outlives the process, at the cost of a memcpy."""

    def __init__(self, path: str) -> None:
        """Open or make the file."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.ftruncate(descriptor, _SIZE_BYTES)
            self._memory = mmap.mmap(descriptor, _SIZE_BYTES)
        finally:
            os.close(descriptor)

    def record(self, job_id: str) -> None:
        """Name the job that is being executed; "" when none is."""
        self._memory[:] = job_id.encode("ascii", "replace")[:_SIZE_BYTES].ljust(_SIZE_BYTES, b"\0")

    def read(self) -> str:
        """Return what was recorded last."""
        return bytes(self._memory[:]).rstrip(b"\0").decode("ascii", "replace")
