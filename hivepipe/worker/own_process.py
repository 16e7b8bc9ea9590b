"""The start of a stack's processes: umask, settings, log, and one process per home."""

import logging
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Protocol

from hivepipe.config.config_file import Config, load_and_use
from hivepipe.errors import LockHeldError
from hivepipe.files import core_dumps
from hivepipe.home import Place
from hivepipe.jobs.process_log import set_up
from hivepipe.redact.configured import use_rules
from hivepipe.stack.lock import Stack

LOCK_WAIT_SECS = 10.0
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Served(Protocol):
    """A process of which a home has one."""

    def stop(self, number: int, frame: FrameType | None, /) -> None:
        """End `run` soon; called by a signal."""

    def run(self) -> None:
        """Work until `stop`."""


def begin(name: str) -> tuple[Place, Config]:
    """Set up this process of a stack, whose log has this name; return its place and settings."""
    os.umask(0o077)
    core_dumps.leave_none()
    place, config = load_and_use()
    set_up(name)
    return place, config


def serve_alone(name: str, make: Callable[[Stack], Served]) -> None:
    """Run the process until SIGTERM. Exit with 75 if `make` finds that the home already has one."""
    place, _ = begin(name)
    use_rules(place.home)
    try:
        served = make(Stack.of(place))
    except LockHeldError as error:
        logging.getLogger(f"hivepipe.{name}").error("%s", error)
        sys.exit(os.EX_TEMPFAIL)
    for number in STOP_SIGNALS:
        signal.signal(number, served.stop)
    served.run()
