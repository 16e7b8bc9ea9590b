"""List all stacks of this user: stacks with a record, and running stacks without a record."""

import os
import time
from itertools import chain
from typing import NamedTuple

import psutil

from hivepipe.home import Place, project_of, state_folder
from hivepipe.stack import kernel
from hivepipe.stack.project_records import records
from hivepipe.stack.runtime_folder import Stack
from hivepipe.stack.stack_processes import (
    SUPERVISOR,
    ProcessTable,
    had_supervisor,
    home_of,
    process_tree,
    value_or,
)


class KnownStack(NamedTuple):
    """A stack and its state.

    `state` is `running` or, if processes have lost their supervisor, `broken`. Without processes it
    is `stopped`, `off`, `resting` (recorded as on) or `gone` (the home was deleted). A stack that
    another machine or container runs is `running`, without processes.
    """

    stack: Stack
    project: str  # "" for the default home and for any home that several projects may share
    state: str
    processes: list[psutil.Process]

    @property
    def age_secs(self) -> float:
        """Return the age in seconds of the stack's oldest process, or 0 if no process runs."""
        since = [value_or(process.create_time, time.time()) for process in self.processes]
        return max(time.time() - min(since), 0) if since else 0

    @property
    def memory_bytes(self) -> int:
        """Return the memory of the stack's processes in bytes (PSS, or USS on macOS)."""
        return sum(_memory_of(process) for process in self.processes)


def known_stacks(table: ProcessTable) -> list[KnownStack]:
    """Return every stack of this user, sorted by home."""
    states = {
        Stack.of(Place("", record["home"], record)): record.get("state", "on")
        for record in records()
    }
    homes = {stack.home for stack in states}
    for stack in _running_stacks(table):
        if stack.home not in homes:
            states[stack] = "on"
    return [_look_at(stack, states[stack], table) for stack in sorted(states)]


def _running_stacks(table: ProcessTable) -> list[Stack]:
    """Return the stacks, recorded or not, whose supervisors use this process's state folder."""
    return [
        Stack(home_of(process), os.path.dirname(config))
        for process, config in table.supervisors().items()
        if _state_folder_of(process) == state_folder()
    ]


def _state_folder_of(process: psutil.Process) -> str:
    """Return the state folder of another process; one account may have several state folders."""
    environ = value_or(process.environ, {})
    state = environ.get("XDG_STATE_HOME") or f"{environ.get('HOME', '')}/.local/state"
    return f"{state}/hivepipe"


def _look_at(stack: Stack, recorded: str, table: ProcessTable) -> KnownStack:
    found = table.of(stack)
    processes: set[psutil.Process] = set()
    for member in chain(found.get(SUPERVISOR, ()), *found.values()):
        if member not in processes:  # nearly all descend from the supervisor
            processes.update(process_tree(member))
    if processes:
        is_broken = SUPERVISOR not in found and had_supervisor(stack, found)
        state = "broken" if is_broken else "running"
    elif not os.path.isdir(stack.home):
        state = "gone"
    elif recorded == "on" and kernel.other_machine(stack.home):
        state = "running"
    else:
        state = {"on": "resting", "down": "stopped"}.get(recorded, recorded)
    project = project_of(stack.home)
    return KnownStack(stack, project, state, sorted(processes, key=lambda process: process.pid))


def _memory_of(process: psutil.Process) -> int:
    full = value_or(process.memory_full_info, None)
    if full is None:
        return 0
    return int(getattr(full, "pss", full.uss))  # macOS has no pss
