"""Allow only one kernel to use a home: locks and sockets of another kernel have no effect here.

`<home>/kernel` contains the machine, boot and pid namespace of the running stack. The supervisor
(in compose.yaml's containers, the writer) holds a lock on the file, which another container of this
machine sees; the writer touches it, which another machine sees; and `down` removes it. Without the
file, a folder that a container shares with its host, or two machines on a network, could have two
stacks with two writers on one database.
"""

import contextlib
import os
import socket
import time

from hivepipe.errors import StackError
from hivepipe.home import read_record, read_small, write_small
from hivepipe.stack.lock import acquire_lock, is_locked_file

UNKNOWN = "-"  # the value where /proc does not exist
CLAIM_SECS = 2  # others hold the lock only while they look
FRESH_SECS = 120  # a stack that has not touched its file for this long is dead


def refuse_another(home: str) -> None:
    """Raise StackError if a stack of another kernel uses this home."""
    if machine := other_machine(home):
        secs = time.time() - _touched(home)
        stop = "docker compose stop" if is_in_containers(home) else "hivepipe down"
        raise StackError(
            f"the stack of another machine or container ({machine}) uses {home}, seen "
            f"{secs:.0f} s ago, and stores the events from here too: run `{stop}` there"
        )


def is_in_containers(home: str) -> bool:
    """Tell whether the processes of this home's stack run in a container each."""
    return read_record(home).get("containers") == "yes"


def other_machine(home: str) -> str:
    """Return the name of the machine or container whose stack uses this home, or "".

    The answer is "" if the stack belongs to this kernel.
    """
    machine, its_boot, namespace = _named(home)
    if not is_of_another_kernel(home) or (machine, namespace) == (_this()[0], _this()[2]):
        return ""  # this kernel, or this machine before a reboot
    if its_boot == boot() != UNKNOWN and _says_locked(home):
        runs = is_locked_file(_file(home))
    else:
        runs = time.time() - _touched(home) < FRESH_SECS
    return machine if runs else ""


def is_used_by_another_namespace(home: str) -> bool:
    """Tell whether a stack of another pid namespace of this machine uses this home."""
    return bool(other_machine(home)) and _named(home)[1] == boot()


def claim(home: str) -> int:
    """Record in `<home>/kernel` that a stack of this kernel uses the home, and lock the file.

    Return the inheritable descriptor that holds the lock.
    """
    write_small(_file(home), "\n".join(_this()))
    return acquire_lock(_file(home), CLAIM_SECS)


def touch(home: str) -> bool:
    """Set the time of `<home>/kernel` to now, or return False if the file names another kernel."""
    if is_of_another_kernel(home):
        return False
    with contextlib.suppress(OSError):  # a Procfile's stack has no such file, or the disk fails
        os.utime(_file(home))
    return True


def is_of_another_kernel(home: str) -> bool:
    """Tell whether `<home>/kernel` names another kernel.

    A different host name alone counts only if the id of the boot is unknown.
    """
    named, this = _named(home), _this()
    return named not in (this, ("", "", "")) and (named[1:] != this[1:] or named[1] == UNKNOWN)


def release(home: str) -> None:
    """Remove `<home>/kernel`. The stack of this kernel must have ended."""
    with contextlib.suppress(OSError):  # on a read-only disk the file stays until it is too old
        os.unlink(_file(home))


def _file(home: str) -> str:
    return f"{home}/kernel"


def _says_locked(home: str) -> bool:
    """Tell whether a version that locks the file wrote it; older ones ended it with a newline."""
    return not read_small(_file(home)).endswith("\n")


def _touched(home: str) -> float:
    try:
        return os.stat(_file(home)).st_mtime
    except FileNotFoundError:
        return 0


def _named(home: str) -> tuple[str, str, str]:
    lines = read_small(_file(home)).splitlines()
    return (lines[0], lines[1], lines[2]) if len(lines) == 3 else ("", "", "")


def _this() -> tuple[str, str, str]:
    """Return machine, boot and pid namespace. The last two are UNKNOWN if there is no /proc."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = UNKNOWN
    return socket.gethostname() or "this machine", boot(), namespace


def boot() -> str:
    """Return the id of the current boot, or UNKNOWN."""
    return read_small("/proc/sys/kernel/random/boot_id").strip() or UNKNOWN
