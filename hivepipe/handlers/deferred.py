"""A handler that is imported when its operation first comes.

The direct path starts a process for one event, and would pay for what it never executes: Redis'
client, HTTP, language models. Processes that live long load all when they start: what an upgrade
put on the disk meanwhile is not theirs.
"""

from collections.abc import Callable, Iterable
from importlib import import_module


class Deferred:
    """Stands for `module.function` of this package."""

    def __init__(self, name: str) -> None:
        """Nothing is imported yet."""
        self._module, _, self._function = name.rpartition(".")

    def load(self) -> Callable[..., None]:
        """Import the handler and return it."""
        module = import_module(f"{__package__}.{self._module}")
        handler: Callable[..., None] = getattr(module, self._function)
        return handler

    def __call__(self, *arguments: object) -> None:
        """Execute it."""
        self.load()(*arguments)


def load_all(handlers: Iterable[object]) -> None:
    """Import whatever is not imported yet."""
    for handler in handlers:
        if isinstance(handler, Deferred):
            handler.load()
