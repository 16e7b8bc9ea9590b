"""A cache of rendered views: equal requests between two changes share one answer."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock

LASTS_SECS = 5.0  # some states change with time only
MOST_BYTES = 2 << 20


@dataclass(frozen=True)
class Answer:
    """A rendered view; with `is_cacheable`, it can be cached until something changes."""

    text: bytes
    status: int = 200
    is_cacheable: bool = True


@dataclass
class _Slot:
    lock: Lock = field(default_factory=Lock)
    answer: Answer | None = None
    state: object = None
    until: float = 0.0


class ViewCache:
    """The last answer for each key, used until `state` changes or the answer is too old."""

    def __init__(self, state: Callable[[], object]) -> None:
        """Set up; `state` returns a value that differs after each change."""
        self._state = state
        self._slots: OrderedDict[Hashable, _Slot] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Answer]) -> Answer:
        """Return the cached answer of a key; make it again after a change or LASTS_SECS."""
        with self._lock:
            slot = self._slots.setdefault(key, _Slot())
            self._slots.move_to_end(key)
        with slot.lock:
            state = self._state()
            if slot.answer and slot.state == state and time.monotonic() < slot.until:
                return slot.answer
            made = make()
            slot.answer = made if made.is_cacheable and made.status == 200 else None
            slot.state, slot.until = state, time.monotonic() + LASTS_SECS
        self._drop_unused()
        return made

    def _drop_unused(self) -> None:
        """Drop the oldest answers beyond MOST_BYTES, and empty entries that no request uses."""
        with self._lock:
            answers = {key: slot.answer for key, slot in self._slots.items()}
            sizes = {key: len(answer.text) if answer else 0 for key, answer in answers.items()}
            left = sum(sizes.values())
            for key, size in sizes.items():
                is_used = left <= MOST_BYTES if size else self._slots[key].lock.locked()
                if not is_used:
                    left -= size
                    del self._slots[key]
