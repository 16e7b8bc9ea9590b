"""Inside supervisord: what ran for a while and died is started again at once.

supervisord starts what is due, then notices who died, then waits up to a second. It loads this as
an `rpcinterface`, its place for code of one's own; there is nothing to call in it.
"""

import os
import time
from typing import Any

from supervisor import events

STEADY_SECS = 5  # a crash loop keeps supervisord's own pace, about one start a second


class NoCalls:
    """An empty namespace."""


def make(supervisord: Any, **_config: str) -> NoCalls:
    """Let the death of a process end supervisord's wait."""
    ready, write_end = os.pipe()
    os.write(write_end, b"!")  # never read: a wait for `ready` is over at once
    poller = supervisord.options.poller

    def wake(event: Any) -> None:
        if time.time() - event.process.laststart >= STEADY_SECS:
            poller.register_readable(ready)  # for one wait: supervisord drops what it does not know

    events.subscribe(events.ProcessStateExitedEvent, wake)
    return NoCalls()
