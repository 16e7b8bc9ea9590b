"""The process that Claude Code started for the current event, with its environment.

The sender is the native hook that sent the event to the process `intake` or wrote the event to the
spool, else this process. Hooks import this module.
"""

import posix
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Sender:
    """The process that sent an event, described by values that it sent with the event."""

    __slots__ = ("environment", "is_gone", "parent", "pid", "place", "stats", "time_ns")

    def __init__(self, pid: int, parent: int, time_ns: int) -> None:
        """Set values that the sender sent; `time_ns` is when the sender had read the event."""
        self.pid = pid
        self.parent = parent
        self.time_ns = time_ns
        self.environment: dict[bytes, bytes] = {}
        self.stats: dict[int, str] = {}  # pid -> /proc/<pid>/stat of the sender and its ancestors
        self.place: tuple[str, str, str] | None = None  # project, home, record, if known
        self.is_gone = False  # the sender spooled the event, and waits for no answer


_now: Sender | None = None  # None means that this process is the sender


def use(sender: Sender | None) -> None:
    """Set the sender of the next event; None stands for this process."""
    global _now
    _now = sender


def outlive_parent(parent: int, stats: dict[int, str]) -> None:
    """Make this detached process the sender, as a child of `parent`. Its answer is not used.

    `stats` has the /proc/<pid>/stat of the parent and its ancestors.
    """
    sender = Sender(posix.getpid(), parent, time.time_ns())
    sender.stats, sender.environment, sender.is_gone = stats, posix.environ, True
    use(sender)


def pid() -> int:
    return _now.pid if _now else posix.getpid()


def parent() -> int:
    """Return the process id of the sender's parent."""
    return _now.parent if _now else posix.getppid()


def stat_of(pid: int) -> str | None:
    """Return the /proc/<pid>/stat that the sender sent, or "" if it sent none of `pid`.

    Return None if this process itself is the sender.
    """
    return _now.stats.get(pid, "") if _now else None


def is_gone() -> bool:
    """Tell whether the sender has ended and waits for no answer."""
    return _now is not None and _now.is_gone


def place() -> tuple[str, str, str] | None:
    """Return the sender's project, home and record, or None if they must be looked up."""
    return None if is_gone() or _now is None else _now.place


def time_ns() -> int:
    """Return when the sender had read the event; if this process is the sender, the time now."""
    return _now.time_ns if _now else time.time_ns()


def environment() -> "Mapping[bytes, bytes]":
    return _now.environment if _now else posix.environ
