"""Which `.hive` folders report to a home: `<home>/hives`, a path per line.

Such a folder names processes to signal and prompts to run: one that is not listed, because it came
with a repository, is not believed.
"""

from hivepipe.home import make_folders, read_small, write_small

_NAME = "hives"
_LARGEST_BYTES = 1 << 16


def known(home: str) -> list[str]:
    """Return the `.hive` folders that report to a home."""
    return [line for line in read_small(f"{home}/{_NAME}", _LARGEST_BYTES).splitlines() if line]


def add(home: str, root: str) -> None:
    """Let one more report to it."""
    listed = known(home)
    if root not in listed:
        make_folders(home)
        write_small(f"{home}/{_NAME}", "".join(f"{path}\n" for path in [*listed, root]))
