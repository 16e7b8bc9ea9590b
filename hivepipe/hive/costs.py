"""What runs cost: as their own results say, added up over the runs of a worker."""

from decimal import Decimal

from hivepipe.hive.run import Run
from hivepipe.hive.stream import read_stream
from hivepipe.hive.worker import Worker

MICRO = Decimal(1_000_000)


def book(worker: Worker, run: Run) -> None:
    """Write down what a run that is over cost, and how its last result calls it."""
    following = next((later.offset for later in worker.runs() if later.number > run.number), None)
    stream = read_stream(worker.transcript, run.offset, following)
    run.cost_usd = str(stream.last.cost_usd if stream.last else Decimal(0))
    run.outcome = stream.last.outcome if stream.last else ""
    worker.write_run(run)


def cost_before(worker: Worker) -> Decimal:
    """Return what runs cost that others started, before our first."""
    first = next((run for run in worker.runs() if run.is_started), None)
    if first and not first.offset:
        return Decimal(0)
    return read_stream(worker.transcript, 0, first.offset if first else None).cost_usd


def cost_of(worker: Worker) -> Decimal:
    """Return what all runs of a worker cost so far, in dollars."""
    runs = [run for run in worker.runs() if run.is_started]
    ends = [*(run.offset for run in runs[1:]), None][: len(runs)]
    return cost_before(worker) + sum(
        (_cost_of(worker, run, end) for run, end in zip(runs, ends, strict=True)), Decimal(0)
    )


def _cost_of(worker: Worker, run: Run, end: int | None) -> Decimal:
    if run.cost_usd is not None:
        return Decimal(run.cost_usd)
    last = read_stream(worker.transcript, run.offset, end).last
    return last.cost_usd if last else Decimal(0)
