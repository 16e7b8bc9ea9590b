"""The queue `llm`: the llm worker serves it or, while no llm worker runs, the slow worker.

    llm.lock         held by the llm worker as long as it runs
    llm-queue.lock   held by the worker (llm or slow) that claims jobs of `llm`

While summaries are enabled, the slow worker requests an llm worker (hivepipe.stack.wanted). The
slow worker releases the queue between two jobs when an llm worker runs, and acquires it again when
that worker has ended.
"""

import math
import os
import time
from contextlib import suppress

from hivepipe.errors import LockHeldError
from hivepipe.queue.names import LLM
from hivepipe.stack.lock import acquire_lock
from hivepipe.stack.runtime_folder import runtime_for

ABSENT_SECS = 30.0  # a wanted llm worker may still be starting


class LlmQueue:
    """The right of one worker to claim jobs of `llm`."""

    def __init__(self, home: str) -> None:
        self._runtime = runtime_for(home)
        self._lock: int | None = None
        self._absent_since = math.inf

    def acquire(self) -> bool:
        """Try to acquire the queue `llm`; return whether this worker holds the queue."""
        if self._lock is None:
            with suppress(LockHeldError, OSError):
                self._lock = acquire_lock(f"{self._runtime}/llm-queue.lock", 0)
        return self._lock is not None

    def acquire_or_release(self, is_wanted: bool) -> bool:
        """Hold queue `llm` if no llm worker runs, else release the queue; return True if held.

        If `is_wanted`, an llm worker is expected. Then the queue is acquired only after no llm
        worker has run for ABSENT_SECS.
        """
        if self._llm_worker_runs():
            self._absent_since = math.inf
            self._release()
            return False
        now = time.monotonic()
        self._absent_since = min(self._absent_since, now)
        if is_wanted and self._lock is None and now - self._absent_since < ABSENT_SECS:
            return False
        return self.acquire()

    def _llm_worker_runs(self) -> bool:
        try:
            os.close(acquire_lock(f"{self._runtime}/{LLM}.lock", 0))
        except LockHeldError:
            return True
        except OSError:  # the folder was deleted: the stack will be restarted
            return False
        return False

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
