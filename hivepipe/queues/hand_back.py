"""Push what follows from a job: the way back from slow work to the writer."""

from redis import Redis

from hivepipe.envelope import Envelope, follow_ups
from hivepipe.jobs import Job, Message
from hivepipe.periodic import is_periodic
from hivepipe.queues.connection import ACCEPTED_KEY, PERIODIC_KEY, send

PUSH_SECS = 2.0


def hand_back(connection: Redis, address: str, parent: Envelope, jobs: list[Job]) -> None:
    """Enqueue the jobs under ids made from the parent's; RefusedError: they may not be safe."""
    counter = PERIODIC_KEY if is_periodic(parent) else ACCEPTED_KEY
    send(connection, address, follow_ups(parent, jobs), PUSH_SECS, counter)


def enqueue_periodic(connection: Redis, address: str, jobs: list[Message]) -> None:
    """Enqueue jobs that run by the clock, or come of one that does; RefusedError as above."""
    send(connection, address, jobs, PUSH_SECS, PERIODIC_KEY)
