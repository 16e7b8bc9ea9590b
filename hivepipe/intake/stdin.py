"""Read the event from stdin: bounded in time and size, and without waiting for an EOF.

Claude Code has been seen to leave the pipe open (claude-code#79508). An event is complete at
EOF, or when what was read is one whole JSON object.
On the hook path.
"""

import posix

LIMIT_BYTES = 64 * 1024 * 1024
_CHUNK_BYTES = 1 << 20
_LATE_BYTES = 1 << 20  # after the deadline: what a pipe may hold, not a file to its end


class Input:
    """The bytes that arrived, and why reading ended early ("" if it did not)."""

    __slots__ = ("data", "trouble")

    def __init__(self, data: bytes, trouble: str = "") -> None:
        """Keep both."""
        self.data = data
        self.trouble = trouble


def read_event(descriptor: int = 0) -> Input:
    """Read one event, at most 64 MB of it; `stop_waiting` ends it too."""
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
            # Not a mere look at the last byte: a pause of the writer may fall right behind an
            # inner brace.
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


def stop_waiting(descriptor: int = 0) -> None:
    """End the reading at what has arrived; called by a signal's handler, in a read or before it.

    Python repeats an interrupted read, which then waits no longer. An exception raised here could
    meet a read that has just returned, and drop what it had.
    """
    posix.set_blocking(descriptor, False)


class Braces:
    """Counts the braces of a text outside of its strings, chunk by chunk.

    Trying to parse would not do: CPython's scanner is costly on an unfinished text.
    """

    __slots__ = ("closed", "held", "in_string", "opened")

    def __init__(self) -> None:
        """Nothing is read yet."""
        self.opened = self.closed = self.in_string = 0
        self.held = b""  # a backslash at a chunk's end: what it escapes comes with the next

    def count(self, chunk: bytes) -> None:
        """Go on with the next chunk."""
        text = self.held + chunk
        kept = text.rstrip(b"\\")
        self.held = b"\\" * ((len(text) - len(kept)) % 2)
        # Without escaped backslashes and quotes, splitting at the quotes leaves what stands
        # outside of strings at every second place.
        pieces = kept.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = b"".join(pieces[self.in_string :: 2])
        self.opened += outside.count(b"{")
        self.closed += outside.count(b"}")
        self.in_string = (self.in_string + len(pieces) - 1) % 2

    @property
    def are_whole(self) -> bool:
        """Does the text so far hold one whole JSON object?"""
        return self.opened == self.closed > 0 and not self.in_string
