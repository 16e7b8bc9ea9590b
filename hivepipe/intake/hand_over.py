"""Give the messages of one event to Redis, else to the spool; or apply them at once.

On the hook path; what is needed only when something is amiss is imported only then.
"""
# ruff: noqa: PLC0415

import posix
import sys
from _signal import ITIMER_REAL, SIGALRM, setitimer, signal

from hivepipe import home, settings
from hivepipe.jobs import Message
from hivepipe.queues import client

DIRECT_SECS = 3.0  # a start of Python with its imports, and a second for the database


def hand_over(name: str, place: home.Place, event_time_ns: int, messages: list[Message]) -> str:
    """Hand the messages over; return the spool file that the direct path is to apply, if any.

    OSError: neither Redis nor the disk took them.
    """
    direct = settings.switched_off("HIVEPIPE_USE_QUEUE")
    if not direct and _push(name, place, messages):
        return ""
    from hivepipe.queues.spool import write_spool

    path = write_spool(f"{place.home}/spool", event_time_ns, messages)
    return path if direct else ""


def _push(name: str, place: home.Place, messages: list[Message]) -> bool:
    address = place.socket
    if address.startswith("/") and not home.is_private_folder(address.rsplit("/", 1)[0]):
        return False  # no stack was ever started, or somebody else's folder stands there
    try:
        client.push(address, messages)
    except client.RefusedError as refused:
        if not refused.is_absent:
            from hivepipe.hook_log import log_line

            log_line(place.logs, name, "WARNING", f"Redis: {refused}; event kept in the spool")
        return False
    return True


def apply_directly(name: str, place: home.Place, path: str) -> None:
    """Let a process apply this spool file, and wait for it; what it cannot do stays in the spool.

    The answer must have been given: the process has no descriptor of the hook's.
    """
    signal(SIGALRM, lambda *_signal: posix._exit(0))
    setitimer(ITIMER_REAL, DIRECT_SECS)
    child = posix.fork()
    if child == 0:
        try:
            _become_direct(place, path)
        finally:
            posix._exit(1)
    _, status = posix.waitpid(child, 0)
    if status:
        from hivepipe.hook_log import log_line

        reason = "the direct run failed: does the recorded python have hivepipe?"
        log_line(place.logs, name, "ERROR", f"{reason} event kept in the spool")


def _become_direct(place: home.Place, path: str) -> None:
    python = place.python or sys.executable
    nowhere = posix.open("/dev/null", posix.O_RDWR)
    for descriptor in (0, 1, 2):
        posix.dup2(nowhere, descriptor)
    environment = dict(posix.environ)
    environment[b"HIVEPIPE_HOME"] = place.home.encode("utf-8", "surrogateescape")
    posix.execve(python, [python, "-I", "-m", "hivepipe.direct", path], environment)
