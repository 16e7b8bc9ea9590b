"""A handler that is imported at its first use, and called with the arguments of its operation.

The direct path starts a process for one event, which should not import unused modules: redis-py,
HTTP, language models. Long-lived processes load all handlers when they start, so that an upgrade on
disk does not change them.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from hivepipe.jobs.args import Args
from hivepipe.jobs.envelope import Envelope


class Handler:
    """The handler of an operation: a function of (database or context, origin, args)."""

    def __init__(self, args: type[Args]) -> None:
        self.args = args
        self._module, _, self._function = args.handler.rpartition(".")

    def load(self) -> Callable[..., None]:
        module = import_module(f"{__package__}.{self._module}")
        handler: Callable[..., None] = getattr(module, self._function)
        return handler

    def __call__(self, place: Any, job: Envelope) -> None:
        """Call the handler with the job's arguments. Raise BadEnvelopeError for invalid ones."""
        self.load()(place, job, self.args.read(job.payload))


def load_all(handlers: Iterable[object]) -> None:
    for handler in handlers:
        if isinstance(handler, Handler):
            handler.load()
