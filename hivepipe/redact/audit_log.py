"""Write security-audit.log: the redactions of each session, and each new archive.

    [2026-11-21T01:00:00Z] Redacted 3 API keys, 1 password from session 7b1f0c9e-...

`files.logs` recognises the lines by their first words.

Each line is appended under a lock on the file itself, so that several processes can write. Before
the first line of a new day (UTC), the file is renamed to `security-audit.log.<its day>`. If this
name is taken, a number is added. `prune_files` deletes files older than 90 days. The mode is 0600
with any umask.
"""

import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from hivepipe.files.log_lines import append_whole, open_locked
from hivepipe.home import make_folders
from hivepipe.text.plurals import counted

NAME = "security-audit.log"
LIMIT_BYTES = 1000

_ROTATED = re.compile(rf"{re.escape(NAME)}\.(\d{{4}}-\d\d-\d\d)")


def record_redaction(folder: str, session: str, kinds: Mapping[str, int]) -> None:
    """Log a session's redacted secrets by kind, or that there are none; raise as `append` does."""
    found = Counter(kinds)
    if not found.total():
        append(folder, f"No sensitive data in session {session}")
        return
    listed = ", ".join(counted(n, kind) for kind, n in sorted(found.items()) if n)
    append(folder, f"Redacted {listed} from session {session}")


def record_archive(folder: str, path: Path) -> None:
    """Log that an archive was made, with its actual permissions. Raise as `append` does."""
    mode = path.stat().st_mode & 0o7777
    append(folder, f"Created archive with permissions {mode:04o}: {path.name}")


def record_cleared(folder: str, session: str, lines: int) -> None:
    """Log how many archived lines were redacted again, because a secret was recognised later.

    Raise as `append` does.
    """
    earlier = counted(lines, "earlier line")
    append(folder, f"Cleared {earlier} of session {session} of what was found later")


def append(folder: str, message: str) -> None:
    """Append one line with the current time. Raise OSError if the file cannot be written."""
    now = time.time()
    text = "".join(c if c.isprintable() else "?" for c in message)
    line = f"[{_stamp(now)}] {text}".encode("utf-8", "replace")[: LIMIT_BYTES - 1] + b"\n"
    with _locked(folder, _stamp(now)[:10]) as descriptor:
        append_whole(descriptor, line)


def rotate(folder: str) -> None:
    """Rename security-audit.log if it is from an earlier day."""
    if os.path.exists(f"{folder}/{NAME}"):
        with _locked(folder, _stamp(time.time())[:10]):
            pass


@contextmanager
def _locked(folder: str, today: str) -> Iterator[int]:
    """Yield a descriptor of today's file, locked and open for appending."""
    path = f"{folder}/{NAME}"
    while True:
        make_folders(folder)
        descriptor = open_locked(path)
        try:
            os.fchmod(descriptor, 0o600)
            day = os.pread(descriptor, 11, 0)[1:].decode("ascii", "replace")
            if _ROTATED.fullmatch(f"{NAME}.{day}") and day < today:
                os.rename(path, _free_name(f"{path}.{day}"))
                continue
            yield descriptor
            return
        finally:
            os.close(descriptor)


def _free_name(path: str) -> str:
    """Return `path`, or `path` with a number if it exists (because the clock was set back)."""
    names = (f"{path}{f'.{number}' if number else ''}" for number in count())
    return next(each for each in names if not os.path.lexists(each))


def _stamp(secs: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(secs))
