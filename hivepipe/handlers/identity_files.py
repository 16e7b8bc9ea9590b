"""Identity files on disk: written only where nobody minds, and given back.

Written is a file that nobody edited since it was looked at and that no git tracks, in one
rename. What stood there before is kept:

    <home>/identity/before/<hash of the path>          the bytes; absent where there was no file
    <home>/identity/before/<hash of the path>.ours     SHA-256 of what was written instead
"""

import os
import subprocess
from contextlib import suppress
from pathlib import Path

from hivepipe.handlers.profiles import digest_of
from hivepipe.home import make_folders, read_small, short_hash, write_small
from hivepipe.intake.snapshots import read_regular

GIT_SECS = 5.0


def replace(home: str, path: Path, text: str, *, keeps_before: bool) -> str:
    """Write the file, perhaps keeping what it held; return why not, empty if it was done.

    OSError: the folder cannot be written.
    """
    is_there = path.exists() or path.is_symlink()
    before = read_regular(str(path))
    if is_there and before is None:
        return "it is no plain file"
    if before == text.encode():
        return ""
    if is_tracked(path):
        return "git tracks it"
    if keeps_before:
        _keep_before(_kept(home, path), before, text)
    return "" if _exchange(path, before, text.encode()) else "somebody edited it meanwhile"


def _keep_before(kept: Path, before: bytes | None, text: str) -> None:
    """Of several sessions, or one that never ended, what the first one found counts."""
    make_folders(str(kept.parent))
    mark = kept.with_suffix(".ours")
    if before is not None and not mark.exists():
        _write(kept, before)
    write_small(str(mark), f"{digest_of(text.encode())}\n")


def ours(home: str, path: Path) -> str:
    """Return the hash of what was written to a file; empty: nothing."""
    return read_small(str(_kept(home, path).with_suffix(".ours"))).strip()


def give_back(home: str, path: Path, known: set[str]) -> str:
    """Put back what a file held before; return why not, empty if it was done.

    `known`: hashes of what is kept elsewhere, so that nothing is lost by it.
    """
    kept = _kept(home, path)
    written = ours(home, path)
    if not written:
        return ""
    now = read_regular(str(path))
    if now is not None and digest_of(now) not in {written, *known}:
        return "somebody edited it meanwhile"
    if is_tracked(path):
        return "git tracks it by now"
    before = read_regular(str(kept))
    if now is not None and before is None:
        if _is_still(path, now):
            path.unlink()
    elif before is not None and not _exchange(path, now, before):
        return "somebody edited it meanwhile"
    for each in (kept, kept.with_suffix(".ours")):
        with suppress(FileNotFoundError):
            each.unlink()
    return ""


def is_tracked(path: Path) -> bool:
    """Does git know this file? Who cannot tell says yes."""
    if not any((folder / ".git").exists() for folder in path.parents):
        return False
    try:
        asked = subprocess.run(
            ["git", "-C", str(path.parent), "ls-files", "--error-unmatch", "--", path.name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=GIT_SECS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return True
    return asked.returncode != 1


def _kept(home: str, path: Path) -> Path:
    return Path(home, "identity", "before", short_hash(str(path)))


def _exchange(path: Path, before: bytes | None, data: bytes) -> bool:
    """Replace the file in one step if it still holds what it held; False: it does not."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    _write(temporary, data)
    if not _is_still(path, before):
        temporary.unlink()
        return False
    os.rename(temporary, path)
    return True


def _is_still(path: Path, before: bytes | None) -> bool:
    return read_regular(str(path)) == before and (before is not None or not path.is_symlink())


def _write(path: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
