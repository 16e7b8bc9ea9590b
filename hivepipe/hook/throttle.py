"""Count an instance's operations (calls of certain tools), and allow one checkpoint per interval.

`instances/<key>.checkpoint` is updated under a file lock, so that only one of two parallel hooks
makes the checkpoint, with or without Redis:

    t <last checkpoint> <last report>             times of events, ns; a report stores the totals
    s <instance>:<session> <operations> <checkpoints>
                                                  running totals of the last 8 sessions; a later
                                                  process may have the same key, as in a container
    e <event> <due> <operations> <checkpoints>    results of the last 16 events: a duplicate event
                                                  counts once and gets the same result

The totals of most operations are stored by the report of a later event: Stop or SessionEnd. Events
may be counted in any order, because some wait in the spool. An operation that is counted after the
report of a later event makes a checkpoint, which stores the totals.

Hooks import this module.
"""

import posix
import time
from _blake2 import blake2b

from hivepipe.events.job_plan import Count
from hivepipe.home import open_or_make, read_small

REMEMBERED_SESSIONS = 8
REMEMBERED_EVENTS = 16
_SIZE_BYTES = 8192  # 8 sessions with ids of 128 characters and 16 events need half of this size
LOCK_SECS = 0.5  # with fifty hooks at once the holder may wait 0.1 s for a CPU
_LOCK_STEP_SECS = 0.001


class _State:
    """The content of an instance's `.checkpoint` file; a damaged file counts as empty.

    The store keeps the higher totals, so counts never fall.
    """

    __slots__ = ("answers", "last_ns", "reported_ns", "sessions")

    def __init__(self, data: bytes) -> None:
        self.last_ns = self.reported_ns = 0
        self.sessions: dict[bytes, list[int]] = {}
        self.answers: dict[bytes, list[int]] = {}
        try:
            for line in data.splitlines():
                kind, name, *numbers = line.split()
                if kind == b"t":
                    self.last_ns = int(name)
                    self.reported_ns = int(numbers[0]) if numbers else 0
                elif kind == b"s":
                    operations, checkpoints = numbers
                    self.sessions[name] = [int(operations), int(checkpoints)]
                else:
                    due, operations, checkpoints = numbers
                    self.answers[name] = [int(due), int(operations), int(checkpoints)]
        except ValueError:
            return

    def totals(self, session: bytes) -> list[int] | None:
        """Return the totals of `<instance>:<session>`, or None; 1.0.0 named only the session."""
        older = self.sessions.pop(session.rpartition(b":")[2], None)
        return self.sessions.setdefault(session, older) if older else self.sessions.get(session)

    def text(self) -> bytes:
        lines = [b"t %d %d" % (self.last_ns, self.reported_ns)]
        lines += [
            b"s %b %d %d" % (name, totals[0], totals[1])
            for name, totals in list(self.sessions.items())[-REMEMBERED_SESSIONS:]
        ]
        lines += [
            b"e %b %d %d %d" % (name, answer[0], answer[1], answer[2])
            for name, answer in list(self.answers.items())[-REMEMBERED_EVENTS:]
        ]
        return b"\n".join(lines) + b"\n"


def count_operation(
    path: str, session: str, event_keys: tuple[bytes, ...], event_time_ns: int, interval_ns: int
) -> Count:
    """Count one operation; return whether a checkpoint is due, and the totals.

    If `path` is unusable, a checkpoint is due and the totals are None.
    """
    names = _names(event_keys)
    try:
        descriptor = _open_locked(path)
    except OSError:
        return Count(True, None, None)
    try:
        state = _State(posix.pread(descriptor, _SIZE_BYTES, 0))
        for name in names:
            if name in state.answers:
                due, operations, checkpoints = state.answers[name]
                return Count(bool(due), operations, checkpoints)
        answer = _count(state, session.encode(), event_time_ns, interval_ns)
        state.answers[names[0]] = answer
        _write(descriptor, state)
        return Count(bool(answer[0]), answer[1], answer[2])
    except OSError:
        return Count(True, None, None)
    finally:
        posix.close(descriptor)


def _count(state: _State, session: bytes, event_time_ns: int, interval_ns: int) -> list[int]:
    elapsed = event_time_ns - state.last_ns
    # A clock that was set back by more than an interval must not stop checkpoints.
    due = elapsed >= interval_ns or elapsed < -interval_ns
    if due:
        state.last_ns = event_time_ns
    # A report in the future was made before the clock was set back.
    due = due or event_time_ns <= state.reported_ns <= time.time_ns()
    operations, checkpoints = state.totals(session) or [0, 0]
    state.sessions.pop(session, None)
    state.sessions[session] = [operations + 1, checkpoints + due]
    return [due, operations + 1, checkpoints + due]


def take_back(path: str, session: str, event_keys: tuple[bytes, ...]) -> None:
    """Undo the count of an event that could not be recorded and is tried again later.

    Otherwise it would count at each attempt, because only the last results are remembered. Raise
    OSError if `path` is unusable.
    """
    descriptor = _open_locked(path)
    try:
        state = _State(posix.pread(descriptor, _SIZE_BYTES, 0))
        totals = state.totals(session.encode())
        for name in _names(event_keys):
            answer = state.answers.pop(name, None)
            if answer and totals:
                totals[0] -= 1
                totals[1] -= answer[0]
                state.last_ns *= not answer[0]  # the event's checkpoint is due again
        _write(descriptor, state)
    finally:
        posix.close(descriptor)


def _names(event_keys: tuple[bytes, ...]) -> list[bytes]:
    return [blake2b(key, digest_size=8).hexdigest().encode() for key in event_keys]


def report_totals(path: str, session: str, event_time_ns: int) -> Count:
    """Return the running totals. An operation before this event is due if it is counted later.

    The totals are None if nothing was counted yet, or if `path` is unusable.
    """
    descriptor = -1
    try:
        descriptor = _open_locked(path)
        state = _State(posix.pread(descriptor, _SIZE_BYTES, 0))
        if event_time_ns > state.reported_ns or state.reported_ns > time.time_ns():
            state.reported_ns = event_time_ns
            _write(descriptor, state)
    except OSError:
        state = _State(read_small(path, _SIZE_BYTES).encode("utf-8", "surrogateescape"))
    finally:
        if descriptor >= 0:
            posix.close(descriptor)
    totals = state.totals(session.encode())
    return Count(False, totals[0], totals[1]) if totals else Count(False, None, None)


def _write(descriptor: int, state: _State) -> None:
    text = state.text()
    posix.pwrite(descriptor, text, 0)
    posix.ftruncate(descriptor, len(text))


def _open_locked(path: str) -> int:
    descriptor = open_or_make(path, posix.O_RDWR)
    end = time.monotonic() + LOCK_SECS
    while True:
        try:
            posix.lockf(descriptor, posix.F_TLOCK, 0)
            return descriptor
        except OSError:
            if time.monotonic() > end:  # the holder may be suspended: do not wait for it
                posix.close(descriptor)
                raise
            time.sleep(_LOCK_STEP_SECS)
