"""A cache of rendered page fragments, keyed by the identity of the object they show."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock

from markupsafe import Markup

MOST_BYTES = 2 << 20
MOST_PARTS = 64  # a part without text keeps its object alive, too


class FragmentCache:
    """The last rendered fragments; each keeps its object alive, so identity is unambiguous."""

    def __init__(self) -> None:
        self._parts: OrderedDict[Hashable, tuple[object, Markup]] = OrderedDict()
        self._lock = Lock()

    def __call__(
        self, shown: object, filters: dict[str, str], caller: Callable[[], Markup]
    ) -> Markup:
        """Return the fragment that the caller renders of an object and the URL's filters."""
        key = (id(shown), *sorted(filters.items()))
        with self._lock:
            if key in self._parts:
                self._parts.move_to_end(key)
                return self._parts[key][1]
        text = caller()
        with self._lock:
            self._parts[key] = (shown, text)
            while self._is_full():
                self._parts.popitem(last=False)
        return text

    def _is_full(self) -> bool:
        size = sum(len(text) for _, text in self._parts.values())
        return size > MOST_BYTES or len(self._parts) > MOST_PARTS
