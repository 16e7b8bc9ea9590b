"""A cache of values that take seconds to compute, for pages that reload after each change."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Generic, TypeVar

from hivepipe.web.memory import release_memory

KEPT_SECS = 20.0
_SHARE = 20  # a value is kept 20 s longer per second of computing: at most 5 % of a CPU
PATIENCE_SECS = 10.0

Found = TypeVar("Found")


@dataclass
class _Slot(Generic[Found]):
    values: list[Found] = field(default_factory=list)  # at most one
    errors: list[Exception] = field(default_factory=list)  # instead of a value
    until: float = 0.0
    ended: Event = field(default_factory=Event)
    runs: bool = False
    told: set[Callable[[], None]] = field(default_factory=set)  # callbacks at the end


class SlowValues(Generic[Found]):
    """A value for each key; concurrent requests share one computation."""

    def __init__(self) -> None:
        """Start empty."""
        self._slots: dict[str, _Slot[Found]] = {}
        self._lock = Lock()

    def get(
        self,
        key: str,
        find: Callable[[], Found],
        later: Callable[[], None] | None = None,
        patience: float = PATIENCE_SECS,
    ) -> Found | None:
        """Return the cached value of a key, or compute it in a thread.

        If that takes longer than `patience` seconds, it continues in the background, and the
        previous value or None is returned. With `later`, this does not wait, and `later` is
        called when the value is ready.
        """
        with self._lock:
            slot = self._slots.setdefault(key, _Slot())
            if not slot.runs and time.monotonic() >= slot.until:
                slot.runs = True
                slot.ended.clear()
                Thread(target=self._search, args=(slot, find), daemon=True).start()
            if later and slot.runs:
                slot.told.add(later)
        if not later:
            slot.ended.wait(patience)
        if slot.errors:
            raise slot.errors[0]
        return slot.values[0] if slot.values else None

    def _search(self, slot: _Slot[Found], find: Callable[[], Found]) -> None:
        began = time.monotonic()
        try:
            slot.values, slot.errors = [find()], []
        except Exception as error:  # noqa: BLE001 - raised again in `get`
            slot.errors = [error]
        ended = time.monotonic()
        release_memory()
        with self._lock:
            slot.until = ended + KEPT_SECS + _SHARE * (ended - began)
            slot.runs = False
            slot.ended.set()
            told, slot.told = slot.told, set()
        for tell in told:
            tell()
