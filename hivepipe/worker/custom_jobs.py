"""Enqueue the jobs of installed operations that follow from a committed job."""

import logging

import redis

from hivepipe.home import Place, read_record
from hivepipe.jobs.envelope import Envelope, follow_ups
from hivepipe.operations.custom_runs import custom_jobs
from hivepipe.operations.job_context import JobContext
from hivepipe.queue.client import RefusedError
from hivepipe.queue.spool import keep_event
from hivepipe.worker.claiming_worker import is_full

logger = logging.getLogger("hivepipe.writer")


def enqueue_custom(context: JobContext, job: Envelope) -> bool:
    """Enqueue the jobs, or spool them if Redis is full; return whether they are kept.

    Only then `job` may be acknowledged. Otherwise it is executed again, like after a kill, and
    enqueues jobs with the same ids.
    """
    jobs = custom_jobs(job)
    if not jobs:
        return True
    try:
        context.follow_up(job, jobs)
    except (redis.ResponseError, RefusedError) as error:
        if not is_full(error):
            raise
        place = Place("", context.home, read_record(context.home))
        try:
            keep_event(place, job.event_time_ns, follow_ups(job, jobs))
        except OSError as refusal:
            logger.warning("Redis and disk are full, %s is kept: %s", job.id, refusal.strerror)
            return False
    return True
