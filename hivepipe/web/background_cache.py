"""A cache of values that take seconds to compute, for pages that reload after each change."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Generic, TypeVar

from hivepipe.files.memory import release_memory

KEPT_SECS = 20.0
MOST_KEPT_SECS = 300.0  # a limit, because a computation may be slow without using the CPU
_SHARE = 20  # values are kept 20 s longer per second of computing: at most 5 % of a CPU
MOST_AT_ONCE = 4  # more threads would delay requests, because they need the interpreter lock
WAIT_SECS = 10.0

Value = TypeVar("Value")


@dataclass
class _Slot(Generic[Value]):
    values: list[Value] = field(default_factory=list)  # at most one value
    errors: list[Exception] = field(default_factory=list)  # at most one error, instead of a value
    expires: float = 0.0
    is_done: Event = field(default_factory=Event)
    is_computing: bool = False  # a thread computes the value now or soon


class BackgroundCache(Generic[Value]):
    """A value for each key; concurrent requests for a key share one computation.

    The value requested last is computed first, so that its page does not wait for other values.
    Expired values are computed next, in order of request, so that no value waits for ever.
    Callers get an expired value until the new value is computed.
    """

    def __init__(self) -> None:
        self._slots: dict[str, _Slot[Value]] = {}
        self._pending: OrderedDict[str, Callable[[], Value]] = OrderedDict()
        self._threads = 0
        self._callbacks: set[Callable[[], None]] = set()
        self._lock = Lock()

    def get(
        self,
        key: str,
        compute: Callable[[], Value],
        on_ready: Callable[[], None] | None = None,
        wait_secs: float = WAIT_SECS,
    ) -> Value | None:
        """Return the cached value of a key, or compute it in a thread.

        If the computation takes longer than `wait_secs`, it continues in the background, and the
        previous value or None is returned. With `on_ready`, the call does not wait, and `on_ready`
        is called when the value is ready and no other value is pending. An error of the
        computation is raised here.
        """
        with self._lock:
            slot = self._slots.setdefault(key, _Slot())
            if not slot.is_computing and time.monotonic() >= slot.expires:
                self._enqueue(key, compute)
            if key in self._pending and not (on_ready and slot.expires):
                self._pending.move_to_end(key)  # the caller waits for the value, or has no old one
            if on_ready and slot.is_computing:
                self._callbacks.add(on_ready)
        if not on_ready:
            slot.is_done.wait(wait_secs)
        if slot.errors:
            raise slot.errors[0]
        return slot.values[0] if slot.values else None

    def _enqueue(self, key: str, compute: Callable[[], Value]) -> None:
        if self._threads < MOST_AT_ONCE:
            Thread(target=self._work, daemon=True).start()
            self._threads += 1  # the computing thread still waits for the lock
        self._pending[key] = compute
        self._pending.move_to_end(key, last=False)
        self._slots[key].is_computing = True
        self._slots[key].is_done.clear()

    def _work(self) -> None:
        """Compute pending values until none is left."""
        while True:
            with self._lock:
                if not self._pending:
                    self._threads -= 1
                    return
                key, compute = self._pending.popitem()
            self._compute(self._slots[key], compute)

    def _compute(self, slot: _Slot[Value], compute: Callable[[], Value]) -> None:
        began = time.monotonic()
        try:
            slot.values, slot.errors = [compute()], []
        except Exception as error:  # noqa: BLE001 - raised again in `get`
            slot.errors = [error]
        ended = time.monotonic()
        release_memory()
        callbacks: set[Callable[[], None]] = set()
        with self._lock:
            competing = max(1.0, len(self._slots) / MOST_AT_ONCE)
            kept_secs = KEPT_SECS + _SHARE * competing * (ended - began)
            slot.expires = ended + min(kept_secs, MOST_KEPT_SECS)
            slot.is_computing = False
            slot.is_done.set()
            if not self._pending:
                callbacks, self._callbacks = self._callbacks, callbacks
        for callback in callbacks:
            callback()
