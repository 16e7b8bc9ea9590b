"""Restores the names of files that hivepipe renamed in the exports' folder."""

import os
import shutil
import stat
from pathlib import Path

from hivepipe.files import logs
from hivepipe.files.exports import Owner, owner_of
from hivepipe.files.folders import Folder
from hivepipe.files.manifest import Manifest
from hivepipe.files.regular_file import regular
from hivepipe.home import make_folders


def restore_names(path: str, manifest: Manifest, home: str) -> list[str]:
    """Rename back the files that hivepipe renamed; return those whose old name is taken now."""
    refused = []
    with Folder(path) as folder:
        for name, copy in manifest.renamed().items():
            renamed, taken = folder.status(copy), folder.status(name)
            if renamed and taken and not _is_replaceable(folder, manifest, name, home):
                refused.append(name)
                continue
            if renamed:
                if stat.S_ISDIR(renamed.st_mode):  # a folder cannot replace a file
                    folder.remove(name)
                folder.rename(copy, name)
            manifest.remove_rename(name)
            manifest.disown(name)
    return refused


def _is_replaceable(folder: Folder, manifest: Manifest, name: str, home: str) -> bool:
    """Tell whether hivepipe made the file with this name, so that replacing it loses nothing.

    The data of an export is also in the store. The lines of a log are first copied to the home's
    `logs`.
    """
    if name not in logs.NAMES:
        return owner_of(folder, manifest, name) is Owner.HIVEPIPE
    log = Path(folder.path, name)
    if not logs.is_own(log, manifest):
        return False
    make_folders(f"{home}/logs")
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    with (
        open(log, "rb", opener=regular) as old,
        os.fdopen(os.open(f"{home}/logs/{name}", flags, 0o600), "ab") as new,
    ):
        shutil.copyfileobj(old, new)
    return True
