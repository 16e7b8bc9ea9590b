"""Record the end of a run whose runner was killed before it could do so."""

from hivepipe.orchestrator import costs
from hivepipe.orchestrator.plain_file import changed_ns
from hivepipe.orchestrator.run import Run
from hivepipe.orchestrator.worker import Worker
from hivepipe.times import now, stored_time


def ended_unrecorded(run: Run) -> bool:
    """Tell whether a run has ended without a record of its end.

    A caller that writes the end must check again under the worker's lock.
    """
    return run.is_started and run.cost_usd is None and run.is_at_work() is False


def write_end(worker: Worker, run: Run) -> None:
    """Record the end of a run and its cost. The caller holds the worker's lock."""
    if not run.has_ended:
        run.is_lost = True
        run.ended_at = _last_signal(worker)
        worker.write_run(run)
    costs.record_cost(worker, run)


def _last_signal(worker: Worker) -> str:
    """Return the time of the last output of a worker's process, in the format of the store."""
    times = [changed_ns(path) for path in (worker.transcript, worker.stderr)]
    return stored_time(max(times) or now()[1])
