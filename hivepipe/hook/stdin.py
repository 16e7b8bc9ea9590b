"""Read the event from stdin, limited in time and size, without waiting for EOF.

Claude Code has been seen to leave the pipe open (claude-code#79508). An event is complete at EOF,
or when the bytes read are one whole JSON object. On the hook path.
"""

import posix

from hivepipe.events.claude_code import Fields, parse_object

LIMIT_BYTES = 64 * 1024 * 1024
_CHUNK_BYTES = 1 << 16  # the capacity of a pipe; malloc would map a larger buffer
_LATE_BYTES = 1 << 20  # read after the deadline: the content of a pipe, not a whole file
_IN_VAIN_BYTES = 1 << 26  # parsed before the object was complete; then the end of the file ends it


class Input:
    """The bytes read, the object in them if known, and why reading ended early, or ""."""

    __slots__ = ("data", "fields", "trouble")

    def __init__(self, data: bytes, trouble: str = "", fields: Fields | None = None) -> None:
        self.data = data
        self.trouble = trouble
        self.fields = fields


def read_event(descriptor: int = 0) -> Input:
    """Read one event of at most 64 MB; `stop_waiting` ends the read early."""
    chunks: list[bytes] = []
    size = late = in_vain = 0
    try:
        while late < _LATE_BYTES:
            chunk = posix.read(descriptor, _CHUNK_BYTES)
            if not chunk:
                return Input(b"".join(chunks))
            chunks.append(chunk)
            size += len(chunk)
            if size > LIMIT_BYTES:
                return Input(b"".join(chunks), "event larger than 64 MB")
            # The last byte alone is not enough: a writer may pause after an inner brace.
            if chunk.rstrip().endswith(b"}") and in_vain < _IN_VAIN_BYTES:
                if whole := _whole(b"".join(chunks)):
                    return whole
                in_vain += size
            if not posix.get_blocking(descriptor):
                late += len(chunk)
    except BlockingIOError:
        pass
    except OSError:
        return Input(b"".join(chunks), "stdin could not be read")
    posix.set_blocking(descriptor, True)
    return Input(b"".join(chunks), "stdin was not closed in time")


def _whole(data: bytes) -> Input | None:
    """Return the event if the bytes are one whole JSON object."""
    problems: list[str] = []
    fields = parse_object(data, problems)
    return None if fields is None or problems else Input(data, fields=fields)


def stop_waiting(descriptor: int = 0) -> None:
    """End the read with the bytes received so far; called by a signal handler.

    Python repeats an interrupted read, which then does not block. An exception raised here could
    hit a read that has just returned, and lose its bytes.
    """
    posix.set_blocking(descriptor, False)
