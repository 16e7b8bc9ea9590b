"""A handler that is imported at its first use.

The direct path starts a process for one event, and would otherwise import modules that it does not
use: Redis' client, HTTP, language models. Long-lived processes load all handlers when they start,
so that an upgrade on disk does not change them.
"""

from collections.abc import Callable, Iterable
from importlib import import_module


class Deferred:
    """A handler, named as `module.function` of this package."""

    def __init__(self, name: str) -> None:
        """Store the name; nothing is imported yet."""
        self._module, _, self._function = name.rpartition(".")

    def load(self) -> Callable[..., None]:
        """Import the handler and return it."""
        module = import_module(f"{__package__}.{self._module}")
        handler: Callable[..., None] = getattr(module, self._function)
        return handler

    def __call__(self, *arguments: object) -> None:
        """Call the handler."""
        self.load()(*arguments)


def load_all(handlers: Iterable[object]) -> None:
    """Import the deferred handlers among these."""
    for handler in handlers:
        if isinstance(handler, Deferred):
            handler.load()
