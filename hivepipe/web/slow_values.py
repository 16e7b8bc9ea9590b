"""Keeps what costs seconds to find out, for pages that are loaded again after each change."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Generic, TypeVar

from hivepipe.web.memory import give_back

KEPT_SECS = 20.0
_SHARE = 20  # what takes a second is kept 20 more seconds: it costs 5 % of a processor at most
PATIENCE_SECS = 10.0

Found = TypeVar("Found")


@dataclass
class _Slot(Generic[Found]):
    values: list[Found] = field(default_factory=list)  # at most one
    errors: list[Exception] = field(default_factory=list)  # in its place
    until: float = 0.0
    ended: Event = field(default_factory=Event)
    runs: bool = False
    told: set[Callable[[], None]] = field(default_factory=set)  # once it has ended


class Kept(Generic[Found]):
    """A value for each key; requests that come at the same time share one search."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._slots: dict[str, _Slot[Found]] = {}
        self._lock = Lock()

    def get(
        self,
        key: str,
        find: Callable[[], Found],
        later: Callable[[], None] | None = None,
        patience: float = PATIENCE_SECS,
    ) -> Found | None:
        """Return the value of a key, as it was found some seconds ago or is found now.

        A search that takes longer than `patience` seconds goes on; meanwhile the last value is
        returned, or None. With `later` this does not wait: that is called when the search has
        ended.
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
        except Exception as error:  # noqa: BLE001 - for those who wait
            slot.errors = [error]
        ended = time.monotonic()
        give_back()
        with self._lock:
            slot.until = ended + KEPT_SECS + _SHARE * (ended - began)
            slot.runs = False
            slot.ended.set()
            told, slot.told = slot.told, set()
        for tell in told:
            tell()
