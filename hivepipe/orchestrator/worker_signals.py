"""Signs of workers' activity from outside their folders, collected once for all workers."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime

from hivepipe.db.activity import activities
from hivepipe.db.listings import listings
from hivepipe.db.location import database_path
from hivepipe.errors import StoreError
from hivepipe.guard.client import cancellation_path
from hivepipe.home import read_small
from hivepipe.orchestrator.foreign_processes import ForeignProcesses
from hivepipe.orchestrator.worker import Worker


class WorkerSignals:
    """The processes of workers that hivepipe did not start, and the workers' last activity."""

    def __init__(self, home: str, workers: Iterable[Worker]) -> None:
        """Collect the foreign processes, and the last activity of these workers in the store.

        Errors of the store are ignored.
        """
        self._home = home
        self.foreign = ForeignProcesses(home)
        self._heartbeats: dict[str, str] = {}
        with suppress(StoreError), listings(database_path(home)) as store:
            sessions = {worker.id: worker.card().session for worker in workers}
            known = activities(store, sessions.values())
            for worker, session in sessions.items():
                self._heartbeats[worker] = known.get(session, {}).get("last_active_at", "")

    def cancellation(self, worker: Worker) -> str:
        """Return a text with the reason why a worker's task was cancelled, or "" if it was not."""
        task = worker.card().task_id
        found = read_small(cancellation_path(self._home, task)) if task else ""
        reason = found.strip().partition("\n")[2]
        return ": ".join(filter(None, ("its task was cancelled", reason))) if found else ""

    def heartbeat_ns(self, worker: Worker) -> int:
        """Return the time in ns of the last stored activity of a worker's session, or 0."""
        try:
            at = datetime.fromisoformat(self._heartbeats.get(worker.id, ""))
        except ValueError:
            return 0
        return int(at.timestamp() * 1e9)
