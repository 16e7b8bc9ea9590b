"""Read the spool, oldest file first, and move unusable files to `bad/`."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

import orjson

from hivepipe.errors import BadEnvelopeError, NewerEnvelopeError
from hivepipe.events.job_plan import Message, utc
from hivepipe.files.folders import Folder
from hivepipe.files.regular_file import read_bytes
from hivepipe.home import is_private_folder
from hivepipe.jobs.envelope import Envelope, envelope_of
from hivepipe.queue.spool import NOTES, all_folders, spool_folders

LIMIT_BYTES = 1 << 20
SPOOL_VERSION = 1  # version of the file format around the envelopes
_TORN_AFTER_SECS = 60.0
JOBS, RAW = ".json", ".raw"  # the jobs of an event; an event as the native hook wrote it
_NAME = re.compile(r"\d+_\d+\.(json|raw)(\.tmp)?", re.ASCII)


@dataclass(frozen=True)
class SpooledJob:
    """One job of a spool file, as a message to send and as an envelope to execute."""

    message: Message
    envelope: Envelope


def is_spool_file(name: str) -> bool:
    """Tell whether a file name has the form that hooks give to spool files."""
    return _NAME.fullmatch(name) is not None


def spool_files(folder: Path) -> list[Path]:
    """Return the complete spool files of jobs, without raw events, oldest first."""
    return _files(folder, JOBS)


def waiting_files(folder: Path) -> list[Path]:
    """Return the complete spool files of a folder, with raw events, oldest first."""
    return _files(folder, JOBS, RAW)


def waiting_events(home: str) -> list[Path]:
    """Return the files of all spooled events of a home, oldest first."""
    found = [path for folder in spool_folders(home) for path in waiting_files(Path(folder))]
    return sorted(found, key=lambda path: path.name)


def raw_events(home: str) -> list[Path]:
    """Return the raw events of a home, oldest first per spool; skip spools that are unreadable."""
    found: list[Path] = []
    for folder in spool_folders(home):
        with suppress(OSError):
            found += _files(Path(folder), RAW)
    return found


def _files(folder: Path, *suffixes: str) -> list[Path]:
    try:
        names = [entry.name for entry in os.scandir(folder) if entry.name.endswith(suffixes)]
    except FileNotFoundError:
        return []
    return [folder / name for name in sorted(names)]


def own_folders(home: str) -> list[str]:
    """Return the folders that may hold events of a home, except other users' folders."""
    at_home, *spare = all_folders(home)
    return [at_home, *filter(is_private_folder, spare)]


def has_spooled(home: str) -> bool:
    """Tell whether an event or a call note is on disk; folders that cannot be read are skipped."""
    return any(_holds(folder, NOTES, ("",)) for folder in all_folders(home)) or any(
        _holds(folder, "", (JOBS, RAW)) for folder in spool_folders(home)
    )


def _holds(folder: str, beginning: str, ends: tuple[str, ...]) -> bool:
    """Tell whether the folder has a file with this prefix and one of the suffixes."""
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    return any(name.startswith(beginning) and name.endswith(ends) for name in names)


def read_spool_file(path: Path) -> list[SpooledJob]:
    """Return an event's jobs. Raise OSError, BadEnvelopeError, or its kind NewerEnvelopeError."""
    found = path.lstat()
    if not S_ISREG(found.st_mode):
        raise BadEnvelopeError("not a regular file")
    if found.st_size > LIMIT_BYTES:
        raise BadEnvelopeError("larger than any event's jobs")
    try:
        content = orjson.loads(read_bytes(path, LIMIT_BYTES))
    except orjson.JSONDecodeError as error:
        raise BadEnvelopeError("torn, or not JSON") from error
    version = content.get("v") if isinstance(content, dict) else None
    if isinstance(version, int) and version > SPOOL_VERSION:
        raise NewerEnvelopeError(version)
    entries = content.get("jobs") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not entries or version != SPOOL_VERSION:
        raise BadEnvelopeError("not a spool file of this version")
    return [_spooled_job(entry) for entry in entries]


def _spooled_job(entry: object) -> SpooledJob:
    if not isinstance(entry, dict) or entry.get("queue") not in ("high", "medium", "low"):
        raise BadEnvelopeError("an entry is not a job")
    envelope = envelope_of(entry.get("envelope"))
    if not (envelope.id.isalnum() and envelope.id.isascii()):
        raise BadEnvelopeError("an id is not valid")
    message = Message(
        id=envelope.id,
        twins=str(entry.get("twins") or ""),
        queue=entry["queue"],
        description=str(entry.get("description") or envelope.operation),
        created_at=utc(envelope.event_time_ns),
        envelope=json.dumps(entry["envelope"], separators=(",", ":")),  # ASCII, as hooks send it
    )
    return SpooledJob(message, envelope)


def set_aside(path: Path, reason: str) -> None:
    """Move an unusable file to `bad/`, and write the reason to a file beside it."""
    with Folder(f"{path.parent}/bad", make=True) as bad:
        bad.replace(f"{path.name}.reason", f"{reason}\n".encode())
        path.rename(f"{bad.path}/{path.name}")


def abandoned(folder: Path, now: float) -> Iterator[Path]:
    """Yield incomplete files that are older than any running hook can be."""
    for path in folder.glob("*.tmp"):
        try:
            if now - path.stat().st_mtime > _TORN_AFTER_SECS:
                yield path
        except FileNotFoundError:
            continue
