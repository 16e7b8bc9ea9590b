"""The end of a run that nobody saw, for its runner was killed too: whoever looks writes it."""

from hivepipe.hive import costs
from hivepipe.hive.plain_file import changed_ns
from hivepipe.hive.run import Run
from hivepipe.hive.worker import Worker
from hivepipe.stored_times import now, stored_time


def is_unseen(run: Run) -> bool:
    """Is it over, and was that not written down? To be asked again under the worker's lock."""
    return run.is_started and run.cost_usd is None and run.is_at_work() is False


def write_end(worker: Worker, run: Run) -> None:
    """Write down that a run is over, and what it cost; the caller holds the worker's lock."""
    if not run.has_ended:
        run.is_lost = True
        run.ended_at = _last_sign(worker)
        worker.write_run(run)
    costs.book(worker, run)


def _last_sign(worker: Worker) -> str:
    """Return when a process that nobody saw end was last heard of."""
    times = [changed_ns(path) for path in (worker.transcript, worker.stderr)]
    return stored_time(max(times) or now()[1])
