"""Give a command access to the Redis of a home, even if its stack is not running."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from hivepipe.errors import LockHeldError, StackError
from hivepipe.home import Place
from hivepipe.stack.lifecycle import start_for_hook
from hivepipe.stack.ping import answers
from hivepipe.stack.runtime_folder import Stack
from hivepipe.stack.temporary_redis import has_file, temporary_redis


@contextmanager
def available_redis(stack: Stack) -> Iterator[str]:
    """Yield the address of a Redis with the jobs of a home, or "" if the home never had a job.

    If no stack runs, start a server on the append-only file for the duration of the context.
    """
    with ExitStack() as opened:
        yield _address(stack, opened)


def _address(stack: Stack, opened: ExitStack) -> str:
    if stack.url or answers(stack.socket):
        return stack.address
    if not has_file(stack.home):
        return ""
    try:
        return opened.enter_context(temporary_redis(stack))
    except LockHeldError:
        if answers(stack.socket):  # a hook has just started the stack, whose Redis serves
            return stack.address
        raise


def ensure_running(place: Place) -> str:
    """Start the stack like a hook, if it is not running; return the address of its Redis.

    The started stack stops when it is idle. Raise StackError if the user stopped the stack or the
    project is not registered.
    """
    stack = Stack.of(place)
    if not answers(stack.address):
        if not place.python:
            raise StackError("there is no stack: hivepipe is not set up here; run `hivepipe init`")
        if place.state != "on":
            text = f"the stack is stopped by `hivepipe {place.state}`"
            raise StackError(f"{text}: run `hivepipe {'on' if place.state == 'off' else 'up -d'}`")
        start_for_hook(stack)
    return stack.address
