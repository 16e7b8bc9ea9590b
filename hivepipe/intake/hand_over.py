"""Give the messages of one event to Redis, else to the spool; or apply them at once.

A note (a script of the guard's) goes with them and is answered; one that Redis did not take is kept
on disk like the messages, and counted later.

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


def hand_over(
    name: str,
    place: home.Place,
    event_time_ns: int,
    messages: list[Message],
    note: tuple[str, list[str]] | None = None,
) -> tuple[str, str]:
    """Hand the messages over.

    Return the spool file that the direct path is to apply, if any, and what the note's script
    said, empty if Redis was not asked. OSError: neither Redis nor the disk took the messages.
    """
    direct = settings.switched_off("HIVEPIPE_USE_QUEUE")
    if not direct:
        try:
            said = push(place, messages, note)
        except client.RefusedError as refused:
            _keep(place, event_time_ns, messages, note)
            _after_refusal(name, place, refused, len(messages))
            return "", ""
        # A Redis of others runs whether or not our stack does.
        if messages and not place.socket.startswith("/"):
            _call_stack(name, place)
        return "", said
    return _keep(place, event_time_ns, messages) if messages else "", ""


def push(
    place: home.Place, messages: list[Message], note: tuple[str, list[str]] | None = None
) -> str:
    """Give messages and note to Redis and return what the note's script said.

    RefusedError: Redis did not take them.
    """
    if not _is_spoken_to(place):
        raise client.AbsentError
    if note:
        return client.push_with(place.socket, messages, *note)
    client.push(place.socket, messages)
    return ""


def _is_spoken_to(place: home.Place) -> bool:
    """May a hook speak to the Redis of this home?"""
    if place.socket.startswith("/"):
        # Else no stack was ever started, or somebody else's folder stands there.
        return home.is_private_folder(place.socket.rpartition("/")[0])
    from hivepipe.queues.endpoint import is_local

    return place.state != "down" and is_local(place.socket)


def _keep(
    place: home.Place,
    event_time_ns: int,
    messages: list[Message],
    note: tuple[str, list[str]] | None = None,
) -> str:
    from hivepipe.queues.spool import keep_event

    return keep_event(place, event_time_ns, messages, note)


def _after_refusal(name: str, place: home.Place, refused: client.RefusedError, jobs: int) -> None:
    """The event is safe: let the stack come up, or say what is wrong with it."""
    if not refused.is_absent:
        from hivepipe.hook_log import log_line

        log_line(place.logs, name, "WARNING", f"Redis: {refused}; event kept in the spool")
    elif jobs:
        _call_stack(name, place)


def _call_stack(name: str, place: home.Place) -> None:
    """Let the stack know that something waits, or let it come up."""
    if not place.python:  # nobody ever had a stack for this home
        return
    if not place.socket.startswith("/"):
        from hivepipe.queues.endpoint import ring

        if ring(place.runtime):
            return
    from hivepipe.intake.autostart import start_stack

    try:
        start_stack(place)
    except OSError as error:
        from hivepipe.hook_log import log_line

        reason = posix.strerror(error.errno or 0)
        log_line(place.logs, name, "ERROR", f"the stack is not started: {reason}")


def apply_and_end(name: str, place: home.Place, path: str) -> None:
    """Apply this spool file at once, and end."""
    try:
        _apply_directly(name, place, path)
    finally:
        posix._exit(0)


def _apply_directly(name: str, place: home.Place, path: str) -> None:
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
    environment = home.environment_of(place.home)
    posix.execve(python, [python, "-I", "-m", "hivepipe.direct", path], environment)
