"""Remove what a failed registration made, as on a full disk, and nothing that was there before."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path

from hivepipe.db.location import SUFFIXES
from hivepipe.errors import HivepipeError
from hivepipe.files.manifest import Manifest
from hivepipe.home import record_path


@contextmanager
def removed_if_failed(home: str) -> Iterator[None]:
    """Remove a home's new record, manifest and folder if the block fails.

    The caller keeps other processes from registering the home: their files would count as new.
    """
    new = [path for path in (record_path(home), Manifest(home).path) if not os.path.lexists(path)]
    is_new_home = not os.path.lexists(home)
    try:
        yield
    except (HivepipeError, OSError):
        for path, suffix in product(new, SUFFIXES):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        with suppress(OSError):  # the folder has other files
            if is_new_home:
                os.rmdir(home)
        raise
