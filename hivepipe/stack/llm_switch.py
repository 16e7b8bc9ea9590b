"""Inside supervisord: run the llm worker only while summaries are enabled.

The slow worker makes the file `llm.wanted` in the runtime folder and removes it. supervisord loads
this as an `rpcinterface`, its extension point, and calls it every five seconds.
"""

import os
from typing import Any

from supervisor import events
from supervisor.states import RUNNING_STATES, STOPPED_STATES, SupervisorStates

from hivepipe.queue.names import LLM, LLM_WANTED


class NoCalls:
    """An empty RPC namespace."""


def make(supervisord: Any, **_config: str) -> NoCalls:
    """Look at the file on every five-second tick."""
    folder = os.path.dirname(os.path.abspath(supervisord.options.configfile))
    wanted = f"{folder}/{LLM_WANTED}"
    events.subscribe(events.Tick5Event, lambda _event: switch(supervisord, os.path.exists(wanted)))
    return NoCalls()


def switch(supervisord: Any, is_wanted: bool) -> None:
    """Start or stop the program if it is not as wanted; a stack that ends starts nothing."""
    if supervisord.options.mood < SupervisorStates.RUNNING:
        return
    for group in supervisord.process_groups.values():
        process = group.processes.get(LLM)
        if process is None:
            continue
        if is_wanted and not process.pid and process.get_state() in STOPPED_STATES:
            process.spawn()
        elif not is_wanted and process.get_state() in RUNNING_STATES:
            process.stop()
