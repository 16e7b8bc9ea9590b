"""A cache of rendered page fragments: after a change, only changed parts are rendered again."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from markupsafe import Markup

MOST_BYTES = 2 << 20
MOST_PARTS = 2048  # parts kept; a part keeps its object alive


class FragmentCache:
    """The last rendered fragments. The key is the shown value, or the value's id if unhashable.

    Each entry keeps its object alive, so that no other object gets the same id. Equal values share
    a fragment, so they must be rendered alike.
    """

    def __init__(self) -> None:
        self._parts: OrderedDict[str, tuple[object, Markup]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def __call__(
        self, shown: object, filters: dict[str, str], caller: Callable[[], Markup]
    ) -> Markup:
        """Return the fragment of an object and the URL's filters: cached, or made by `caller`."""
        key = f"{_hash(shown)} {sorted(filters.items())}"
        with self._lock:
            value, kept = self._parts.get(key, (None, Markup()))
            if value == shown:
                self._parts.move_to_end(key)
                return kept
        text = caller()
        with self._lock:
            if key in self._parts:
                self._bytes -= _size(key, self._parts.pop(key)[1])
            self._parts[key] = (shown, text)
            self._bytes += _size(key, text)
            while self._bytes > MOST_BYTES or len(self._parts) > MOST_PARTS:
                oldest, (_, kept) = self._parts.popitem(last=False)
                self._bytes -= _size(oldest, kept)
        return text


def _hash(shown: object) -> int:
    try:
        return hash(shown)
    except TypeError:
        return id(shown)


def _size(key: str, text: str) -> int:
    return len(key) + len(text)
