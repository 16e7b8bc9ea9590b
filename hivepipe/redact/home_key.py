"""The redaction key of a home: 32 random bytes in redaction.key, for tags and hashes of secrets.

The file is made once, with mode 0600, outside of any work tree. Anyone who has the key can test
guesses of a secret.
"""

import fcntl
import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from secrets import token_bytes

from hivepipe.files.regular_file import read_bytes
from hivepipe.home import is_in_project
from hivepipe.redact.tags import KEY_BYTES

FILE = "redaction.key"


def key_of(home: str) -> bytes:
    """Return the key of a home; make a key if the home has none or a damaged one.

    If the key cannot be stored, or the folder is not a home, return a key that only this process
    uses.
    """
    if is_in_project(home) or not os.path.isdir(home):  # files in a work tree are not trusted
        return _of_process()
    path = Path(home, FILE)
    with suppress(OSError):
        return _kept(path) or _made(path)
    return _of_process()


def _kept(path: Path) -> bytes | None:
    """Return the key in a file, or None if the file is missing or damaged."""
    try:
        key = read_bytes(path)
    except FileNotFoundError:
        return None
    return key if len(key) == KEY_BYTES else None


def _made(path: Path) -> bytes:
    """Store a new key and return it, or return the key that another process stored first.

    Processes lock the temporary file, which is then renamed. A process that waited for the lock
    finds the key in the renamed file.
    """
    temporary = path.with_name(f"{path.name}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        key = _kept(path)
        if key:
            temporary.unlink(missing_ok=True)
            return key
        key = token_bytes(KEY_BYTES)
        file.truncate()  # a killed process may have written a part
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
        os.rename(temporary, path)
    return key


@cache
def _of_process() -> bytes:
    return token_bytes(KEY_BYTES)
