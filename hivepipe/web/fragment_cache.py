"""A cache of rendered page fragments, keyed by the identity of the object they show."""

from collections import OrderedDict
from collections.abc import Callable
from itertools import count
from threading import Lock
from typing import NamedTuple

from markupsafe import Markup

MOST_BYTES = 2 << 20
MOST_PARTS = 64  # a part without text keeps its object alive, too


class _Part(NamedTuple):
    shown: object
    filters: dict[str, str]
    text: Markup


class FragmentCache:
    """The last rendered fragments; each keeps its object alive, so identity is unambiguous."""

    def __init__(self) -> None:
        """Start empty."""
        self._parts: OrderedDict[int, _Part] = OrderedDict()
        self._numbers = count()
        self._lock = Lock()

    def __call__(
        self, shown: object, filters: dict[str, str], caller: Callable[[], Markup]
    ) -> Markup:
        """Return the fragment that the caller renders of an object and the URL's filters."""
        with self._lock:
            for number, part in self._parts.items():
                if part.shown is shown and part.filters == filters:
                    self._parts.move_to_end(number)
                    return part.text
        text = caller()
        with self._lock:
            self._parts[next(self._numbers)] = _Part(shown, filters, text)
            while self._is_full():
                self._parts.popitem(last=False)
        return text

    def _is_full(self) -> bool:
        size = sum(len(part.text) for part in self._parts.values())
        return size > MOST_BYTES or len(self._parts) > MOST_PARTS
