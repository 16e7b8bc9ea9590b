"""Read the event from stdin: bounded in time and size, and without waiting for an EOF.

Claude Code has been seen to leave the pipe open (claude-code#79508). An event is complete at
EOF, or when what was read is one whole JSON object.
On the hook path.
"""

import posix

LIMIT_BYTES = 64 * 1024 * 1024
_CHUNK_BYTES = 1 << 20


class LateError(Exception):
    """The deadline has passed; raised by the caller's timer."""


reading = False  # may the caller's timer raise now?


class Input:
    """The bytes that arrived, and why reading ended early ("" if it did not)."""

    __slots__ = ("data", "trouble")

    def __init__(self, data: bytes, trouble: str = "") -> None:
        """Keep both."""
        self.data = data
        self.trouble = trouble


def read_event(descriptor: int = 0) -> Input:
    """Read one event, at most 64 MB of it; `LateError`, raised into the reading, ends it too."""
    global reading  # there is one stdin
    chunks: list[bytes] = []
    size = 0
    try:
        reading = True
        while True:
            chunk = posix.read(descriptor, _CHUNK_BYTES)
            if not chunk:
                return Input(b"".join(chunks))
            chunks.append(chunk)
            size += len(chunk)
            if size > LIMIT_BYTES:
                return Input(b"".join(chunks), "event larger than 64 MB")
            # Not a mere look at the last byte: a pause of the writer may fall right behind an
            # inner brace.
            if chunk.rstrip().endswith(b"}") and is_whole(data := b"".join(chunks)):
                return Input(data)
    except LateError:
        return Input(b"".join(chunks), "stdin was not closed in time")
    except OSError:
        return Input(b"".join(chunks), "stdin could not be read")
    finally:
        reading = False


def is_whole(data: bytes) -> bool:
    """Does the text hold one whole JSON object? Braces are counted outside of strings.

    Trying to parse would not do: CPython's scanner is costly on an unfinished text.
    """
    # Without escaped backslashes and quotes, splitting at the quotes leaves what stands outside
    # of strings at the even places.
    bare = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    if bare.count(b'"') % 2:
        return False
    outside = b"".join(bare.split(b'"')[::2])
    return outside.count(b"{") == outside.count(b"}") > 0
