"""The process `intake`: takes events from native hooks over a unix socket, one after the other.

    <runtime folder>/intake.sock    a frame (hivepipe.hook.frame) from the hook,
                                    then `A`, the size of the answer (4 bytes) and the answer
    <runtime folder>/intake-hangs   written by a hook that got no answer: for 5 s the next hooks use
                                    no intake, unless the intake works again and removes the file

`A` says that the event is in Redis or in the spool. A hook that does not receive `A` writes the
event to the spool, so nothing is lost if the intake fails. An event that arrives both ways has the
same ids, so it counts once (docs/architecture.md, "Late, double, lost"). An answer is sent as soon
as it is known. Before the answer, the event is put into the spool (hivepipe.hook.slot). After the
answer, the event is planned and handed over. If the guard has to ask Redis, the event is handed
over before the answer. Events are processed one at a time, so that a session's events keep their
order. An event takes less than a millisecond.

Only modules of the hook path are imported here, so that the process stays small.
"""

import fcntl
import gc
import posix
import select
import sys
import time
from _signal import ITIMER_REAL, SIGALRM, SIGHUP, SIGINT, SIGTERM, setitimer, signal
from _socket import AF_UNIX, SHUT_RD, SOCK_STREAM, socket

from hivepipe import home, settings
from hivepipe.events import claude_code
from hivepipe.guard.client import LISTED
from hivepipe.guard.listed_calls import ListedCalls
from hivepipe.hook import intake
from hivepipe.hook.compiled_settings import compiled_settings
from hivepipe.hook.frame import PREFIX_BYTES, Frame, sizes
from hivepipe.hook.instance import remove
from hivepipe.hook.slot import Slot
from hivepipe.queue.client import keep_connections
from hivepipe.queue.spool import make_private_folder

BACKLOG = 4096
MOST_READ_AT_ONCE = 64
EVENT_SECS = 0.3  # longest time for one event; less than ANSWER_MS, which the hook waits
SILENT_SECS = 5
_CHECK_SECS = 1
_CHUNK_BYTES = 1 << 16  # malloc would map a larger buffer for each event
_MISSING = (0, 0)
_GARBAGE = 50_000  # objects before a collection; events create no cycles
ACCEPTED = b"A"
_STATUS_LINE = "Statusline"
_ANSWERED = (_STATUS_LINE, "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolBatch", "")
# With a shared disk, the answer says where the agent may write.
_ANSWERED_WITH_DISK = ("PostToolUse", "PostToolUseFailure")
_DISK = "HIVEPIPE_SHARED_ROOT"


class OutOfTimeError(Exception):
    """An event took too long, so its hook has written it to the spool."""


class Reader:
    """A connection and the bytes that it has sent so far."""

    __slots__ = ("connection", "data", "since", "size")

    def __init__(self, connection: int) -> None:
        """`connection` is a descriptor from which nothing was read yet."""
        self.connection = connection
        self.data = b""
        self.size = 0
        self.since = time.monotonic()

    def is_whole(self) -> bool:
        """Read once, when bytes have arrived. Return True if the frame is complete.

        Raise OSError if the connection fails, ValueError if the bytes are not a frame.
        """
        chunk = posix.read(self.connection, _CHUNK_BYTES)
        if not chunk:
            raise OSError
        self.data += chunk
        if not self.size and len(self.data) >= PREFIX_BYTES:
            self.size = PREFIX_BYTES + sum(sizes(self.data))
        return 0 < self.size <= len(self.data)


def main() -> None:
    """Serve the home that HIVEPIPE_HOME names until a signal ends the process."""
    posix.umask(0o077)
    claude_code.scan_without_json()
    place = home.locate(settings.environment("HIVEPIPE_HOME") or home.default_home())
    make_private_folder(place.runtime)
    lock = posix.open(
        f"{place.runtime}/intake.lock", posix.O_RDWR | posix.O_CREAT | posix.O_CLOEXEC
    )
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit(posix.EX_TEMPFAIL)
    keep_connections()
    gc.freeze()
    gc.set_threshold(_GARBAGE)
    Server(f"{place.runtime}/intake.sock", place.home).serve()


class Server:
    """The listening socket and the connections that are being read."""

    def __init__(self, path: str, folder: str) -> None:
        """Listen on the socket `path`. The socket of a killed process is replaced atomically."""
        self.slot = Slot(folder)
        self.listed = ListedCalls(f"{path.rpartition('/')[0]}/{LISTED}")
        self.listener = socket(AF_UNIX, SOCK_STREAM)
        self.listener.setblocking(False)
        temporary = f"{path}.{posix.getpid()}"
        self.listener.bind(temporary)
        self.listener.listen(BACKLOG)
        posix.rename(temporary, path)
        self.path = path
        self.socket = _identity(path)
        self.hangs = f"{path.rpartition('/')[0]}/intake-hangs"
        self.readers: dict[int, Reader] = {}
        self.poller = select.poll()
        self.poller.register(self.listener, select.POLLIN)
        self.is_ending = False
        self.code = _identity(__file__)
        self.pid = posix.getpid()
        self.parent = posix.getppid()

    def serve(self) -> None:
        """Answer events until a signal, an upgrade, the supervisor's death or a removed socket."""
        for number in (SIGHUP, SIGINT, SIGTERM):
            signal(number, self._request_end)
        signal(SIGALRM, _out_of_time)
        while self._goes_on():
            self._drop_silent()
            _reap()
            remove(self.hangs)
            self._take_in_until(time.monotonic() + _CHECK_SECS)

    def _take_in_until(self, end: float) -> None:
        while not self.is_ending and (left := end - time.monotonic()) > 0:
            for descriptor, _ in self.poller.poll(left * 1000):
                if descriptor == self.listener.fileno():
                    self._accept()
                else:
                    self._read(self.readers[descriptor])

    def _goes_on(self) -> bool:
        is_current = _identity(__file__) in (self.code, _MISSING)
        is_reachable = _identity(self.path) == self.socket
        return not self.is_ending and is_current and is_reachable and posix.getppid() == self.parent

    def _request_end(self, *_signal: object) -> None:
        self.is_ending = True
        if posix.getpid() != self.pid:  # a child of `_apply`, which shares the listener
            return
        try:
            self.listener.shutdown(SHUT_RD)  # otherwise Python continues to wait after the signal
        except OSError:  # other systems may refuse this; the wait then lasts up to a second
            return

    def _accept(self) -> None:
        if len(self.readers) >= MOST_READ_AT_ONCE:
            self.poller.modify(self.listener, 0)  # accept no more until a connection closes
            return
        try:
            connection, _ = self.listener._accept()  # type: ignore[attr-defined]
        except OSError:  # the hook has given up
            return
        self.readers[connection] = Reader(connection)
        self.poller.register(connection, select.POLLIN)

    def _read(self, reader: Reader) -> None:
        try:
            if not reader.is_whole():
                return
            frame = Frame(reader.data)
            take_in(Exchange(frame, reader, self.slot, self.listed), _may_be_answered(frame))
        except (OSError, ValueError, LookupError):  # the connection failed, or this is not a frame
            pass
        self._close(reader)

    def _close(self, reader: Reader) -> None:
        self.poller.unregister(reader.connection)
        del self.readers[reader.connection]
        posix.close(reader.connection)
        self.poller.modify(self.listener, select.POLLIN)
        remove(self.hangs)

    def _drop_silent(self) -> None:
        now = time.monotonic()
        for reader in [each for each in self.readers.values() if now - each.since > SILENT_SECS]:
            self._close(reader)


class Exchange:
    """One event and its answer, which is sent once the event is spooled or in Redis."""

    __slots__ = ("connection", "data", "frame", "is_answered", "is_kept", "listed", "slot")

    def __init__(self, frame: Frame, reader: Reader, slot: Slot, listed: ListedCalls) -> None:
        """`slot` is empty; `listed` caches the last calls of conversations for the guard."""
        self.frame = frame
        self.connection = reader.connection
        self.data = reader.data
        self.slot = slot
        self.listed = listed
        self.is_kept = False  # True while the event is in the slot
        self.is_answered = False

    def answer_early(self, answer: bytes, is_recorded: bool = False) -> None:
        """Put the event into the spool unless it is recorded elsewhere, then answer.

        If the event cannot be put into the spool, do nothing, because `end` answers later.
        """
        if not is_recorded:
            self.is_kept = self.slot.keep(self.frame.sender.time_ns, self.data)
        if not (is_recorded or self.is_kept):
            return
        try:
            self._answer(answer)
        except OSError:  # the hook was killed
            pass
        posix.sched_yield()  # the woken hook may wait for this processor

    def end(self, taken: intake.Taken | None) -> None:
        """Remove the event from the spool, and answer if no answer was sent.

        `taken` is None if the event could not be handed over. Then the event stays in the spool.
        """
        if taken is None:
            self.slot.close()
            return
        if self.is_kept:
            self.slot.remove_event()
        if not self.is_answered:
            self._answer(taken[0])

    def _answer(self, answer: bytes) -> None:
        self.is_answered = True
        posix.write(self.connection, ACCEPTED + len(answer).to_bytes(4, "little") + answer)


def _may_be_answered(frame: Frame) -> bool:
    if frame.name not in _ANSWERED_WITH_DISK:
        return frame.name in _ANSWERED
    place = frame.sender.place
    if place is None or _DISK.encode() in frame.sender.environment:
        return True
    return _DISK in compiled_settings(f"{place[1]}/hook-settings.json", place[0])[0]


def take_in(exchange: Exchange, may_be_answered: bool) -> None:
    """Process one event and answer its hook. A hook that gets no answer spools the event.

    A batch gets no answer while events wait in the spool. They may include results of its calls,
    and Redis counts a call of a batch without a result as refused.
    """
    if exchange.frame.name == "PostToolBatch" and exchange.slot.is_behind():
        return
    if not may_be_answered:
        exchange.answer_early(intake.NEUTRAL)
    taken = _take_in(exchange)
    exchange.end(taken)
    if taken is not None:
        _apply(exchange.frame, taken[1])


def _take_in(exchange: Exchange) -> intake.Taken | None:
    """Hand one event over; return None if that failed, and log the reason."""
    global _is_timed
    try:
        _is_timed = True
        setitimer(ITIMER_REAL, EVENT_SECS)
        return _take_in_as_sender(exchange)
    except Exception as error:  # noqa: BLE001
        _is_timed = False
        exchange.listed.forget()
        _log_failure(exchange.frame, error)
        return None
    finally:
        _is_timed = False
        setitimer(ITIMER_REAL, 0)
        posix.chdir("/")


def _take_in_as_sender(exchange: Exchange) -> intake.Taken:
    frame = exchange.frame
    frame.act_as_sender()
    if frame.name == _STATUS_LINE:
        from hivepipe.hook.status_line import line  # noqa: PLC0415  optional

        return line(frame.event.data).encode("utf-8", "replace"), ""
    if intake.is_left_to_settings(frame.name):
        return intake.NOTHING
    return intake.take_in(frame.name, frame.event, frame.began_ns, exchange)


def _apply(frame: Frame, path: str) -> None:
    """Apply a spool file, if any, in a separate process without Redis."""
    place = intake.place_of_event
    if path and place and posix.fork() == 0:
        from hivepipe.hook.hand_over import apply_and_end  # noqa: PLC0415  most use a queue

        apply_and_end(frame.name, place, path)


def _log_failure(frame: Frame, error: Exception) -> None:
    what = "out of time" if isinstance(error, OutOfTimeError) else intake.kind_of(error)
    try:
        intake.log(intake.locate(None), frame.name, f"{what}; the event is kept")
    except OSError:
        return


def _identity(path: str) -> tuple[int, int]:
    """Return inode and modification time (ns) of a file, or _MISSING if it does not exist.

    A file may be missing for a moment while it is replaced.
    """
    try:
        status = posix.stat(path)
    except OSError:
        return _MISSING
    return status.st_ino, status.st_mtime_ns


_is_timed = False  # true while an event is processed


def _out_of_time(*_signal: object) -> None:
    """Stop the current event by OutOfTimeError. An alarm after the event's end does nothing."""
    if _is_timed:
        raise OutOfTimeError


def _reap() -> None:
    try:
        while posix.waitpid(-1, posix.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return
