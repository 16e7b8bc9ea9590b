"""A cache of slow results. A result is valid while the state of its source is unchanged."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Found = TypeVar("Found")


class StateCache(Generic[Found]):
    """A cache of the latest results, each with the state of its source."""

    def __init__(self, most: int) -> None:
        """`most` is the maximum number of results."""
        self._most = most
        self._kept: OrderedDict[Hashable, tuple[object, Found]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, state: object, find: Callable[[], Found]) -> Found:
        """Return the cached result for a key and state, or call `find` for the result.

        With the state None, `find` is always called, and the result is not cached.
        """
        with self._lock:
            kept = self._kept.get(key)
        if kept and state is not None and kept[0] == state:
            return kept[1]
        found = find()
        with self._lock:
            self._kept.pop(key, None)
            if state is not None:
                self._kept[key] = (state, found)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return found
