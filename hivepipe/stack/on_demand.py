"""Inside supervisord: run the on-demand programs that have a file (see `hivepipe.stack.wanted`).

supervisord loads this module as an `rpcinterface`, its extension point, and calls it every five
seconds.
"""

import fcntl
import os
from typing import Any

from supervisor import events
from supervisor.states import RUNNING_STATES, STOPPED_STATES, SupervisorStates

from hivepipe.stack.wanted import WANTED


def make(supervisord: Any, **_config: str) -> object:
    """Have the `.wanted` files checked on every five-second tick of supervisord."""
    folder = os.path.dirname(os.path.abspath(supervisord.options.configfile))
    events.subscribe(events.Tick5Event, lambda _event: switch(supervisord, folder))
    return object()  # the plugin has no methods to call


def switch(supervisord: Any, folder: str) -> None:
    """Start the wanted programs and stop the other ones, unless the stack is shutting down."""
    if supervisord.options.mood < SupervisorStates.RUNNING:
        return
    for group in supervisord.process_groups.values():
        for name, process in group.processes.items():
            if not process.config.autostart:
                _switch(process, f"{folder}/{name}{WANTED}")


def _switch(process: Any, wanted: str) -> None:
    is_wanted = os.path.exists(wanted)
    state = process.get_state()
    if is_wanted and not process.pid and state in STOPPED_STATES and _is_free(wanted):
        process.spawn()
    elif not is_wanted and state in RUNNING_STATES:
        process.stop()


def _is_free(wanted: str) -> bool:
    """Tell whether a `.wanted` file names no lock, or a lock that no process holds."""
    try:
        with open(wanted, encoding="utf-8") as file:
            lock = file.read()
        if lock:
            with open(lock, "ab") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # the lock is held or cannot be made, or the file was just removed
        return False
    return True
