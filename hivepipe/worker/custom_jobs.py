"""Enqueue the jobs of installed operations after the job of an event is committed."""

import logging

from hivepipe.jobs.envelope import Envelope
from hivepipe.operations.custom_runs import custom_jobs
from hivepipe.operations.follow_up import enqueue_or_spool
from hivepipe.operations.job_context import JobContext

logger = logging.getLogger("hivepipe.writer")


def enqueue_custom(context: JobContext, job: Envelope) -> bool:
    """Enqueue the jobs of `job`'s event, or spool them if Redis is full; return True if stored.

    Acknowledge `job` only if the new jobs are stored. Otherwise `job` is executed again, as
    after a kill, and enqueues jobs with the same ids.
    """
    jobs = custom_jobs(job)
    if not jobs:
        return True
    try:
        enqueue_or_spool(context, job, jobs)
    except OSError as refusal:
        logger.warning("Redis and disk are full, %s is kept: %s", job.id, refusal.strerror)
        return False
    return True
