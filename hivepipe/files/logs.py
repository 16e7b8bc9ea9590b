"""Logs in the exports' folder. Hooks and workers append lines, so a log has no checksum.

The names of the logs are claimed when hivepipe is installed, and an existing log is renamed. Later
a file counts as hivepipe's log if each line has the format of that log and is not older than the
claim.
"""

import os
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from hivepipe.files.exports import move_aside
from hivepipe.files.folders import Folder
from hivepipe.files.manifest import Manifest
from hivepipe.files.regular_file import regular

HOOK_LOG, AUDIT_LOG, CLEANUP_LOG = "hook-errors.log", "security-audit.log", "cleanup.log"
WORKERS_LOGS = (AUDIT_LOG, CLEANUP_LOG)
NAMES = (HOOK_LOG, *WORKERS_LOGS)

_STAMP = rb"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)\] "
_FORMS = {
    HOOK_LOG: rb"\[[a-z-]+\] \[[A-Z]+\] .*",
    AUDIT_LOG: (
        rb"((Redacted|Cleared) \d|Created archive with permissions |"
        rb"No sensitive data in session ).*"
    ),
    CLEANUP_LOG: rb"\[[a-z_]+\] \[INFO\] (deleted .+: [a-z_]+|run \d+: deleted .*)",
}
_LINES = {name: re.compile(_STAMP + form + rb"\n") for name, form in _FORMS.items()}


def claim_names(path: str, manifest: Manifest, names: Iterable[str] = WORKERS_LOGS) -> None:
    """Claim the names of logs, and rename existing files that hivepipe did not write.

    A name is not claimed if its file cannot be renamed, because one was renamed before. The name of
    the hooks' log is claimed when a project is registered, before hooks write to it.
    """
    free = set(names) - manifest.made()
    if not free:
        return
    if not os.path.isdir(path):
        for name in free:
            manifest.claim(name)
        return
    with Folder(path) as folder:
        for name in free:
            if folder.status(name) is None or move_aside(folder, manifest, name):
                manifest.claim(name)


def is_own(path: Path, manifest: Manifest) -> bool:
    """Tell whether hivepipe wrote every line of a log, rotated or not."""
    name = next((name for name in NAMES if path.name.startswith(name)), "")
    if name not in manifest.made() or path.is_symlink() or not path.is_file():
        return False
    since = datetime.fromtimestamp((manifest.made_at(name) or 0) - 1, UTC)
    return all(time is not None and time >= since for time in _times(path, _LINES[name]))


def name_to_rotate_to(path: Path, manifest: Manifest) -> Path:
    """Return `<name>.1`, or the next number if another program wrote a file with that name."""
    names = (path.with_name(f"{path.name}.{number}") for number in count(1))
    return next(each for each in names if not os.path.lexists(each) or is_own(each, manifest))


def _times(path: Path, form: re.Pattern[bytes]) -> Iterator[datetime | None]:
    with open(path, "rb", opener=regular) as file:
        for line in file:
            found = form.fullmatch(line)
            try:
                yield datetime.fromisoformat(found[1].decode()) if found else None
            except ValueError:
                yield None
