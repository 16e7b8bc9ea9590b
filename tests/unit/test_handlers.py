"""The tables of handlers: every name in them leads to a function, imported by whoever needs it."""

import subprocess
import sys

import pytest

from hivepipe.operations.lazy_handler import Deferred, Handler
from hivepipe.operations.registry import HANDLERS
from hivepipe.operations.slow import SLOW_OPERATIONS

EVERY = {**HANDLERS, **{name: slow.handler for name, slow in SLOW_OPERATIONS.items()}}
DEFERRED = {
    name: handler for name, handler in EVERY.items() if isinstance(handler, Deferred | Handler)
}


@pytest.mark.parametrize("operation", DEFERRED)
def test_what_is_deferred_is_the_operations_function(operation: str) -> None:
    assert DEFERRED[operation].load().__name__ == operation


@pytest.mark.parametrize(
    ("module", "loads"), [("hivepipe.direct", set()), ("hivepipe.run_job", {"redis"})]
)
def test_who_executes_one_job_loads_no_handler_before_it(module: str, loads: set[str]) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    said = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    heavy = {"redis", "hivepipe.operations.cleanup", "hivepipe.operations.summaries"}
    assert heavy & set(said.stdout.split()) == loads
