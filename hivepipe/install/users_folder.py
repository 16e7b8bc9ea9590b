"""The user's state folder: made by the first `init`, gone after the last `uninstall`."""

import os

from hivepipe.home import read_small, state_folder, write_small
from hivepipe.install.edits import missing_folders, remove_if_empty
from hivepipe.stack.lock import make_private

_MADE = "made"  # the folders above that were not there before, a line each, outermost first


def make() -> None:
    """Make the folder, and remember which folders had to be made for it."""
    missing = missing_folders(f"{state_folder()}/{_MADE}")
    make_private(state_folder())
    if missing:
        write_small(f"{state_folder()}/{_MADE}", "".join(f"{path}\n" for path in missing))


def tidy() -> None:
    """Remove the folder if nothing of any project is in it, and those made for it."""
    for name in ("projects", "changed", "databases", "default"):
        remove_if_empty(f"{state_folder()}/{name}")
    note = f"{state_folder()}/{_MADE}"
    made = read_small(note).splitlines() or [state_folder()]
    try:
        if os.listdir(state_folder()) not in ([], [_MADE]):
            return
    except FileNotFoundError:
        return
    if os.path.lexists(note):
        os.unlink(note)
    for folder in reversed(made):
        remove_if_empty(folder)
