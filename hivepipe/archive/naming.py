"""The name of an archive. The name is made from the time of the first line and never changes.

main-session/2025-01/2025-01-10_14-30-00_<session>
subagent/<type>/2025-01/2025-01-10_14-35-00_<agent>
"""

import re
from _blake2 import blake2b
from collections.abc import Iterator
from itertools import count
from urllib.parse import quote

LONGEST_FOLDER_NAME = 200  # a file name may have 255 bytes
_PATH = re.compile(
    r"(main-session|subagent/(?!\.+/)[\w.~%-]+)/\d{4}-\d\d/[\w.-]+\.jsonl(\.gz)?", re.ASCII
)
_NAME = re.compile(r"(\d{4}-\d\d-\d\d)_(\d\d)-(\d\d)-(\d\d)_[\w.-]+", re.ASCII)


class ArchiveName:
    """The location of one archive below the root, without a suffix."""

    def __init__(self, folders: tuple[str, ...], stem: str) -> None:
        """`folders` are the path segments down to the month."""
        self.folders = folders
        self.stem = stem

    @classmethod
    def made(cls, session: str, agent: str, agent_type: str, time: str) -> "ArchiveName":
        """Return the name for a transcript whose first line has this time (ISO, UTC)."""
        day, clock = time[:10], time[11:19].replace(":", "-")
        kind = ("subagent", folder_name(agent_type)) if agent else ("main-session",)
        return cls((*kind, day[:7]), f"{day}_{clock}_{agent or session}")

    @classmethod
    def of_path(cls, path: str) -> "ArchiveName":
        """Return the name of the archive whose lines are in the file `path`, below the root."""
        *folders, file = path.split("/")
        return cls(tuple(folders), file.removesuffix(".gz").removesuffix(".jsonl"))

    @property
    def path(self) -> str:
        """Return the path of the lines' file, relative to the root."""
        return "/".join((*self.folders, f"{self.stem}.jsonl"))

    @property
    def started_at(self) -> str:
        """Return the time in the name, as an ISO time in UTC, or "" if the name has none."""
        found = _NAME.fullmatch(self.stem)
        return "{}T{}:{}:{}Z".format(*found.groups()) if found else ""

    def choices(self, session: str) -> Iterator["ArchiveName"]:
        """Yield this name, then other names to use if the earlier names are taken."""
        yield self
        yield ArchiveName(self.folders, f"{self.stem}_{session}")
        for number in count(2):
            yield ArchiveName(self.folders, f"{self.stem}_{number}")


def is_archive_path(path: str) -> bool:
    """Tell whether a path, relative to the root, is a valid path of an archive."""
    return _PATH.fullmatch(path) is not None


def folder_name(agent_type: str) -> str:
    """Return the folder name for an agent type, which may have any characters."""
    name = quote(agent_type, safe="", errors="replace")
    if not name.strip("."):
        name = name.replace(".", "%2E") or "%"
    if len(name) > LONGEST_FOLDER_NAME:
        digest = blake2b(agent_type.encode("utf-8", "replace"), digest_size=8).hexdigest()
        name = f"{name[: LONGEST_FOLDER_NAME - 17]}-{digest}"
    return name
