"""Push the messages of one event to Redis or spool them, or apply them directly.

A note is a Lua script of the guard and its arguments. Redis executes the script in the command that
pushes the messages, and returns the script's result. A note that Redis did not execute is spooled
like the messages and counted later. The same command sends the duration of the hook, which is not
counted for spooled events.

Hooks import this module. The modules that handle failures are imported only when needed.
"""
# ruff: noqa: PLC0415

import posix
import sys
from _signal import ITIMER_REAL, SIGALRM, setitimer, signal
from time import monotonic_ns, time_ns

from hivepipe import home, sender, settings
from hivepipe.events.job_plan import Message
from hivepipe.home import lua_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hivepipe.queue.client import RefusedError

COUNT_SCRIPT = lua_text("queue/lua/count_hook.lua")
IN_TIME_SCRIPT = lua_text("queue/lua/in_time.lua")
WAITED_MS = 1000  # longer than a hook waits for a reply, on a busy machine too
DIRECT_SECS = 3.0  # time for Python's start, and a second for the database


def hand_over(
    name: str,
    place: home.Place,
    event_time_ns: int,
    messages: list[Message],
    note: tuple[str, list[str]] | None = None,
    began_ns: int = 0,
) -> tuple[str, str]:
    """Push the messages, or write them to the spool.

    `began_ns` is the start of the hook on the monotonic clock; with 0, its duration is not counted.
    Return the spool file that the direct path must apply, or "", and the result of the note's
    script, or "". Raise OSError if neither Redis nor the disk accepts the messages.
    """
    if sender.is_gone():
        _spool(place, event_time_ns, messages, note)
        return "", ""
    if settings.switched_off("HIVEPIPE_USE_QUEUE"):
        return _spool(place, event_time_ns, messages) if messages else "", ""
    if _may_connect(place):
        return "", _push_or_keep(name, place, event_time_ns, messages, note, began_ns)
    _spool(place, event_time_ns, messages, note)
    if messages:
        _notify_stack(name, place)
    return "", ""


def _push_or_keep(
    name: str,
    place: home.Place,
    event_time_ns: int,
    messages: list[Message],
    note: tuple[str, list[str]] | None,
    began_ns: int,
) -> str:
    """Push messages, or keep them on disk; return the result of the note's script, or ""."""
    from hivepipe.queue.client import RefusedError

    waits = bool(note) and name == "PostToolBatch" and _notes_wait(place)
    try:
        time = _time_of(name, began_ns) if began_ns else ""
        note_result = _push(place, messages, None if waits else note, time)
    except RefusedError as refused:
        _spool(place, event_time_ns, messages, note)
        _after_refusal(name, place, refused, len(messages))
        return ""
    if waits:
        _spool(place, event_time_ns, [], note)
    # An external Redis answers even if the stack does not run.
    if messages and not place.socket.startswith("/"):
        _notify_stack(name, place)
    return note_result


def _time_of(name: str, began_ns: int) -> str:
    """Return `<event> <n>`, which says how long the hook took.

    `n` is the least number for which the hook took less than 2 ** (n / 4) us.
    """
    us = (monotonic_ns() - began_ns) // 1000
    return f"{name} {(us**4).bit_length()}"


def push_note(place: home.Place, note: tuple[str, list[str]]) -> str:
    """Push a note, or keep it on disk; return the result of its script, or "" if kept."""
    from hivepipe.queue.client import RefusedError

    try:
        if _may_connect(place):
            return _push(place, [], note, "")
    except RefusedError:
        pass
    return _spool(place, 0, [], note)


def _push(
    place: home.Place,
    messages: list[Message],
    note: tuple[str, list[str]] | None,
    time: str,
) -> str:
    """Push messages, note and duration; return the script's result or raise RefusedError."""
    from hivepipe.queue.client import push_with

    script, arguments = note or ("", [])
    script = f"{IN_TIME_SCRIPT}if in_time then\n{script}{COUNT_SCRIPT}end\n"
    return push_with(place.socket, messages, script, [*arguments, _end_ms(place), time])


def _end_ms(place: home.Place) -> str:
    """Return the time (ms) after which no hook waits for a reply, or "" if Redis has a TCP port.

    A Redis with a TCP port may run on another machine, whose clock may differ.
    """
    return str(time_ns() // 1_000_000 + WAITED_MS) if place.socket.startswith("/") else ""


def _notes_wait(place: home.Place) -> bool:
    """Tell whether notes wait on disk.

    The guard judges no batch until these notes are counted.
    """
    for folder in (place.home, place.runtime):
        try:
            names = posix.listdir(folder)
        except OSError:
            continue
        if any(name.startswith("call-notes") for name in names):
            return True
    return False


def _may_connect(place: home.Place) -> bool:
    """Tell, before the client is imported, whether hooks may connect to a Redis of this home."""
    if place.socket.startswith("/"):
        # Without a private folder no stack was started here, or another user owns the folder.
        folder = place.socket.rpartition("/")[0]
        return posix.access(place.socket, posix.F_OK) and home.is_private_folder(folder)
    from hivepipe.queue.endpoint import is_local

    return place.state != "down" and is_local(place.socket)


def _spool(
    place: home.Place,
    event_time_ns: int,
    messages: list[Message],
    note: tuple[str, list[str]] | None = None,
) -> str:
    from hivepipe.queue.spool import keep_event

    return keep_event(place, event_time_ns, messages, note)


def _after_refusal(name: str, place: home.Place, refused: "RefusedError", jobs: int) -> None:
    """Start the stack if no Redis listens, else log the refusal. The event is already spooled."""
    if not refused.is_absent:
        from hivepipe.files.hook_log import log_line

        log_line(place.logs, name, "WARNING", f"Redis: {refused}; event kept in the spool")
    elif jobs:
        _notify_stack(name, place)


def _notify_stack(name: str, place: home.Place) -> None:
    """Notify the stack that events are spooled, or start the stack."""
    if not place.python:  # no stack was ever registered for this home
        return
    if not place.socket.startswith("/"):
        from hivepipe.queue.endpoint import wake_up

        if wake_up(place.runtime):
            return
    from hivepipe.hook.autostart import start_stack

    try:
        start_stack(place)
    except OSError as error:
        from hivepipe.files.hook_log import log_line

        reason = posix.strerror(error.errno or 0)
        log_line(place.logs, name, "ERROR", f"the stack is not started: {reason}")


def apply_and_end(name: str, place: home.Place, path: str) -> None:
    """Apply this spool file by another process, wait for it, and end this process."""
    try:
        _apply_directly(name, place, path)
    finally:
        posix._exit(0)


def _apply_directly(name: str, place: home.Place, path: str) -> None:
    """Start a process that applies this spool file, and wait for it. On failure the file stays.

    The answer must be written before, because the process inherits no descriptor of the hook.
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
        from hivepipe.files.hook_log import log_line

        reason = "the direct run failed: does the recorded python have hivepipe?"
        log_line(place.logs, name, "ERROR", f"{reason} event kept in the spool")


def _become_direct(place: home.Place, path: str) -> None:
    python = place.python or sys.executable
    nowhere = posix.open("/dev/null", posix.O_RDWR)
    for descriptor in (0, 1, 2):
        posix.dup2(nowhere, descriptor)
    environment = home.environment_of(place.home)
    posix.execve(python, [python, "-I", "-m", "hivepipe.direct", path], environment)
