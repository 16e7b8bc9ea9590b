"""The redaction key of a home: 32 random bytes in redaction.key, for tags and hashes of secrets.

The file is made once, with mode 0600, outside of any work tree. Anyone who has the key can test
guesses of a secret.
"""

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
    """Return the key of a home, and make one if it has none.

    If the key cannot be stored, or the folder is not a home, a key of this process is returned.
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
    """Make a key and return the stored one, which may be the key of a faster process."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
            file.write(token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        _publish(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return _kept(path) or _of_process()


def _publish(temporary: Path, path: Path) -> None:
    """Rename the file unless another process has stored a key. A damaged key is replaced."""
    with suppress(FileExistsError):
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            if not path.exists():
                os.rename(temporary, path)
    if _kept(path) is None:
        os.rename(temporary, path)


@cache
def _of_process() -> bytes:
    return token_bytes(KEY_BYTES)
