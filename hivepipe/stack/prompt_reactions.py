"""Inside supervisord: act at once when a program has ended.

By itself, supervisord notices the end of a program after up to a second, unless something ends its
wait. supervisord waits again before it restarts the program or stops the next group. supervisord
loads this module as an `rpcinterface`, its extension point. The interface has no methods.
"""

import atexit
import os
import signal
import time
from typing import Any

from supervisor import events
from supervisor.states import SupervisorStates

STEADY_SECS = 5  # a crash loop keeps supervisord's own rate, about one start a second


def make(supervisord: Any, **_config: str) -> object:
    """Have supervisord act at once in a shutdown, and when a program ends.

    A program that ran for less than STEADY_SECS is restarted after the usual wait.
    """
    options = supervisord.options
    ready, write_end = os.pipe()
    os.write(write_end, b"!")  # never read, so a wait for `ready` returns at once

    def restart(event: Any) -> None:
        if time.time() - event.process.laststart >= STEADY_SECS:
            options.poller.register_readable(ready)  # for one wait: supervisord then drops it

    events.subscribe(events.ProcessStateExitedEvent, restart)
    events.subscribe(events.SupervisorStoppingEvent, lambda _event: _prepare_end(options))
    return object()  # the plugin has no methods to call


def _prepare_end(options: Any) -> None:
    """End supervisord's waits if it shuts down, but not if it restarts its programs."""
    if options.mood == SupervisorStates.SHUTDOWN:
        _end_waits(options)
        atexit.register(os._exit, 0)  # freeing the workers' modules takes 0.2 s


def _end_waits(options: Any) -> None:
    """Make Python write a byte to a pipe for each signal, and supervisord wait for the pipe."""
    ready, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    options.get_socket_map()[ready] = _Signals(ready)
    options.poller.register_readable(ready)  # supervisord's current pass would miss it otherwise
    os.write(write_end, b"!")  # a program may have ended before this point


class _Signals:
    """The reading end of the signals' pipe, with the methods that supervisord calls."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def handle_read_event(self) -> None:
        os.read(self._descriptor, 4096)
