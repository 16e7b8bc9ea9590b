"""Private folders and files, opened without following links.

A folder is opened component by component, and names inside are relative to its descriptor. A link
that appears meanwhile is therefore not followed. The modes do not depend on the umask.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from hivepipe.files.change_stamp import Stamp, stamp_of
from hivepipe.files.regular_file import refuse_special, whole
from hivepipe.home import make_folders

_IN_PROJECT = "/.claude-state/logs"

_LARGEST_BYTES = 1 << 28  # ten times the index of an archive of several years
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# O_NONBLOCK: a named pipe in place of the file must not block the reader.
_FILE = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def make_root(root: str) -> None:
    """Make a folder that only the user can enter; in a project, with a `.gitignore`."""
    before = os.umask(0o077)
    try:
        make_folders(root)
    finally:
        os.umask(before)


class Folder:
    """An open folder. As a context manager it closes the folder after the block."""

    def __init__(self, base: str, *names: str, make: bool = False) -> None:
        """Open the folder `base`/`names`. Raises OSError if any part is not a real folder."""
        self.path, *inner = _from_where_links_may_be(base)
        self._descriptor = os.open(self.path, _FOLDER)
        for name in (*inner, *names):
            outer = self._descriptor
            try:
                self._descriptor = self._enter(name, make)
            finally:
                os.close(outer)
            self.path = f"{self.path}/{name}"

    def _enter(self, name: str, make: bool) -> int:
        flags = _FOLDER | os.O_NOFOLLOW
        try:
            return os.open(name, flags, dir_fd=self._descriptor)
        except FileNotFoundError:
            if not make:
                raise
        except OSError as error:
            reason = f"{os.strerror(error.errno or 0)}, or a link"
            raise OSError(error.errno, reason, f"{self.path}/{name}") from None
        before = os.umask(0o077)
        try:
            with suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=self._descriptor)
        finally:
            os.umask(before)
        return os.open(name, flags, dir_fd=self._descriptor)

    def __enter__(self) -> "Folder":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def open(self, name: str, flags: int = os.O_RDONLY) -> int:
        """Return a descriptor of a regular file. Raise OSError for a link or another kind of file.

        With O_CREAT in `flags`, the file gets mode 0600, even if it exists.
        """
        try:
            descriptor = os.open(name, flags | _FILE, 0o600, dir_fd=self._descriptor)
        except OSError as error:
            raise self._named(error, name) from None
        refuse_special(descriptor, f"{self.path}/{name}")
        try:
            if flags & os.O_CREAT:
                os.fchmod(descriptor, 0o600)
        except OSError as error:  # some file systems of FUSE have no modes
            os.close(descriptor)
            raise self._named(error, name) from None
        return descriptor

    def read(self, name: str, limit: int = _LARGEST_BYTES) -> bytes | None:
        """Return the bytes of a file, or None without a file. Raises OSError if it is too large."""
        try:
            descriptor = self.open(name)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            return whole(file, f"{self.path}/{name}", limit)

    @contextmanager
    def replacing(self, name: str) -> Iterator[BinaryIO]:
        """Yield a file that is synced and atomically replaces `name` after a successful block.

        Raise OSError on failure; `name` is unchanged then.
        """
        temporary = f".{name.removeprefix('.')}.tmp"
        descriptor = self.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(descriptor)
            self.rename(temporary, name)
        except BaseException:
            self.remove(temporary)
            raise

    def replace(self, name: str, data: bytes) -> None:
        """Write a file atomically and sync it: readers see the old or the new content."""
        with self.replacing(name) as file:
            file.write(data)

    def overwrite(self, name: str, data: bytes) -> None:
        """Write a small file in place, at a third of the cost of `replace`.

        Content of less than a page is complete even after a crash.
        """
        descriptor = self.open(name, os.O_WRONLY | os.O_CREAT)
        try:
            os.pwrite(descriptor, data, 0)
            os.ftruncate(descriptor, len(data))
        finally:
            os.close(descriptor)

    def touch(self) -> None:
        """Set the time of the folder's last change to now, as creating a file would."""
        os.utime(self._descriptor)

    def changed_ns(self) -> int:
        """Return the time of the folder's last change, in ns since 1970."""
        return os.fstat(self._descriptor).st_mtime_ns

    def rename(self, old: str, new: str) -> None:
        """Rename a file within the folder, replacing the target. Raise OSError on failure."""
        try:
            os.rename(old, new, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        except OSError as error:
            raise self._named(error, new) from None

    def _named(self, error: OSError, name: str) -> OSError:
        """Return the error with the full path of the file, because it is shown to the user."""
        return OSError(error.errno, error.strerror, f"{self.path}/{name}")

    def status(self, name: str) -> os.stat_result | None:
        """Return the status of a file, or None if it is missing. A link is not followed."""
        try:
            return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def stamp(self, name: str) -> Stamp:
        """Return a value that differs after every change of a file, or () without a file."""
        return stamp_of(self.status(name))

    def remove(self, name: str) -> bool:
        """Remove a file; return whether it existed."""
        try:
            os.unlink(name, dir_fd=self._descriptor)
        except FileNotFoundError:
            return False
        return True

    def remove_folder(self, name: str) -> None:
        """Remove a folder. Raises OSError if it is not empty."""
        os.rmdir(name, dir_fd=self._descriptor)

    def names(self) -> list[str]:
        return sorted(os.listdir(self._descriptor))


def _from_where_links_may_be(base: str) -> tuple[str, ...]:
    """Return the innermost folder above `base` that may be a link, and the names below it.

    A project may be a link. hivepipe's folders inside a project may not be links, because a
    repository can contain links.
    """
    if base.endswith(_IN_PROJECT):
        return (base.removesuffix(_IN_PROJECT) or "/", *_IN_PROJECT.strip("/").split("/"))
    outer, _, name = base.rpartition("/")
    return (outer or "/", name)


def try_lock(descriptor: int) -> bool:
    """Lock an open file; return False if another process holds its lock.

    The kernel releases the lock when its holder ends. A locked file must never be removed, because
    a new file would be a second lock.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
