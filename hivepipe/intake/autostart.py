"""Start the stack when nothing answers: one hook of many, and not again at once.

    <runtime folder>/starting    <not before, seconds of 1970> <failed starts in a row> <reason>

Whoever finds the time passed and gets the lock moves it 10 s ahead and starts; the start itself
writes the longer waits after a failure (hivepipe.stack.starter). On the hook path, when Redis is
absent only.
"""

import posix
import time

from hivepipe import settings
from hivepipe.home import Place, environment_of, read_small, spare_runtime_folder
from hivepipe.queues.spool import make_private_folder

AGAIN_SECS = 10
LONGEST_WAIT_SECS = 3600

_MODULE = "hivepipe.stack.starter"


def start_stack(place: Place) -> None:
    """Start the stack of this home in the background, if that is wanted and due."""
    if place.state != "on" or not place.python or not _is_wanted():
        return
    path = _path(place)
    if path and _is_due(read_small(path)) and _wins(path) and posix.fork() == 0:
        try:
            _become_starter(place, path)
        finally:
            posix._exit(1)


def _is_wanted() -> bool:
    """Not in CI, nor in the cloud, unless somebody says so."""
    if settings.variable("HIVEPIPE_AUTOSTART"):
        return not settings.switched_off("HIVEPIPE_AUTOSTART")
    return not settings.on_a_passing_machine()


def _path(place: Place) -> str:
    """Return the file in a folder of ours alone, which is made; empty if that cannot be."""
    for folder in (place.runtime, spare_runtime_folder(place.home)):
        try:
            make_private_folder(folder)
        except OSError:  # the one of a login that is over
            continue
        return f"{folder}/starting"
    return ""


def _is_due(text: str) -> bool:
    """Has the time passed? One beyond the longest wait was written by another clock."""
    try:
        wait = float(text.split(" ", 1)[0]) - time.time()
    except ValueError:
        return True
    return not 0 < wait <= LONGEST_WAIT_SECS


def _wins(path: str) -> bool:
    """Move the time ahead; of many hooks one does."""
    flags = posix.O_RDWR | posix.O_CREAT | posix.O_CLOEXEC | posix.O_NOFOLLOW
    descriptor = posix.open(path, flags, 0o600)
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
    except OSError:  # another hook is at it
        return False
    finally:
        posix.close(descriptor)


def _become_starter(place: Place, path: str) -> None:
    """Let go of everything of the hook's, or its caller would wait for a pipe to close."""
    posix.setsid()
    nowhere = posix.open("/dev/null", posix.O_RDWR)
    for descriptor in (0, 1, 2):
        posix.dup2(nowhere, descriptor)
    for name in posix.listdir("/dev/fd"):
        if int(name) > 2:
            try:
                posix.close(int(name))
            except OSError:  # the one that listed them
                continue
    environment = environment_of(place.recorded)
    # The full path: by the name alone Python does not find its virtual environment.
    posix.execve(place.python, [place.python, "-I", "-m", _MODULE, path], environment)
