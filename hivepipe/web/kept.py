"""Keeps what costs seconds to find out, for pages that are loaded again after each change."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

KEPT_SECS = 20.0
_SHARE = 20  # what takes a second is kept 20 more seconds: it costs 5 % of a processor at most

Found = TypeVar("Found")


@dataclass
class _Slot(Generic[Found]):
    lock: Lock = field(default_factory=Lock)
    values: list[Found] = field(default_factory=list)  # at most one
    until: float = 0.0


class Kept(Generic[Found]):
    """A value for each key; requests that come at the same time share one search."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._slots: dict[str, _Slot[Found]] = {}

    def get(self, key: str, find: Callable[[], Found]) -> Found:
        """Return the value of a key, as it was found some seconds ago or is found now."""
        slot = self._slots.setdefault(key, _Slot())
        with slot.lock:
            began = time.monotonic()
            if not slot.values or began >= slot.until:
                slot.values = [find()]
                ended = time.monotonic()
                slot.until = ended + KEPT_SECS + _SHARE * (ended - began)
            return slot.values[0]
