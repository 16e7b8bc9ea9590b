"""Enqueue the jobs that follow from a slow job, for the writer."""

from redis import Redis

from hivepipe.events.job_plan import Job, Message
from hivepipe.jobs.envelope import follow_ups
from hivepipe.jobs.origin import Origin
from hivepipe.queue.connection import ACCEPTED_KEY, PERIODIC_KEY, send

PUSH_SECS = 2.0


def hand_back(connection: Redis, address: str, parent: Origin, jobs: list[Job]) -> None:
    """Enqueue the jobs under ids made from the parent's id.

    RefusedError: the jobs may not have arrived.
    """
    counter = PERIODIC_KEY if parent.periodic else ACCEPTED_KEY
    send(connection, address, follow_ups(parent, jobs), PUSH_SECS, counter)


def enqueue_periodic(connection: Redis, address: str, jobs: list[Message]) -> None:
    """Enqueue periodic jobs, or jobs that follow from one; RefusedError as above."""
    send(connection, address, jobs, PUSH_SECS, PERIODIC_KEY)
