"""All declared operations, and their handlers, which are imported at their first use.

Every module of the package `families` is imported. The direct path starts a process per event. Such
a process should not import modules that it does not use: redis-py, HTTP, language models.
Long-lived processes load all handlers when they start, so that an upgrade on disk does not change
them.
"""

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from hivepipe.jobs.args import ARGS
from hivepipe.jobs.envelope import Envelope
from hivepipe.jobs.schedule_table import Periodic
from hivepipe.operations import families

for _found in iter_modules(families.__path__):
    import_module(f"{families.__name__}.{_found.name}")

OPERATIONS = ARGS  # operation -> its declaration

PERIODIC = tuple(
    Periodic(every.name, every.interval_secs, name, every.why, every.fallback_for)
    for name, args in ARGS.items()
    if (every := args.every)
)

Handler = Callable[..., None]  # parameters: database or context, origin, args
LOADED: dict[str, Handler] = {}


def handler_of(operation: str) -> Handler:
    """Return the handler of an operation; the first call imports it."""
    if operation not in LOADED:
        module, _, function = OPERATIONS[operation].handler.rpartition(".")
        LOADED[operation] = getattr(import_module(f"{__package__}.{module}"), function)
    return LOADED[operation]


def load(*queues: str | None) -> None:
    """Import the handlers of these queues; None stands for the operations without a slow queue."""
    for name, args in OPERATIONS.items():
        if args.queue in queues:
            handler_of(name)


def handle(place: Any, job: Envelope) -> None:
    """Call a handler with the job's arguments. Raise BadEnvelopeError if they are invalid."""
    handler_of(job.operation)(place, job, OPERATIONS[job.operation].read(job.payload))


def slow_queue(operation: str) -> str | None:
    """Return the queue of an operation that runs outside the writer's transactions, else None."""
    args = OPERATIONS.get(operation)
    return args.queue if args else None
