"""The path of a home's database: in the home, unless SQLite's WAL would be unsafe there.

Machines that share a file system (network, virtiofs, 9p, FUSE) do not share the memory that WAL
needs. Within minutes the database would be corrupt, and SQLite would report no error. SQLite also
cannot open a file whose path is longer than 512 bytes.
"""

import os
import re
from pathlib import Path

from hivepipe.files.regular_file import read_bytes
from hivepipe.home import IN_PROJECT, absolute, short_hash, state_folder, tree_of
from hivepipe.settings import variable

# Suffixes of the files that SQLite keeps for a database
SUFFIXES = ("", "-wal", "-shm", "-journal")
LONGEST_HOME_BYTES = 512 - len("/hive.db-journal") - 16

_SHARED = (
    "9p",
    "afs",
    "ceph",
    "cifs",
    "gfs2",
    "lustre",
    "nfs",
    "ocfs2",
    "smb",
    "vboxsf",
    "virtiofs",
)
_WITHOUT_MODES = ("exfat", "fuseblk", "msdos", "ntfs", "vfat")
_ESCAPED = re.compile(r"\\([0-7]{3})")  # \040 is a space
_MOUNTS = Path("/proc/self/mountinfo")  # Linux only; without it the home is used without a check


def database_path(home: str) -> Path:
    """Return HIVEPIPE_DB, or the path of hive.db in the home, its work tree or the state folder."""
    named = variable("HIVEPIPE_DB")
    return Path(absolute(named)) if named else database_in(home, tree_of(home))


def database_in(home: str, tree: str) -> Path:
    """Return the database path in the work tree `tree`, or in the home if `tree` is "".

    If that path is too long or its file system is shared, return a path in the state folder.
    """
    folder = f"{tree}{IN_PROJECT}" if tree else home
    if len(os.fsencode(folder)) > LONGEST_HOME_BYTES or is_on_shared_file_system(folder):
        return Path(state_folder(), "databases", short_hash(home), "hive.db")
    return Path(folder, "hive.db")


def files_of_database(path: Path) -> list[str]:
    """Return the files of SQLite and the backups of migrations, relative to their folder."""
    copies = sorted(path.parent.glob("backups/hive-before-*.db"))
    return [
        *(f"{path.name}{suffix}" for suffix in SUFFIXES),
        *(str(copy.relative_to(path.parent)) for copy in copies),
    ]


def file_system_without_modes(path: str) -> str:
    """Return the file system type of a path if `chmod` has no effect there, or ""."""
    found = file_system_of(path, _mounts())
    return found if found in _WITHOUT_MODES else ""


def is_on_shared_file_system(home: str) -> bool:
    """Tell whether another machine can use a home's files; return False if mounts are unknown."""
    return is_shared(file_system_of(home, _mounts()))


def is_shared(file_system: str) -> bool:
    """Tell whether another machine can use files of this file system type."""
    return file_system.startswith((*_SHARED, "fuse."))


def file_system_of(path: str, mounts: str) -> str:
    """Return the file system type of a path; `mounts` is a text in mountinfo's format."""
    found, longest = "", -1
    for line in mounts.split("\n"):  # the kernel escapes no other white space
        before, separator, after = line.partition(" - ")
        fields = before.split(" ")
        if not separator or len(fields) < 5:
            continue
        point = _ESCAPED.sub(lambda found: chr(int(found[1], 8)), fields[4]).rstrip("/")
        if (path == point or path.startswith(f"{point}/")) and len(point) >= longest:
            found, longest = after.split()[0], len(point)
    return found


def _mounts() -> str:
    try:
        return os.fsdecode(read_bytes(_MOUNTS))  # `read_text` would change a carriage return
    except OSError:
        return ""
