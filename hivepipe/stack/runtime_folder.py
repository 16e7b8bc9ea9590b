"""The folder that contains a stack's sockets and locks, and the paths in it."""

import os
import shutil
from contextlib import suppress
from typing import NamedTuple

from hivepipe.errors import StackError
from hivepipe.files.folders import make_root
from hivepipe.home import (
    Place,
    is_private_folder,
    read_record,
    runtime_folder,
    spare_runtime_folder,
)
from hivepipe.queue.spool import LOST, NOTES
from hivepipe.settings import environment

# macOS allows 103 bytes, and supervisord binds a temporary name with its pid appended. Redis 6.2
# does not fail on a longer path: it silently listens on a truncated name.
LONGEST_SOCKET_BYTES = 90


class Stack(NamedTuple):
    """The stack of a home.

    `folder` contains sockets and locks. `url` is the address of an existing Redis, or "" if the
    stack has its own Redis.
    """

    home: str
    folder: str
    url: str = ""

    @classmethod
    def of(cls, place: Place) -> "Stack":
        url = "" if place.socket.startswith("/") else place.socket
        return cls(place.home, place.runtime, url)

    @classmethod
    def prepared(cls, home: str) -> "Stack":
        """Return the stack of a home with the recorded Redis, and make its runtime folder.

        Raise StackError if the folder cannot be used (see `runtime_for`).
        """
        recorded = read_record(home).get("socket", "")
        return cls(home, runtime_for(home), "" if recorded.startswith("/") else recorded)

    @property
    def socket(self) -> str:
        return f"{self.folder}/redis.sock"

    @property
    def address(self) -> str:
        """Return the address of the stack's Redis: `url`, or the socket."""
        return self.url or self.socket

    @property
    def supervisor_socket(self) -> str:
        return f"{self.folder}/supervisor.sock"

    @property
    def server_url(self) -> str:
        """Return the value of SUPERVISOR_SERVER_URL in the processes that supervisord starts."""
        return f"unix://{self.supervisor_socket}"

    def supervises_this_process(self) -> bool:
        """Tell whether the stack's own supervisord, which may have ended, started this process."""
        return environment("SUPERVISOR_SERVER_URL") == self.server_url

    @property
    def config(self) -> str:
        return f"{self.folder}/supervisord.conf"

    def lock(self, name: str) -> str:
        return f"{self.folder}/{name}.lock"

    @property
    def data_lock(self) -> str:
        """Return Redis's second lock file. It is in the home, which a logout does not delete."""
        return f"{self.home}/redis.lock"

    @property
    def stay_file(self) -> str:
        """Return the file that records that a user started the stack (stack.idle_policy)."""
        return f"{self.home}/stay"


def remove_runtime(stack: Stack) -> None:
    """Remove the sockets and locks of a stopped stack. The caller holds the lock of the home."""
    _empty(stack.folder)
    for remove, path in (
        (os.rmdir, stack.folder),
        (os.unlink, stack.data_lock),
        (os.unlink, stack.stay_file),
        (os.rmdir, os.path.dirname(stack.folder)),  # fails if other homes have folders there
    ):
        with suppress(OSError):
            remove(path)


def _empty(folder: str) -> None:
    """Remove the contents of the runtime folder, except events that the home could not store."""
    with suppress(OSError):
        os.rmdir(f"{folder}/spool")
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(("spool", NOTES, LOST)):
            continue
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            with suppress(OSError):  # a hook has just removed it
                os.unlink(entry.path)


def runtime_for(home: str) -> str:
    """Make and check the folder for this home's sockets and locks; return its path.

    A recorded folder is preferred, because XDG_RUNTIME_DIR differs between a login, cron and a
    container's shell. Two folders would give two Redis servers on one append-only file. Raise
    StackError if other users can enter the folder, or its path is too long for a socket.
    """
    record = read_record(home)
    recorded = record.get("runtime") or os.path.dirname(record.get("socket", ""))
    is_ours = all(map(is_private_folder, (os.path.dirname(recorded), recorded)))
    folder = recorded if is_ours else runtime_folder(home)
    try:
        make_private(os.path.dirname(folder))
    except StackError:  # XDG_RUNTIME_DIR of a session that has ended
        folder = spare_runtime_folder(home)
    for path in (os.path.dirname(folder), folder):
        make_private(path)
        if not is_private_folder(path):
            raise StackError(f"{path} must be a folder that only you can enter (0700)")
    if len(os.fsencode(f"{folder}/supervisor.sock")) > LONGEST_SOCKET_BYTES:
        raise StackError(f"{folder} is too long for a socket: set a shorter XDG_RUNTIME_DIR")
    return folder


def make_private(path: str) -> None:
    """Make a folder and its parents with mode 0700, or raise StackError. May run concurrently."""
    try:
        make_root(path)
        os.stat(f"{path}/")  # fails if it is a file
    except OSError as error:
        raise StackError(f"cannot make {path}: {error.strerror}") from None
