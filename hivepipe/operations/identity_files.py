"""Write identity files to disk, and restore their previous content.

A file is written by one rename. A file is not written if git tracks it or if it was edited since
hivepipe read it. The previous content is kept:

    <home>/identity/before/<hash of the path>          the bytes; missing if there was no file
    <home>/identity/before/<hash of the path>.ours     SHA-256 of the content written instead
    <home>/identity/before/<hash of the path>.<...>    older content that could not be restored

The file `.ours` is created after the bytes are stored, and removed before the bytes are removed. So
a kill at any time loses nothing, and the next process completes the work.
"""

import os
import stat
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from hivepipe import git
from hivepipe.home import make_folders, read_small, short_hash
from hivepipe.hook.identity_snapshots import read_regular
from hivepipe.operations.profiles import digest_of
from hivepipe.programs import process_exists


def replace(
    home: str, path: Path, text: str, *, keeps_before: bool, known: Collection[str] = ()
) -> str:
    """Write an identity file; return the reason if it was not written, else "".

    With `keeps_before`, the previous content is kept. `known` contains hashes of content that is
    kept elsewhere. Raise OSError if the folder cannot be written.
    """
    is_there = path.exists() or path.is_symlink()
    before = read_regular(str(path))
    if is_there and before is None:
        return "it is not a plain file"
    if before == text.encode():
        return ""
    if is_tracked(path):
        return "git tracks it"
    if keeps_before:
        _keep_before(_kept(home, path), before, text, known)
    return "" if _exchange(path, before, text.encode()) else "somebody edited it meanwhile"


def _keep_before(kept: Path, before: bytes | None, text: str, known: Collection[str]) -> None:
    """Keep the content that is about to be replaced.

    Content that hivepipe itself wrote for an overlapping session is not kept. If a person has
    written other content since an earlier call, both are kept: the earlier file is renamed.
    """
    make_folders(str(kept.parent))
    mark = kept.with_suffix(".ours")
    written = _written(kept)
    if not written and before is None:
        kept.unlink(missing_ok=True)  # a process was killed before it made the file `.ours`
    elif before is not None and (not written or digest_of(before) not in {written, *known}):
        older = read_regular(str(kept))
        if written and older not in (None, before):
            os.rename(kept, kept.with_suffix(f".{digest_of(older or b'')[:12]}"))
            older = None
        _exchange(kept, older, before)
    _exchange(mark, read_regular(str(mark)), f"{digest_of(text.encode())}\n".encode())


def is_ours(home: str, path: Path) -> bool:
    """Tell whether hivepipe wrote the file and has not restored its previous content yet.

    The file may have been edited since hivepipe wrote it.
    """
    kept = _kept(home, path)
    return bool(_written(kept)) and read_regular(str(path)) != read_regular(str(kept))


def _written(kept: Path) -> str:
    """Return the hash of the content that hivepipe wrote, or "" if hivepipe wrote nothing."""
    return read_small(str(kept.with_suffix(".ours"))).strip()


def restore(home: str, path: Path, known: Collection[str]) -> str:
    """Restore the previous content of a file; return the reason of a refusal, or "".

    `known` has hashes of content that is kept elsewhere. A file with such content can be replaced.
    """
    kept = _kept(home, path)
    written = _written(kept)
    now, before = read_regular(str(path)), read_regular(str(kept))
    if written and now != before:
        if now is not None and digest_of(now) not in {written, *known}:
            return f"somebody edited it meanwhile; {_what_was_before(kept)}"
        if is_tracked(path):
            return "git tracks it now"
        if not _exchange(path, now, before):
            return f"somebody edited it meanwhile; {_what_was_before(kept)}"
    for obsolete in (kept.with_suffix(".ours"), kept):
        obsolete.unlink(missing_ok=True)
        _remove_left_over(obsolete)
    _remove_left_over(path)
    return ""


def _what_was_before(kept: Path) -> str:
    return (
        f"its previous content is in {kept}" if kept.exists() else "there was no such file before"
    )


def is_tracked(path: Path) -> bool:
    """Tell whether git tracks this file; return True if git cannot tell."""
    if not any((folder / ".git").exists() for folder in path.parents):
        return False
    result = git.ask(str(path.parent), "ls-files", "--error-unmatch", "--", path.name)
    return result is None or result.returncode != 1


def _kept(home: str, path: Path) -> Path:
    return Path(home, "identity", "before", short_hash(str(path)))


def _exchange(path: Path, before: bytes | None, data: bytes | None) -> bool:
    """Replace a file atomically; return False if its content is not `before` (None: no file)."""
    _remove_left_over(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    if data is not None:
        _write(temporary, data, 0o600 if before is None else stat.S_IMODE(path.stat().st_mode))
    if read_regular(str(path)) != before or (before is None and path.is_symlink()):
        temporary.unlink(missing_ok=True)
        return False
    if data is None:
        path.unlink(missing_ok=True)
    else:
        os.rename(temporary, path)
    return True


def _remove_left_over(path: Path) -> None:
    """Remove the temporary files of killed processes."""
    for temporary in path.parent.glob(f".{path.name}.*.tmp"):
        pid = temporary.name.split(".")[-2]
        if pid.isdecimal() and not process_exists(int(pid)):
            with suppress(PermissionError):  # the folder is shared, and the file is another user's
                temporary.unlink(missing_ok=True)


def _write(path: Path, data: bytes, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())
