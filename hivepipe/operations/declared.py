"""Every declared operation: the files of `families` are found by their place."""

from importlib import import_module
from pkgutil import iter_modules

from hivepipe.jobs.args import ARGS
from hivepipe.operations import families
from hivepipe.operations.lazy_handler import Handler

for _found in iter_modules(families.__path__):
    import_module(f"{families.__name__}.{_found.name}")

HANDLERS = {name: Handler(args) for name, args in ARGS.items()}
