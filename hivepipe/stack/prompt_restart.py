"""Inside supervisord: restart a program at once if it ran for a while before it died.

By itself, supervisord starts due programs, then reaps dead ones, then waits up to a second. It
loads this module as an `rpcinterface`, its extension point. The interface has no methods.
"""

import os
import time
from typing import Any

from supervisor import events

STEADY_SECS = 5  # a program that dies earlier is restarted by supervisord, about once a second


def make(supervisord: Any, **_config: str) -> object:
    """End supervisord's wait whenever a process dies that ran for a while."""
    ready, write_end = os.pipe()
    os.write(write_end, b"!")  # never read, so a wait for `ready` returns at once
    poller = supervisord.options.poller

    def wake(event: Any) -> None:
        if time.time() - event.process.laststart >= STEADY_SECS:
            # It ends one wait only, because supervisord then drops descriptors it does not know.
            poller.register_readable(ready)

    events.subscribe(events.ProcessStateExitedEvent, wake)
    return object()  # it has no methods to call
