"""One kernel per home: the locks and sockets of another one do not reach here.

`<home>/kernel` names the machine, its boot and its pid namespace of the stack that runs; the
writer touches it, `down` removes it. A folder that a container shares with its host, or a network
with two machines, would otherwise have two stacks, and two writers on one database.
"""

import contextlib
import os
import socket
import time
from pathlib import Path

from hivepipe.errors import StackError
from hivepipe.home import read_small, write_small

UNKNOWN = "-"  # where there is no /proc
FRESH_SECS = 120  # a stack that has not touched its file for so long is dead


def refuse_another(home: str) -> None:
    """StackError: the stack of another kernel uses this home."""
    machine, _, namespace = _named(home)
    if not is_anothers(home) or (machine, namespace) == (_this()[0], _this()[2]):
        return  # the latter: this machine before it was started anew
    secs = time.time() - _touched(home)
    if secs < FRESH_SECS:
        raise StackError(
            f"the stack of another machine or container ({machine}) uses {home}, seen "
            f"{secs:.0f} s ago: run `hivepipe down` there; events of this one wait on disk for it"
        )


def claim(home: str) -> None:
    """Say that the stack of this kernel uses the home."""
    write_small(_file(home), "\n".join((*_this(), "")))


def touch(home: str) -> bool:
    """Say that it still does; False: another kernel has taken the home over."""
    if is_anothers(home):
        return False
    with contextlib.suppress(OSError):  # no supervisor started this writer; a disk in trouble
        os.utime(_file(home))
    return True


def is_anothers(home: str) -> bool:
    """Does the file name another kernel? A laptop's name may change with its network."""
    named, this = _named(home), _this()
    return named not in (this, ("", "", "")) and (named[1:] != this[1:] or named[1] == UNKNOWN)


def release(home: str) -> None:
    """Say that the stack of this kernel has ended."""
    Path(_file(home)).unlink(missing_ok=True)


def _file(home: str) -> str:
    return f"{home}/kernel"


def _touched(home: str) -> float:
    try:
        return os.stat(_file(home)).st_mtime
    except FileNotFoundError:
        return 0


def _named(home: str) -> tuple[str, str, str]:
    lines = read_small(_file(home)).splitlines()
    return (lines[0], lines[1], lines[2]) if len(lines) == 3 else ("", "", "")


def _this() -> tuple[str, str, str]:
    """Return machine, boot and pid namespace, as far as there is a /proc that says so."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = UNKNOWN
    return socket.gethostname() or "this machine", boot(), namespace


def boot() -> str:
    """Return what names the time since the machine was started."""
    return read_small("/proc/sys/kernel/random/boot_id").strip() or UNKNOWN
