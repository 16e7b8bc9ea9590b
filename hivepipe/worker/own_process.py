"""The start of a stack's processes: umask, settings, log, and a lock against a second process."""

import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import ClassVar

from hivepipe.config.config_file import Config, load_and_use
from hivepipe.errors import LockHeldError
from hivepipe.files import core_dumps
from hivepipe.home import Place
from hivepipe.jobs.process_log import set_up
from hivepipe.redact.configured import use_rules
from hivepipe.stack.installed import installed
from hivepipe.stack.lock import acquire_lock
from hivepipe.stack.parent_death import end_with_supervisor
from hivepipe.stack.runtime_folder import Stack, make_private

LOCK_WAIT_SECS = 10.0
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def begin(name: str) -> tuple[Place, Config]:
    """Set up a stack's process, with a log of this name; return its home's paths and settings."""
    os.umask(0o077)
    core_dumps.leave_none()
    place, config = load_and_use()
    set_up(name)
    return place, config


class SoleProcess:
    """A process, one per home, that ends on a signal, an upgrade or its supervisor's end."""

    name: ClassVar[str]  # name of the lock and of the log

    def __init__(self, stack: Stack) -> None:
        """Acquire the lock `name`. Raise LockHeldError if the home already has such a process."""
        make_private(stack.folder)
        end_with_supervisor(stack)
        acquire_lock(stack.lock(self.name), LOCK_WAIT_SECS)
        self._version = installed()
        self._is_stopped = False

    def stop(self, _number: int, _frame: FrameType | None) -> None:
        """Make `run` end soon; a signal handler calls this."""
        self._is_stopped = True

    def _should_continue(self) -> bool:
        return not self._is_stopped and installed() == self._version

    def run(self) -> None:
        """Work until `_should_continue` is False."""
        raise NotImplementedError


@contextmanager
def stop_signals_blocked() -> Iterator[None]:
    """Block the stop signals, for a `with` block that starts a thread.

    The thread inherits this. Otherwise the kernel might deliver a signal to the thread, and the
    main thread would continue to wait.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def serve_alone(kind: type[SoleProcess]) -> None:
    """Run the process until SIGTERM. Exit with 75 if the home already has this process."""
    place, _ = begin(kind.name)
    use_rules(place.home)
    try:
        served = kind(Stack.of(place))
    except LockHeldError as error:
        logging.getLogger(f"hivepipe.{kind.name}").error("%s", error)
        sys.exit(os.EX_TEMPFAIL)
    for number in STOP_SIGNALS:
        signal.signal(number, served.stop)
    served.run()
