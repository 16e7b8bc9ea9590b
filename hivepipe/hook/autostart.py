"""Start the stack when Redis does not answer. Only one hook starts it, with a delay between starts.

    <runtime folder>/starting    <not before, seconds since 1970> <failed starts in a row> <reason>

When the time in the file has passed, a hook that gets the lock moves the time 10 s ahead and starts
the stack. After a failed start the process hivepipe.stack.starter writes a longer delay. Hooks
import this module only when Redis is absent.
"""

import posix
import time
from _signal import SIG_DFL, SIGHUP, SIGINT, SIGTERM, signal

from hivepipe import settings
from hivepipe.home import (
    Place,
    environment_of,
    locate_for_hook,
    open_or_make,
    read_small,
    spare_runtime_folder,
)
from hivepipe.queue.spool import make_private_folder

AGAIN_SECS = 10
LONGEST_WAIT_SECS = 3600

_MODULE = "hivepipe.stack.starter"


def start_stack(place: Place) -> None:
    """Start the stack of this home in the background, if automatic start is enabled and due."""
    if place.state != "on" or not place.python or not _is_wanted():
        return
    path = _path(place)
    if path and _is_due(read_small(path)) and _claim_start(path) and posix.fork() == 0:
        try:
            _become_starter(place, path)
        finally:
            posix._exit(1)


def run(_event: str = "") -> None:
    """Start the stack of the current project for the native hook; end the process."""
    try:
        posix.umask(0o077)
        start_stack(locate_for_hook(settings.variable("CLAUDE_PROJECT_DIR") or "."))
    finally:
        posix._exit(0)


def _is_wanted() -> bool:
    """Tell whether automatic start is enabled; in CI and the cloud it is off by default."""
    if settings.variable("HIVEPIPE_AUTOSTART"):
        return not settings.switched_off("HIVEPIPE_AUTOSTART")
    return not settings.on_ephemeral_machine()


def _path(place: Place) -> str:
    """Return the path of the file `starting`, after making its folder, or "" on failure."""
    for folder in (place.runtime, spare_runtime_folder(place.home)):
        try:
            make_private_folder(folder)
        except OSError:  # XDG_RUNTIME_DIR belongs to a login that has ended
            continue
        return f"{folder}/starting"
    return ""


def _is_due(text: str) -> bool:
    """Tell whether a start is due.

    A time further ahead than the longest delay also counts as due, because the clock was wrong when
    this time was written.
    """
    try:
        wait = float(text.split(" ", 1)[0]) - time.time()
    except ValueError:
        return True
    return not 0 < wait <= LONGEST_WAIT_SECS


def _claim_start(path: str) -> bool:
    """Move the time of the next start ahead; only one of many concurrent hooks gets True."""
    descriptor = open_or_make(path, posix.O_RDWR)
    try:
        posix.lockf(descriptor, posix.F_TLOCK, 0)
        text = posix.read(descriptor, 4096).decode("utf-8", "replace")
        if not _is_due(text):
            return False
        rest = text.partition(" ")[2].strip() or "0"
        data = f"{time.time() + AGAIN_SECS:.3f} {rest}\n".encode()
        posix.pwrite(descriptor, data, 0)
        posix.ftruncate(descriptor, len(data))
        return True
    except OSError:  # another hook holds the lock
        return False
    finally:
        posix.close(descriptor)


def _become_starter(place: Place, path: str) -> None:
    """Detach from the hook and execute the process that starts the stack.

    All descriptors are closed, because the hook's caller waits until its pipes are closed.
    """
    for number in (SIGHUP, SIGINT, SIGTERM):  # the hook ignores these signals
        signal(number, SIG_DFL)
    posix.setsid()
    nowhere = posix.open("/dev/null", posix.O_RDWR)
    for descriptor in (0, 1, 2):
        posix.dup2(nowhere, descriptor)
    for name in posix.listdir("/dev/fd"):
        if int(name) > 2:
            try:
                posix.close(int(name))
            except OSError:  # this is the descriptor of /dev/fd itself
                continue
    environment = environment_of(place.recorded)
    # The full path: started by its bare name, Python does not find its virtual environment.
    posix.execve(place.python, [place.python, "-I", "-m", _MODULE, path], environment)
