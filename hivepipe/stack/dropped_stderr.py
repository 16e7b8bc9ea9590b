"""Inside supervisord: continue while the disk accepts no log.

If supervisord cannot write a log, it prints the reason to stderr: a file, because `start` reads it.
On the same full disk this write failed too, and ended supervisord, and Redis with it. So stderr
leads nowhere once supervisord runs. supervisord loads this module as an `rpcinterface`.
"""

import os
from typing import Any

from supervisor import events


def make(_supervisord: Any, **_config: str) -> object:
    """Redirect stderr to /dev/null when supervisord has started."""
    events.subscribe(events.SupervisorRunningEvent, lambda _event: _drop_stderr())
    return object()  # the plugin has no methods to call


def _drop_stderr() -> None:
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
