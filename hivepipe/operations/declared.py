"""All declared operations: every module of the package `families` is imported."""

from importlib import import_module
from pkgutil import iter_modules

from hivepipe.jobs.args import ARGS
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
