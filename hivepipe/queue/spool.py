"""Events on disk while Redis cannot be reached: one file per event, written atomically.

    <folder>/spool/<event_time_ns>_<pid>.json   the jobs of one event; names sort by age
    <folder>/call-notes                         notes of the guard: JSON arguments, one per line
    <folder>/lost-events                        times of lost events in ns, one per line

The folder is the home, else the runtime folder, else a folder in memory. The size of the last two
is limited. A spool file is first written under a `.tmp` name. Files are not synced: a killed
process loses nothing, but a power cut may lose the last second.

    {"v":1,"jobs":[{"twins":"","queue":"high","description":"...","envelope":{...}}]}

Hooks import this module.
"""

import posix

from hivepipe import sender
from hivepipe.events.job_plan import Message, dumps
from hivepipe.home import (
    Place,
    home_of_project,
    is_in_project,
    is_private_folder,
    make_folders,
    open_or_make,
    project_of,
    read_record,
    spare_folders,
)

NOTES = "call-notes"
LOST = "lost-events"
# A limit, because the stack that reads these files may never be started.
MOST_NOTES_BYTES = 1 << 26
MOST_LOST_BYTES = 1 << 20
# Limits of a spare folder, because other programs need the memory too.
MOST_SPARE_FILES = 4000
MOST_SPARE_BYTES = 1 << 24

_FULL = 28  # ENOSPC: importing `errno` costs another module


def spool_folders(home: str) -> list[str]:
    """Return every spool of a home; the spool in the home comes first."""
    return [f"{folder}/spool" for folder in all_folders(home)]


def all_folders(home: str) -> tuple[str, ...]:
    """Return every folder that may hold events of a home; the home comes first."""
    runtime = Place(home, home, read_record(home)).runtime
    if is_in_project(home):  # hooks write nothing into a work tree
        return home, home_of_project(project_of(home)), *spare_folders(home, runtime)
    return home, *spare_folders(home, runtime)


def keep_event(
    place: Place,
    event_time_ns: int,
    messages: list[Message],
    note: "tuple[str, list[str]] | None" = None,
) -> str:
    """Spool an event; return its file, or "" without messages. Raise OSError on failure."""
    try:
        return _keep_in(place.home, event_time_ns, messages, note)
    except OSError as error:
        for folder in spare_folders(place.home, place.runtime):
            try:
                _prepare(folder)
                path = _keep_in(folder, event_time_ns, messages, note)
            except OSError:
                continue
            _log_spare(place, folder, error)
            return path
        raise error


def _log_spare(place: Place, folder: str, error: OSError) -> None:
    from hivepipe.files.hook_log import log_line  # noqa: PLC0415  rare

    reason = posix.strerror(error.errno or 0)
    text = f"the home accepts no file ({reason}); event kept in {folder}"
    log_line(place.logs, "Spool", "WARNING", text)


def _keep_in(
    folder: str,
    event_time_ns: int,
    messages: list[Message],
    note: "tuple[str, list[str]] | None",
) -> str:
    path = write_spool(f"{folder}/spool", event_time_ns, messages) if messages else ""
    if note:
        _append(folder, NOTES, dumps(note[1]), MOST_NOTES_BYTES)
    return path


def make_private_folder(path: str) -> None:
    """Make a private folder without following links. Raise OSError if it cannot be made."""
    for each in (path.rpartition("/")[0], path):
        make_folders(each)
        if not is_private_folder(each):
            raise PermissionError(f"{each} must be a folder that only you can enter (0700)")


def _prepare(folder: str) -> None:
    """Make a spare folder. Raise OSError if it cannot be made, is not private, or is full."""
    make_private_folder(folder)
    try:
        found = posix.listdir(f"{folder}/spool")
    except FileNotFoundError:
        return
    sizes = [posix.lstat(f"{folder}/spool/{name}").st_size for name in found]
    if len(sizes) >= MOST_SPARE_FILES or sum(sizes) >= MOST_SPARE_BYTES:
        raise OSError(_FULL, "full")


def count_lost(place: Place, event_time_ns: int) -> None:
    """Record a lost event. File errors are ignored.

    The file in the home already has a disk block (hivepipe.queue.lost_events). So the line can be
    written even if the disk is full or the folder allows no new file.
    """
    for folder in (place.home, *spare_folders(place.home, place.runtime)):
        try:
            if folder != place.home:
                make_private_folder(folder)
            _append(folder, LOST, f"{event_time_ns}", MOST_LOST_BYTES)
        except OSError:
            continue
        return


def _append(folder: str, name: str, line: str, most_bytes: int) -> None:
    """Append a line to a file; append it again if the file was renamed and may have been read.

    Nothing is appended to a file that has `most_bytes` already. Raise OSError on failure.
    """
    path = f"{folder}/{name}"
    # The line starts with a newline, because the previous line may be incomplete.
    data = f"\n{line}\n".encode("ascii")
    for _ in range(3):
        descriptor = open_or_make(path, posix.O_WRONLY | posix.O_APPEND)
        try:
            before = posix.fstat(descriptor)
            if before.st_size >= most_bytes:
                return
            if posix.write(descriptor, data) < len(data):
                raise OSError(_FULL, "full")
            if posix.lstat(path).st_ino == before.st_ino:
                return
        except FileNotFoundError:
            continue
        finally:
            posix.close(descriptor)


def write_spool(folder: str, event_time_ns: int, messages: list[Message]) -> str:
    """Write the messages of one event; return the path. Raise OSError if nothing was written."""
    path = temporary = f"{folder}/{event_time_ns:020d}_{sender.pid()}.json"
    jobs = ",".join(_entry(message) for message in messages)
    data = f'{{"v":1,"jobs":[{jobs}]}}\n'.encode("ascii")
    _write(f"{path}.tmp", data)
    while posix.access(path, posix.F_OK):
        if sender.is_gone():
            # A killed intake has spooled this event already. The intake's file stays, because it
            # may have the additional jobs of a session's first event.
            posix.unlink(f"{temporary}.tmp")
            return path
        event_time_ns += 1  # a worker has stored follow-up jobs of the event under this name
        path = f"{folder}/{event_time_ns:020d}_{sender.pid()}.json"
    posix.rename(f"{temporary}.tmp", path)
    return path


def _entry(message: Message) -> str:
    around = {"twins": message.twins, "queue": message.queue, "description": message.description}
    return f'{dumps(around)[:-1]},"envelope":{message.envelope}}}'


def _write(path: str, data: bytes) -> None:
    descriptor = open_or_make(path, posix.O_WRONLY | posix.O_EXCL)
    try:
        view = memoryview(data)
        while view:
            view = view[posix.write(descriptor, view) :]
    except OSError:
        posix.unlink(path)  # the disk is full: remove the partial file
        raise
    finally:
        posix.close(descriptor)
