"""Pause and resume the work on all queues. During a pause, hooks keep their events on disk."""

import subprocess

from hivepipe.errors import StackError
from hivepipe.home import Place, environment_of
from hivepipe.stack import lifecycle
from hivepipe.stack.ping import answers
from hivepipe.stack.registration import change_records
from hivepipe.stack.runtime_folder import Stack
from hivepipe.stack.starter import read_starting

_START_SECS = 90


def pause(place: Place) -> None:
    """Stop the stack until `resume` or `hivepipe up`, as `hivepipe down` does."""
    lifecycle.take_down(Stack.of(place))


def resume(place: Place) -> None:
    """Start a stopped stack as a hook does, with the recorded Python and environment.

    Raise StackError if the stack is not stopped or cannot be started.
    """
    if place.state != "down" or not place.python:
        raise StackError("the stack is not stopped by `hivepipe down`: nothing to resume")
    stack = Stack.of(place)
    change_records({place.home}, state="on")
    command = [place.python, "-I", "-m", "hivepipe.stack.starter", f"{stack.folder}/starting"]
    try:
        subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment_of(place.home),
            timeout=_START_SECS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StackError(f"the stack was not started: {error}") from error
    if not answers(stack.address):
        reason = read_starting(stack.folder).reason or "no reason is known"
        raise StackError(f"the stack was not started: {reason}")
