"""Count an instance's operations, and let a checkpoint through once per interval.

`instances/<key>.checkpoint`, decided under a lock of the kernel's, so that of two parallel hooks
one makes the checkpoint, with or without Redis:

    <time of the last checkpoint, ns> <operations> <checkpoints>
    <event> <due> <operations> <checkpoints>      the answers to the last 32 events: an event
    ...                                           fired twice counts once and is answered alike

On the hook path.
"""

import posix
import time
from _blake2 import blake2b

from hivepipe.home import make_folders
from hivepipe.jobs import Count

REMEMBERED = 32
_LOCK_SECS = 0.05
_LOCK_STEP_SECS = 0.001


def count_operation(
    path: str, event_keys: tuple[bytes, bytes], event_time_ns: int, interval_ns: int
) -> Count:
    """Count one operation. If the file cannot be used the checkpoint is let through uncounted."""
    names = [_name(key) for key in event_keys if key]
    try:
        descriptor = _open_locked(path)
    except OSError:
        return Count(True, None, None)
    try:
        last_ns, operations, checkpoints, answers = _parse(posix.pread(descriptor, 4096, 0))
        for answer in answers:
            if answer[0] in names:
                return Count(answer[1] == b"1", int(answer[2]), int(answer[3]))
        elapsed = event_time_ns - last_ns
        # A clock that was set back by more than an interval must not stop checkpoints.
        due = elapsed >= interval_ns or elapsed < -interval_ns
        operations += 1
        checkpoints += due
        answers.append([names[0], b"%d" % due, b"%d" % operations, b"%d" % checkpoints])
        head = b"%d %d %d\n" % (
            max(last_ns, event_time_ns) if due else last_ns,
            operations,
            checkpoints,
        )
        text = head + b"".join(b" ".join(answer) + b"\n" for answer in answers[-REMEMBERED:])
        posix.pwrite(descriptor, text, 0)
        posix.ftruncate(descriptor, len(text))
        return Count(due, operations, checkpoints)
    except (OSError, ValueError):
        return Count(True, None, None)
    finally:
        posix.close(descriptor)


def read_totals(path: str) -> Count:
    """Return the running totals without counting; unknown where nothing was ever counted."""
    try:
        descriptor = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NOFOLLOW)
    except OSError:
        return Count(False, None, None)
    try:
        _, operations, checkpoints, _ = _parse(posix.pread(descriptor, 4096, 0))
        return Count(False, operations, checkpoints)
    except OSError:
        return Count(False, None, None)
    finally:
        posix.close(descriptor)


def _parse(data: bytes) -> tuple[int, int, int, list[list[bytes]]]:
    """Read the file; a damaged one starts anew (the store keeps the greatest total it saw)."""
    try:
        head, *lines = data.splitlines()
        last_ns, operations, checkpoints = (int(part) for part in head.split())
        answers = [line.split() for line in lines]
    except ValueError:
        return 0, 0, 0, []
    if any(len(answer) != 4 for answer in answers):
        return last_ns, operations, checkpoints, []
    return last_ns, operations, checkpoints, answers


def _open_locked(path: str) -> int:
    flags = posix.O_RDWR | posix.O_CREAT | posix.O_CLOEXEC | posix.O_NOFOLLOW | posix.O_NONBLOCK
    try:
        descriptor = posix.open(path, flags, 0o600)
    except FileNotFoundError:
        make_folders(path.rsplit("/", 1)[0])
        descriptor = posix.open(path, flags, 0o600)
    end = time.monotonic() + _LOCK_SECS
    while True:
        try:
            posix.lockf(descriptor, posix.F_TLOCK, 0)
            return descriptor
        except OSError:
            if time.monotonic() > end:  # its holder was stopped: never wait for it
                posix.close(descriptor)
                raise
            time.sleep(_LOCK_STEP_SECS)


def _name(key: bytes) -> bytes:
    return blake2b(key, digest_size=8).hexdigest().encode()
