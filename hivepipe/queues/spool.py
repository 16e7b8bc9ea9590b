"""Jobs on disk while Redis cannot be reached: one file per event, whole or not at all.

`spool/<event_time_ns>_<pid>.json`, written under a `.tmp` name first. Names sort by age. Not
synced: killing any process loses nothing, a power cut may lose the last second.

    {"v":1,"jobs":[{"twins":"","queue":"high","description":"...","envelope":{...}}]}

On the hook path.
"""

import posix

from hivepipe.home import make_folders
from hivepipe.jobs import Message, dumps


def write_spool(folder: str, event_time_ns: int, messages: list[Message]) -> str:
    """Keep the messages of one event; return the file's path. OSError: nothing was kept."""
    path = f"{folder}/{event_time_ns:020d}_{posix.getpid()}.json"
    jobs = ",".join(_entry(message) for message in messages)
    data = f'{{"v":1,"jobs":[{jobs}]}}\n'.encode("ascii")
    try:
        _write(f"{path}.tmp", data)
    except FileNotFoundError:
        make_folders(folder)
        _write(f"{path}.tmp", data)
    posix.rename(f"{path}.tmp", path)
    return path


def _entry(message: Message) -> str:
    around = {"twins": message.twins, "queue": message.queue, "description": message.description}
    return f'{dumps(around)[:-1]},"envelope":{message.envelope}}}'


def _write(path: str, data: bytes) -> None:
    flags = posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC | posix.O_NOFOLLOW
    descriptor = posix.open(path, flags, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[posix.write(descriptor, view) :]
    except OSError:
        posix.unlink(path)  # a full disk: leave no half file behind
        raise
    finally:
        posix.close(descriptor)
