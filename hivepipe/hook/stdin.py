"""Read the event from stdin, limited in time and size, without waiting for EOF.

Claude Code has been seen to leave the pipe open (claude-code#79508). An event is complete at EOF,
or when the bytes read are one whole JSON object. Hooks import this module.
"""

import posix

WAIT_SECS = 0.4  # for the event
LIMIT_BYTES = 64 * 1024 * 1024
_CHUNK_BYTES = 1 << 16  # the capacity of a pipe; malloc would map a larger buffer
_FILE_KIND, _PIPE, _SOCKET = 0o170000, 0o010000, 0o140000
_LATE_BYTES = 1 << 20  # read after the deadline: the content of a pipe, not a whole file


class Input:
    """The bytes read, and the reason why reading ended early, or ""."""

    __slots__ = ("data", "trouble")

    def __init__(self, data: bytes, trouble: str = "") -> None:
        self.data = data
        self.trouble = trouble


def read_event(descriptor: int = 0) -> Input:
    """Read one event of at most 64 MB; `stop_waiting` ends the read early."""
    chunks: list[bytes] = []
    braces = Braces()
    size = late = 0
    try:
        while late < _LATE_BYTES:
            chunk = posix.read(descriptor, _CHUNK_BYTES)
            if not chunk:
                return Input(b"".join(chunks))
            chunks.append(chunk)
            size += len(chunk)
            if size > LIMIT_BYTES:
                return Input(b"".join(chunks), "event larger than 64 MB")
            braces.count(chunk)
            # The last byte alone is not enough: a writer may pause after an inner brace.
            if chunk.rstrip().endswith(b"}") and braces.are_whole:
                return Input(b"".join(chunks))
            if not posix.get_blocking(descriptor):
                late += len(chunk)
    except BlockingIOError:
        pass
    except OSError:
        return Input(b"".join(chunks), "stdin could not be read")
    posix.set_blocking(descriptor, True)
    return Input(b"".join(chunks), "stdin was not closed in time")


def is_pipe(descriptor: int = 0) -> bool:
    return posix.fstat(descriptor).st_mode & _FILE_KIND in (_PIPE, _SOCKET)


def stop_waiting(descriptor: int = 0) -> None:
    """End the read with the bytes received so far; called by a signal handler.

    Python repeats the interrupted read, which then does not block. An exception raised here could
    interrupt a read that has just returned, and lose its bytes.
    """
    posix.set_blocking(descriptor, False)


class Braces:
    """Counts the braces of a text outside of strings, chunk by chunk.

    Parsing after each chunk would be too slow, because CPython's scanner is slow on an incomplete
    text.
    """

    __slots__ = ("closed", "held", "in_string", "opened")

    def __init__(self) -> None:
        self.opened = self.closed = self.in_string = 0
        self.held = b""  # a backslash at a chunk's end: it escapes the next character

    def count(self, chunk: bytes) -> None:
        """Count the braces of the next chunk of the text."""
        text = self.held + chunk
        kept = text.rstrip(b"\\")
        self.held = b"\\" * ((len(text) - len(kept)) % 2)
        # Without escaped backslashes and quotes, splitting at the quotes leaves the parts outside
        # of strings at every second place.
        pieces = kept.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = b"".join(pieces[self.in_string :: 2])
        self.opened += outside.count(b"{")
        self.closed += outside.count(b"}")
        self.in_string = (self.in_string + len(pieces) - 1) % 2

    @property
    def are_whole(self) -> bool:
        """Tell whether the text so far is one whole JSON object."""
        return self.opened == self.closed > 0 and not self.in_string
