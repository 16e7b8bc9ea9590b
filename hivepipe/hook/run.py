"""The main function of every hook: read, take in, answer.

Three guarantees: A hook prints nothing unless it has an answer. The exit code is 0 and stderr stays
empty in every case. A hook ends within a second, not counting the time in which it waited for a
CPU.
"""

import posix
import time
from _signal import ITIMER_REAL, SIG_IGN, SIGALRM, SIGHUP, SIGINT, SIGTERM, setitimer, signal

from hivepipe import sender, settings
from hivepipe.events import claude_code
from hivepipe.hook import instance as instances
from hivepipe.hook import intake, stdin

LATE_STDIN_SECS = 10.0  # time limit for stdin in a child process
HARD_STOP_SECS = 0.8
LAST_SECS = 0.2  # time after the hard stop to spool the event and write the log line
WAITING_SHARE = 0.3
MOST_GAINS = 4  # most extensions, as Claude Code ends a hook after 5 s; the last is for spooling


def run(name: str) -> None:
    """Handle one event of this name and end the process."""
    began_ns = instances.own_start_ns()
    answer, direct = intake.NOTHING
    # When Claude Code is ended, it sends its hooks SIGTERM, and kills them a second later.
    for number in (SIGHUP, SIGINT, SIGTERM):
        signal(number, SIG_IGN)
    claude_code.scan_without_json()
    posix.umask(0o077)  # a mask that excludes the owner would make an unreadable spool
    try:
        if not (_is_disabled() or intake.is_left_to_settings(name)):
            answer, direct = intake.take_in(name, _read(), began_ns)
    except BaseException as error:  # noqa: BLE001  a hook fails open, and the log says how
        _keep_after(name, intake.kind_of(error))
    _answer_and_end(answer, name, direct)


def _is_disabled() -> bool:
    return settings.switched_on("HIVEPIPE_DISABLED") or settings.switched_on("HIVEPIPE_NESTED")


def _answer_and_end(answer: bytes, name: str, direct: str) -> None:
    """Print the hook's answer, apply the spool file `direct` if it is not "", and end at once.

    The interpreter's normal exit takes 1 ms more.
    """
    try:
        _answer(answer)
        if direct:
            from hivepipe.hook.hand_over import apply_and_end  # noqa: PLC0415  most use a queue

            apply_and_end(name, intake.place_of_event or intake.locate(None), direct)
    finally:
        posix._exit(0)


def _answer(answer: bytes) -> None:
    """Print the hook's answer. Cancel the alarm first, because its handler could also answer."""
    setitimer(ITIMER_REAL, 0)
    if answer:
        posix.write(1, answer)


def _read() -> stdin.Input:
    """Read the event within STDIN_SECS, then set the alarm of the other steps to HARD_STOP_SECS.

    If the time for reading was extended, the alarm comes later by as much.
    """
    began = time.monotonic()
    signal(SIGALRM, _stop_waiting)
    # The alarm repeats: the first may come between Python's check for signals and its read.
    setitimer(ITIMER_REAL, stdin.WAIT_SECS, stdin.WAIT_SECS / 8)
    received = stdin.read_event()
    if _forked_from:
        began = time.monotonic() - stdin.WAIT_SECS
        sender.outlive_parent(*_forked_from)
    signal(SIGALRM, _stop_hard)
    ends = began + HARD_STOP_SECS + _gains * stdin.WAIT_SECS
    setitimer(ITIMER_REAL, max(ends - time.monotonic(), 0.001))
    return received


def _stop_waiting(*_signal: object) -> None:
    if not (_gains_time(stdin.WAIT_SECS, MOST_GAINS - 1) or _wait_in_background()):
        stdin.stop_waiting()


_forked_from: tuple[int, dict[int, str]] | None = None  # in a child: the parent, its ancestors


def _wait_in_background() -> bool:
    """End the hook in time, and wait longer for the event in a child process.

    Return True in the child process, or False if no child process was made.
    """
    global _forked_from
    if _forked_from or not stdin.is_pipe():
        return False
    parent, ancestors = posix.getppid(), instances.ancestors()
    try:
        if posix.fork():
            posix._exit(0)
    except OSError:
        return False
    _forked_from = parent, ancestors
    posix.setsid()
    # Claude Code waits until nobody has the other end of its pipes.
    nothing = posix.open("/dev/null", posix.O_RDWR)
    posix.dup2(nothing, 1)
    posix.dup2(nothing, 2)
    setitimer(ITIMER_REAL, LATE_STDIN_SECS, stdin.WAIT_SECS / 8)
    return True


_waited_ns = 0  # time spent waiting for a CPU, up to the last deadline
_gains = 0


def _gains_time(secs: float, most_gains: int) -> bool:
    """Extend the deadline if the hook waited for a CPU; return whether it was extended.

    A deadline is meant for operations that hang. Without the extension, a hook that gets no CPU
    time on an overloaded machine would lose its event.
    """
    global _waited_ns, _gains
    waited_ns = instances.waited_for_cpu()
    if waited_ns is None:
        return False
    waited_ns, _waited_ns = waited_ns - _waited_ns, waited_ns
    if waited_ns < secs * WAITING_SHARE * 1e9 or _gains >= most_gains:
        return False
    _gains += 1
    setitimer(ITIMER_REAL, secs, secs / 8)
    return True


def _stop_hard(*_signal: object) -> None:
    """Spool the event, log a line and end the process; if the disk hangs, just end the process.

    The guard does not see an event that is spooled here, and does not count its call.
    """
    if _gains_time(HARD_STOP_SECS - stdin.WAIT_SECS, MOST_GAINS - 1):
        return
    signal(SIGALRM, _stop_at_last)
    setitimer(ITIMER_REAL, LAST_SECS)
    try:
        _keep_after("hook", "out of time")
    finally:
        posix._exit(0)


def _keep_after(name: str, failure: str) -> None:
    """Spool the event if it is not stored yet. If that fails, count the event as lost."""
    if intake.keep is None:
        return _log_failure(name, failure)
    try:
        intake.keep()
        _log_failure(name, f"{failure}; the event is kept")
    except BaseException:  # noqa: BLE001  this was the last attempt
        _count_lost()
        _log_failure(name, f"{failure}; the event is lost")


def _count_lost() -> None:
    from hivepipe.queue.spool import count_lost  # noqa: PLC0415  rare

    count_lost(intake.place_of_event or intake.locate(None), sender.time_ns())


def _stop_at_last(*_signal: object) -> None:
    if not _gains_time(LAST_SECS, MOST_GAINS):
        posix._exit(0)


def _log_failure(name: str, what: str) -> None:
    """Log the failure in the home that this event belongs to."""
    try:
        intake.log(intake.locate(None), name, what)
    except BaseException:  # noqa: BLE001  nothing else can report it
        return
