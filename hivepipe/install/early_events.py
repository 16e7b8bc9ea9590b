"""Events from before a project was registered, which are spooled in the default home."""

from contextlib import suppress
from functools import cache
from itertools import chain
from pathlib import Path

from hivepipe.errors import BadEnvelopeError, NewerEnvelopeError
from hivepipe.home import default_home, locate, read_record
from hivepipe.jobs.envelope import Envelope
from hivepipe.queue.raw_spool import convert_all
from hivepipe.queue.spooled import own_folders, read_spool_file, waiting_files
from hivepipe.queue.spooled_notes import move_notes
from hivepipe.stack.copying import copy_file


def take_early_events(project: str, home: str) -> None:
    """Move a registered project's waiting events from the default home to the project's own home.

    If the default home is registered, its own stack stores the events, and no event is moved. If
    the disk fails, the next call moves the rest.
    """
    default = default_home()
    if read_record(default):
        return
    located = cache(locate)  # many events name the same few folders
    with suppress(OSError):
        convert_all(default)
        folders = own_folders(default)
        spools = [Path(folder, "spool") for folder in folders]
        found = {path: _first_job(path) for path in chain.from_iterable(map(waiting_files, spools))}
        early = {
            path: job.session
            for path, job in found.items()
            if job and job.project and located(job.project).project == project
        }
        for folder in folders:
            move_notes(folder, home, set(early.values()) - {""})
        for path in early:
            copy_file(str(path), f"{home}/spool/{path.name}")
            path.unlink(missing_ok=True)


def _first_job(path: Path) -> Envelope | None:
    """Return the first job of a spooled event, or None if it cannot be read."""
    try:
        return read_spool_file(path)[0].envelope
    except (BadEnvelopeError, NewerEnvelopeError, OSError):
        return None
