"""The cost of each run, read from its result lines, and the total of a worker."""

from decimal import Decimal
from textwrap import shorten

from hivepipe.orchestrator.plain_file import changed_ns
from hivepipe.orchestrator.run import Run
from hivepipe.orchestrator.stream import Result, Stream, own_costs, read_stream
from hivepipe.orchestrator.worker import Worker
from hivepipe.redact import redact_text
from hivepipe.times import now, stored_time

MICRO = Decimal(1_000_000)
_WORDS = 200  # characters kept of a result's text


def record_cost(worker: Worker, run: Run) -> None:
    """Record the cost and the result of a run that has ended."""
    result = _result(worker, run)
    run.cost_usd = str(_own_cost(worker, run))
    run.outcome = result.outcome if result else ""
    run.words = shorten(redact_text(result.words), _WORDS, placeholder=" ...") if result else ""
    worker.write_run(run)


def record_lost_end(worker: Worker, run: Run) -> None:
    """Record end and cost of a run whose runner was killed. The caller holds the worker's lock."""
    if not run.has_ended:
        run.is_lost = True
        last_ns = max(map(changed_ns, (worker.transcript, worker.stderr)))
        run.ended_at = stored_time(last_ns or now()[1])
        worker.write_run(run)
    record_cost(worker, run)


def cost_before(worker: Worker) -> Decimal:
    """Return the cost in USD of the runs before the first run that hivepipe started."""
    return _before(worker).cost_usd


def cost_of(worker: Worker) -> Decimal:
    """Return the cost in USD of all runs of a worker so far."""
    runs = [run for run in worker.runs() if run.is_started]
    costs = (Decimal(run.cost_usd) if run.cost_usd else _own_cost(worker, run) for run in runs)
    return sum(costs, cost_before(worker))


def _own_cost(worker: Worker, run: Run) -> Decimal:
    """Return the cost in USD of this run alone, even if its result line has the session's total."""
    result = _result(worker, run)
    if result is None:
        return Decimal(0)
    earlier = [_result(worker, each) for each in worker.runs() if each.number < run.number]
    return own_costs([*_before(worker).results, *filter(None, earlier), result])[-1]


def _before(worker: Worker) -> Stream:
    """Return the parsed part of the transcript before the first run that hivepipe started."""
    first = next((run for run in worker.runs() if run.is_started), None)
    return read_stream(worker.transcript, 0, first.offset if first else None)


def _result(worker: Worker, run: Run) -> Result | None:
    """Return the last result of a run, or None if it has no result or never started."""
    if not run.is_started:
        return None
    later = (each for each in worker.runs() if each.number > run.number and each.is_started)
    end = next((each.offset for each in later), None)
    return read_stream(worker.transcript, run.offset, end).last
