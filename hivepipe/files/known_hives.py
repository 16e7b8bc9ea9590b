"""The trusted `.hive` folders of a home: `<home>/hives`, one path per line.

A `.hive` folder names processes to signal and prompts to run. A folder that is not listed is not
trusted, because it may have come with a repository.
"""

import os

from hivepipe.home import make_folders, read_small, short_hash, state_folder

_NAME = "hives"
_LARGEST_BYTES = 1 << 16


def known(home: str) -> list[str]:
    """Return the `.hive` folders that report to a home."""
    return [line for line in read_small(f"{home}/{_NAME}", _LARGEST_BYTES).split("\n") if line]


def trusted_state_folder(root: str) -> str:
    """Return the folder with the trusted state of the `.hive` whose real path is `root`."""
    return f"{state_folder()}/hives/{short_hash(root)}"


def add(home: str, root: str) -> None:
    """Add the path of a `.hive` folder in one write, so that no concurrent addition is lost."""
    if root in known(home):
        return
    make_folders(home)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    file = os.open(f"{home}/{_NAME}", flags, 0o600)
    try:
        os.write(file, os.fsencode(f"{root}\n"))
    finally:
        os.close(file)
