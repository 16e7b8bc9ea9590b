"""One process of each kind per home: locks that the kernel frees, and the folder they lie in.

A lock is taken on an inheritable descriptor before `exec`, so it lives exactly as long as the
process that was started, and no pid file is ever believed.
"""

import fcntl
import os
import time
from typing import NamedTuple

from hivepipe.errors import LockHeldError, StackError
from hivepipe.home import is_private_folder, read_record, runtime_folder

RETRY_SECS = 0.02
# 103 bytes are allowed on macOS; supervisord binds a temporary name with its pid appended. A
# longer path does not fail in Redis 6.2: it silently listens on a truncated name.
LONGEST_SOCKET_BYTES = 90


class Stack(NamedTuple):
    """The stack of a home; `folder` holds its sockets and locks."""

    home: str
    folder: str

    @property
    def socket(self) -> str:
        """Return where its Redis listens."""
        return f"{self.folder}/redis.sock"

    @property
    def config(self) -> str:
        """Return where supervisord's configuration lies."""
        return f"{self.folder}/supervisord.conf"

    def lock(self, name: str) -> str:
        """Return the lock file of one process."""
        return f"{self.folder}/{name}.lock"


def take_lock(path: str, wait_secs: float) -> int:
    """Return an inheritable descriptor that holds the lock; LockHeldError after `wait_secs`."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    deadline = time.monotonic() + wait_secs
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(descriptor)
                raise LockHeldError(f"{path} is held by another process") from None
            time.sleep(RETRY_SECS)
        else:
            os.set_inheritable(descriptor, True)
            return descriptor


def runtime_for(home: str) -> str:
    """Return the folder of this home's sockets and locks, made and checked.

    The recorded one comes first: XDG_RUNTIME_DIR differs between a login, cron and a container's
    shell, and two folders would mean two Redis servers on one append-only file.
    """
    recorded = os.path.dirname(read_record(home).get("socket", ""))
    folder = recorded if is_private_folder(recorded) else runtime_folder(home)
    for path in (os.path.dirname(folder), folder):
        make_private(path)
        if not is_private_folder(path):
            raise StackError(f"{path} must be a folder of yours that nobody else can enter (0700)")
    if len(os.fsencode(f"{folder}/supervisor.sock")) > LONGEST_SOCKET_BYTES:
        raise StackError(f"{folder} is too long for a socket: set a shorter XDG_RUNTIME_DIR")
    return folder


def make_private(path: str) -> None:
    """Make a folder and its parents for the user alone, also when another process does so too."""
    before = os.umask(0o077)
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise StackError(f"cannot make {path}: {error.strerror}") from None
    finally:
        os.umask(before)
