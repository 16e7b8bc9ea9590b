"""The last results that took long to find, each for as long as what it was found in is the same."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Found = TypeVar("Found")


class Unchanged(Generic[Found]):
    """A result and its state for each of the last keys."""

    def __init__(self, most: int) -> None:
        """`most`: how many results are kept."""
        self._most = most
        self._kept: OrderedDict[Hashable, tuple[object, Found]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, state: object, find: Callable[[], Found]) -> Found:
        """Return the result of a key: the last one if the state is equal, or a new one.

        `state` None: not known, so the result is not kept.
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
