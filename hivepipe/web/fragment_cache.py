"""Keeps the text of large parts of a page while what they show is the same object."""

from collections import OrderedDict
from collections.abc import Callable
from itertools import count
from threading import Lock
from typing import NamedTuple

from markupsafe import Markup

MOST_BYTES = 2 << 20


class _Part(NamedTuple):
    shown: object
    asked: dict[str, str]
    text: Markup


class RenderedOnce:
    """The parts that were rendered last; the object is kept with its text, so its id is its own."""

    def __init__(self) -> None:
        """Nothing is rendered yet."""
        self._parts: OrderedDict[int, _Part] = OrderedDict()
        self._numbers = count()
        self._lock = Lock()

    def __call__(
        self, shown: object, asked: dict[str, str], caller: Callable[[], Markup]
    ) -> Markup:
        """Return what the caller renders of an object, for the filters of an address."""
        with self._lock:
            for number, part in self._parts.items():
                if part.shown is shown and part.asked == asked:
                    self._parts.move_to_end(number)
                    return part.text
        text = caller()
        with self._lock:
            self._parts[next(self._numbers)] = _Part(shown, asked, text)
            while sum(len(part.text) for part in self._parts.values()) > MOST_BYTES:
                self._parts.popitem(last=False)
        return text
