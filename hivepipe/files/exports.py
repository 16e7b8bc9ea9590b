"""Write exports: files for other programs that are replaced as a whole.

A predecessor's file of the same name is renamed, and `uninstall` restores the name. A file that was
changed since hivepipe wrote it belongs to a person. Such a file is kept, and hivepipe no longer
writes it.
"""

import stat
from collections.abc import Callable
from enum import Enum
from itertools import count

from hivepipe.files.folders import Folder
from hivepipe.files.manifest import Manifest

SUFFIX = ".before-hivepipe"


class Owner(Enum):
    """The owner of the file with a given name."""

    NOBODY = "there is none"
    HIVEPIPE = "it is what hivepipe wrote last"
    OTHER = "it was there before hivepipe"
    PERSON = "it was changed after hivepipe wrote it"


def owner_of(folder: Folder, manifest: Manifest, name: str) -> Owner:
    status = folder.status(name)
    if status is None:
        return Owner.NOBODY
    if stat.S_ISREG(status.st_mode) and manifest.wrote(name, folder.read(name) or b""):
        return Owner.HIVEPIPE
    return Owner.OTHER if manifest.made_at(name) is None else Owner.PERSON


def replace_own(
    folder: Folder,
    manifest: Manifest,
    name: str,
    data: bytes,
    is_damaged: Callable[[bytes], bool] = lambda _data: False,
) -> bool:
    """Write an export atomically. Return False if the file belongs to a person and is kept.

    `is_damaged` tells whether the content is unreadable. An unreadable file is replaced, because it
    cannot contain a person's edit.
    """
    owner = owner_of(folder, manifest, name)
    if owner is Owner.OTHER and not move_aside(folder, manifest, name):
        return False
    if owner is Owner.PERSON and not is_damaged(folder.read(name) or b""):
        return False
    before = folder.read(name) if owner is Owner.HIVEPIPE else None
    manifest.expect(name, data, before)
    folder.replace(name, data)
    return True


def move_aside(folder: Folder, manifest: Manifest, name: str) -> bool:
    """Rename a file that is not hivepipe's. Return False if a file of this name was renamed before.

    The new name is recorded before the rename. After a crash the file has one of the two names.
    """
    copy = manifest.renamed().get(name)
    if copy is None:
        copy = _free_name(folder, name)
        manifest.record_rename(name, copy)
    elif folder.status(copy) is not None:
        return False
    folder.rename(name, copy)
    return True


def _free_name(folder: Folder, name: str) -> str:
    names = (f"{name}{SUFFIX}{'' if number == 1 else f'.{number}'}" for number in count(1))
    return next(each for each in names if folder.status(each) is None)
