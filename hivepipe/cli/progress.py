"""Tell on a terminal how far a long command is."""

import time
from collections.abc import Callable

from hivepipe.cli.terminal import is_terminal, say

TELL_EVERY_SECS = 10.0


class Progress:
    """Prints a line on a terminal at most every ten seconds, but not in the first ten."""

    def __init__(self) -> None:
        self._told_at = time.monotonic()

    def tell(self, text: Callable[[], str]) -> None:
        """Print the result of `text` if it is time."""
        if time.monotonic() - self._told_at < TELL_EVERY_SECS or not is_terminal(err=True):
            return
        self._told_at = time.monotonic()
        say(text(), err=True)
