"""Page long output through `less` in a terminal, as git does."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import Any, cast

from hivepipe.cli.terminal import guarded, is_dumb, is_terminal
from hivepipe.programs import find_program

# Quit if the output fits the screen, keep colours, keep the screen, run no LESSOPEN program.
_OPTIONS = ("-F", "-R", "-X", "-L")


class _Page:
    """The pipe into the pager. `isatty` returns True, because the pager writes to the terminal."""

    def __init__(self, stream: TextIOWrapper) -> None:
        self._stream = stream

    def isatty(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def paged() -> Iterator[None]:
    """Page stdout through `less` if it is installed and stdout is a terminal that it can use."""
    less = find_program("less") if is_terminal() and not is_dumb() else None
    if less is None:
        yield
        return
    with _interrupts_are_for_the_pager():
        pager = subprocess.Popen([less, *_OPTIONS], stdin=subprocess.PIPE)
        stream = TextIOWrapper(cast(Any, pager.stdin), "utf-8", "backslashreplace")
        before = sys.stdout
        sys.stdout = guarded(cast(TextIOWrapper, _Page(stream)))
        try:
            with suppress(BrokenPipeError):  # the user left the pager
                yield
        finally:
            sys.stdout = before
            with suppress(BrokenPipeError):
                stream.close()
            pager.wait()


@contextmanager
def _interrupts_are_for_the_pager() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
