"""Describe work that is delayed or not done because a process of the stack does not run."""

from typing import NamedTuple

from hivepipe.queue.rq_workers import RqWorker, living_roles, only_stock

_LATE = (
    "`rq worker` executes the jobs one at a time, in place of hivepipe's writer: periodic jobs "
    "retry failed jobs, store spooled events and activity (within 15 s), requeue jobs of killed "
    "workers (within 100 s) and write briefings (65 s)"
)
_NEVER = (
    "`rq worker` executes the jobs one at a time, and no scheduler runs: failed jobs are not "
    "retried (except by `rq worker --with-scheduler`), spooled events stay on disk, jobs of killed "
    "workers are not requeued, activity, briefings and skill-usage.json are not written; start "
    "workers/scheduler.py"
)
_NO_CLOCK = (
    "no scheduler runs: sessions whose Claude Code was killed stay open, nothing is cleaned up, "
    "pruned or swept, and no alert is raised; start workers/scheduler.py"
)
_SLOW = (
    "no slow worker runs: `rq worker` archives transcripts and indexes memory itself, which delays "
    "other jobs, and a job that takes longer than 60 s fails"
)
_LLM = (
    "no llm worker runs: `rq worker` requests summaries itself, which delays other jobs; a job "
    "that takes longer than 60 s fails"
)


class Reduction(NamedTuple):
    """Work that is delayed or not done: a name, and a text with the reason and the effect."""

    name: str
    text: str


def reductions_of(workers: list[RqWorker], scheduler_runs: bool) -> list[Reduction]:
    """Return the work that is delayed or missing with these workers; [] if no worker is alive."""
    if not any(worker.is_alive for worker in workers):
        return []
    is_stock, roles = only_stock(workers), living_roles(workers)
    judged = (
        (is_stock and scheduler_runs, Reduction("stock_workers", _LATE)),
        (is_stock and not scheduler_runs, Reduction("stock_workers", _NEVER)),
        (not scheduler_runs, Reduction("no_scheduler", _NO_CLOCK)),
        (is_stock and "slow" not in roles, Reduction("no_slow_worker", _SLOW)),
        (is_stock and "llm" not in roles, Reduction("no_llm_worker", _LLM)),
    )
    return [reduction for applies, reduction in judged if applies]
