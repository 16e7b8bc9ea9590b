"""Activity of workers that their folders do not show, collected once for several workers."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime

from hivepipe.db.activity import activity_of
from hivepipe.db.listings import listings
from hivepipe.db.location import database_path
from hivepipe.errors import StoreError
from hivepipe.guard.client import cancellation_path
from hivepipe.home import read_small
from hivepipe.orchestrator.foreign_processes import Strangers
from hivepipe.orchestrator.worker import Worker


class WorkerSignals:
    """Processes that hivepipe did not start, and the heartbeats of tool calls."""

    def __init__(self, home: str, workers: Iterable[Worker]) -> None:
        """Collect the processes, and the heartbeats of these workers."""
        self._home = home
        self._strangers = Strangers(home)
        self._heartbeats: dict[str, str] = {}
        with suppress(StoreError), listings(database_path(home)) as store:
            for worker in workers:
                known = activity_of(store, worker.card().session)
                self._heartbeats[worker.id] = known.get("last_active_at", "")

    def stranger(self, worker: Worker) -> int:
        """Return the pid of a process on a worker's session that hivepipe did not start, or 0."""
        return self._strangers.of(worker)

    def is_cancelled(self, worker: Worker) -> bool:
        """Was the task of a worker cancelled, so that it may call no tool any more?"""
        return bool(self._cancellation(worker))

    def cancelled_because(self, worker: Worker) -> str:
        """Say that its task was cancelled, and why if somebody said so."""
        _, _, reason = self._cancellation(worker).strip().partition("\n")
        return f"its task was cancelled: {reason}" if reason else "its task was cancelled"

    def _cancellation(self, worker: Worker) -> str:
        task = worker.card().task_id
        return read_small(cancellation_path(self._home, task)) if task else ""

    def heartbeat_ns(self, worker: Worker) -> int:
        """Return the time in ns of the last tool call of a worker, or 0."""
        try:
            at = datetime.fromisoformat(self._heartbeats.get(worker.id, ""))
        except ValueError:
            return 0
        return int(at.timestamp() * 1e9)
