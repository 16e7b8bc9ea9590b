"""A cache of rendered page fragments: after a change, only what differs is rendered again."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock

from markupsafe import Markup

MOST_BYTES = 2 << 20
MOST_PARTS = 2048  # a part without text keeps its object alive, too


class FragmentCache:
    """The last rendered fragments, by the value that they show, or by identity without a hash.

    Each keeps its object alive, so identity is unambiguous. A value looks the same everywhere.
    """

    def __init__(self) -> None:
        self._parts: OrderedDict[Hashable, tuple[object, Markup]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def __call__(
        self, shown: object, filters: dict[str, str], caller: Callable[[], Markup]
    ) -> Markup:
        """Return the fragment that the caller renders of an object and the URL's filters."""
        key = (_hash(shown), *sorted(filters.items()))
        with self._lock:
            value, kept = self._parts.get(key, (None, Markup()))
            if value == shown:
                self._parts.move_to_end(key)
                return kept
        text = caller()
        with self._lock:
            _, before = self._parts.pop(key, (None, ""))
            self._parts[key] = (shown, text)
            self._bytes += len(text) - len(before)
            while self._bytes > MOST_BYTES or len(self._parts) > MOST_PARTS:
                _, (_, oldest) = self._parts.popitem(last=False)
                self._bytes -= len(oldest)
        return text


def _hash(shown: object) -> int:
    try:
        return hash(shown)
    except TypeError:
        return id(shown)
