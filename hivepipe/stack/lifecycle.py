"""Start, stop and restart the stack of a home, one change at a time.

The record and the processes change under one lock. So, with concurrent commands, a record never
says `down` while the stack runs, or `on` after a later `down`.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from hivepipe.db.tree import refuse_replaced
from hivepipe.errors import HivepipeError, StackError, StoreError, os_error_as
from hivepipe.files.file_size import raise_limit
from hivepipe.home import read_record
from hivepipe.stack import hook_copy, kernel, supervisor
from hivepipe.stack.conversion import TURN_SECS, converted
from hivepipe.stack.data_move import finish_interrupted_move
from hivepipe.stack.environment import record_environment
from hivepipe.stack.idle_policy import keep_running
from hivepipe.stack.lock import locked_folder
from hivepipe.stack.registration import change_records, refuse_switched_off
from hivepipe.stack.runtime_folder import Stack, make_private, remove_runtime
from hivepipe.stack.stack_processes import ProcessTable, stack_processes


def bring_up(project: str, stack: Stack) -> Stack:
    """Start the stack of a registered project, unless it runs; return when it is ready.

    Raise StackError if it does not become ready, and other errors as `stopped` does.
    """
    return _switched_on(project, stack, keep_running)


def start_for_hook(stack: Stack) -> None:
    """Start the stack of a home for a hook, unless a user has run `down` since the hook ran.

    A stack that runs without a supervisor (Procfile) is left alone. Raise StackError if containers
    run the stack: a second set of workers would keep theirs from starting again.
    """
    if kernel.is_in_containers(stack.home):
        raise StackError(
            "this stack runs in containers: run `docker compose up -d` there, or `hivepipe up -d "
            "--embedded` to run it here from now on"
        )
    if read_record(stack.home).get("state", "on") == "on":
        stack = converted(stack)
    with _locked_home(stack):
        if supervisor.runs_without(stack):
            return
        if read_record(stack.home).get("state") == "on":
            kernel.refuse_another(stack.home)  # whose sockets the record must keep
            change_records({stack.home}, socket=stack.address, runtime=stack.folder)
            _start(stack)
        elif not (kernel.is_of_another_kernel(stack.home) or stack_processes(stack)):
            remove_runtime(stack)  # the hook made the folder again after `down` had removed it


def take_down(stack: Stack) -> None:
    """Stop a stack and remove its runtime files but not its data. Hooks do not start it again.

    Raise StackError if a process survives, or jobs would be lost.
    """
    with _locked_home(stack):
        _record_and_end(stack)


def take_all_down(
    stacks: list[Stack], table: ProcessTable
) -> Iterator[tuple[Stack, HivepipeError | None]]:
    """Stop many stacks one by one; yield each with its error, or with None if it was stopped.

    `table` is read once. The records of stacks that do not run are changed in one pass. A stack
    that was started after the table was read is stopped too.
    """
    idle = {stack.home for stack in stacks if not table.of(stack)}
    are_down = _set_all_down(
        {home for home in idle if not kernel.is_used_by_another_namespace(home)}
    )
    for stack in stacks:
        try:
            with os_error_as(StackError, stack.home), _locked_home(stack):
                is_up = read_record(stack.home).get("state") == "on"  # `up` ran meanwhile
                if is_up or stack.home not in are_down:
                    _record_and_end(stack, table)
                else:
                    _stop_and_clean(stack, table)
            yield stack, None
        except HivepipeError as error:
            yield stack, error


def _set_all_down(homes: set[str]) -> set[str]:
    """Record that the stacks of these homes are down; return them, or set() if that failed."""
    try:
        change_records(homes, state="down")
    except (HivepipeError, OSError):
        return set()
    return homes


def _record_and_end(stack: Stack, table: ProcessTable | None = None) -> None:
    """Stop a stack. If its record cannot be changed (a full disk), raise StackError afterwards.

    Raise StackError, and change nothing, if the stack runs out of sight, as outside a container.
    """
    supervisor.refuse_unseen(stack)
    text = f"{stack.home} was stopped, but the next event may start it, as no file can be written"
    try:
        with os_error_as(StackError, text):
            change_records({stack.home}, state="down")
    finally:
        _stop_and_clean(stack, table)


def _stop_and_clean(stack: Stack, table: ProcessTable | None = None) -> None:
    supervisor.stop(stack, table)
    if not kernel.is_of_another_kernel(stack.home):
        kernel.release(stack.home)
        remove_runtime(stack)


def convert_home(stack: Stack) -> Stack:
    """Convert a home of version 1.0.0; return the stack of its new home.

    If the stack ran, it is started again with the current code. Raise TreeError as `converted`
    does.
    """
    ran = bool(supervisor.processes(stack))
    stack = converted(stack)
    if ran:
        with _locked_home(stack):
            _start(stack)
    return stack


@contextmanager
def stopped(project: str, stack: Stack) -> Iterator[Stack]:
    """Stop the stack for the duration of the block. If it ran, start it again afterwards.

    If the block raises an exception, the stack is not started again. Raise RegistrationError if the
    project is switched off, StackError if the stack does not stop or start, and TreeError as
    `converted` does.
    """
    ran = bool(supervisor.processes(stack))
    stack = converted(stack)
    with _locked_home(stack):
        refuse_switched_off(project)
        _stop_to_move(stack)
        yield stack
        if ran:
            _start(stack)


@contextmanager
def at_rest(stack: Stack, old: str = "", project: str = "") -> Iterator[None]:
    """Stop the stack and keep it stopped during the block, without a change of the record.

    An interrupted move of the data is finished first. If the project was renamed, `old` is its
    earlier path.
    """
    with _locked_home(stack):
        _stop_to_move(stack, old, project)
        kernel.release(stack.home)
        yield


def _stop_to_move(stack: Stack, old: str = "", project: str = "") -> None:
    kernel.refuse_another(stack.home)
    supervisor.stop(stack)
    finish_interrupted_move(stack.home, old, project)


def restart(project: str, stack: Stack) -> Stack:
    """Stop the stack of a registered project and start it with the installed code; return it."""
    return _switched_on(project, stack, supervisor.stop)


def _switched_on(project: str, stack: Stack, before: Callable[[Stack], None]) -> Stack:
    """Record that the stack is on, call `before` with the stack, start the stack, and return it.

    The home is converted first if it is one of 1.0.0. Raise RegistrationError if the project is
    switched off, StackError if a stop or start fails, TreeError as `converted` does.
    """
    stack = converted(stack)
    with _locked_home(stack):
        refuse_switched_off(project)
        kernel.refuse_another(stack.home)  # before the record forgets that containers run it
        change_records({stack.home}, state="on", containers="")
        record_environment(stack.home)
        before(stack)
        _start(stack)
    return stack


def _start(stack: Stack) -> None:
    """Start the stack, and update the copy of the hooks to the same version.

    Raise StackError if it does not start, TreeError if its data was replaced.
    """
    finish_interrupted_move(stack.home)
    with suppress(StoreError):  # the disk may be full; the writer waits for space
        refuse_replaced(stack.home)
    hook_copy.refresh()
    raise_limit()
    supervisor.start(stack)


@contextmanager
def _locked_home(stack: Stack) -> Iterator[None]:
    if not os.path.isdir(stack.home):  # the home was deleted, so nothing can start there
        yield
        return
    with locked_folder(stack.home, TURN_SECS):
        make_private(stack.folder)  # the previous holder of the lock may have removed it
        yield
