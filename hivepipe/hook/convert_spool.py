"""Turn raw events in a spool into spool files: `python -I -m hivepipe.hook.convert_spool FILE...`.

Each event is processed as its hook would do it without Redis: the same jobs get the same ids. So an
event counts once, even if it is converted twice, or if the process `intake` took it and was then
killed.
"""

import errno
import fcntl
import os
import sys
from contextlib import suppress
from pathlib import Path

from hivepipe.errors import is_out_of_memory
from hivepipe.events import claude_code
from hivepipe.files.regular_file import read_bytes
from hivepipe.hook import intake
from hivepipe.hook.frame import MAGIC, MOST_EVENT_BYTES, MOST_HEAD_BYTES, PREFIX_BYTES, Frame
from hivepipe.jobs.retry import DISK_ERRORS
from hivepipe.queue.spooled import set_aside

TRIED_AGAIN = DISK_ERRORS | {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
LARGEST_FRAME = PREFIX_BYTES + MOST_HEAD_BYTES + MOST_EVENT_BYTES


def main() -> None:
    """Convert the raw events in the files that the command line names, in order."""
    os.umask(0o077)
    claude_code.scan_without_json()
    for name in sys.argv[1:]:
        _convert_alone(Path(name))


def _convert_alone(path: Path) -> None:
    """Convert one raw event's file, unless it is gone or another process converts it."""
    try:  # opened for writing, because NFS requires that for an exclusive lock
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.exists():
            _convert(path)
    except OSError:  # another process holds the lock, or the disk has an error
        return
    finally:
        os.close(descriptor)


def _convert(path: Path) -> None:
    try:
        data = read_bytes(path, LARGEST_FRAME)
        if data[:3] == MAGIC[:3] and data[:4] > MAGIC:
            return  # a newer hivepipe wrote it
        frame = Frame(data)
        _take_in(path, frame)
    except Exception as error:  # noqa: BLE001  the event stays on disk, with the reason
        if intake.take_back:
            with suppress(OSError, MemoryError):
                intake.take_back()
        if getattr(error, "errno", None) not in TRIED_AGAIN and not is_out_of_memory(error):
            with suppress(OSError):
                set_aside(path, f"cannot be converted: {type(error).__name__}: {error}")
    else:
        path.unlink(missing_ok=True)


def _take_in(path: Path, frame: Frame) -> None:
    """Write the spool file of an event, after removing what a killed converter left of it."""
    path.with_suffix(".json.tmp").unlink(missing_ok=True)
    frame.sender.is_gone = True
    frame.act_as_sender()
    intake.take_back = None
    if not intake.is_left_to_settings(frame.name):
        intake.take_in(frame.name, frame.event, frame.began_ns)


if __name__ == "__main__":
    main()
