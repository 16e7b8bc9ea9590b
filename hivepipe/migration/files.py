"""Import the predecessor's archives and exports from `.claude-state/logs`, as copies.

The original files are not changed. The daily sweep imports files that appear later.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hivepipe.files.manifest import Manifest
from hivepipe.home import kept_folder
from hivepipe.operations.found_archives import KINDS, import_found
from hivepipe.operations.found_exports import ARCHIVE_INDEX, USAGE, USAGE_INDEX, Row
from hivepipe.operations.slow import at_once, manual_origin

_EXPORTS = (USAGE, USAGE_INDEX, ARCHIVE_INDEX)


class OldFiles(NamedTuple):
    """The predecessor's files in a folder of logs."""

    folder: str
    exports: list[str]
    archives: int


def find_files(project: str, home: str) -> OldFiles | None:
    """Return the predecessor's files in a project's `.claude-state/logs`, or None.

    A folder that is a link is not searched.
    """
    folder = f"{project}/.claude-state/logs"
    if os.path.islink(folder) or os.path.islink(os.path.dirname(folder)):
        return None
    made = Manifest(home).made() if folder == kept_folder(home) else frozenset()
    exports = [name for name in _EXPORTS if os.path.isfile(f"{folder}/{name}") and name not in made]
    archives = sum(path not in made for path in _archives(folder))
    return OldFiles(folder, exports, archives) if exports or archives else None


def import_files(home: str, files: OldFiles) -> list[Row]:
    """Import each file once; return a row per file, also for a file that cannot be read.

    Raise StoreError if the database cannot be used.
    """
    with at_once(home) as context:
        return import_found(context, manual_origin("sweep_transcripts"), files.folder)


def _archives(folder: str) -> Iterator[str]:
    for kind in KINDS:
        for path in Path(folder, kind).rglob("*.jsonl*"):
            name = str(path.relative_to(folder)).removesuffix(".gz")
            if name.endswith(".jsonl") and not path.name.startswith("."):
                yield name
