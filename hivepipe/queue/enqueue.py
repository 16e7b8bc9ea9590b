"""Enqueue jobs that follow from others, and those of the schedule."""

from redis import Redis
from redis.exceptions import RedisError

from hivepipe.events.job_plan import Message
from hivepipe.queue.client import RefusedError, eval_command
from hivepipe.queue.connection import ACCEPTED_KEY, PERIODIC_KEY, send
from hivepipe.queue.scripts import script

PUSH_SECS = 2.0

_SETTLE = script("settle_work")

Work = tuple[Message, float]  # a job, and the seconds that it has to wait first


def enqueue(
    connection: Redis, address: str, jobs: list[Message], *, is_periodic: bool = False
) -> None:
    """Enqueue jobs for the writer, or for stock workers.

    RefusedError: the jobs may not have arrived.
    """
    send(connection, address, jobs, PUSH_SECS, _counter(is_periodic))


def enqueue_work(connection: Redis, jobs: list[Work], *, is_periodic: bool = False) -> None:
    """Enqueue jobs for workers with queues of their own; RefusedError as above."""
    messages = [message for message, _ in jobs]
    _, push, _, *arguments = eval_command(messages, counter=_counter(is_periodic))
    places = [value for message, secs in jobs for value in (message.id, message.queue, secs)]
    try:
        with connection.pipeline() as both:  # one transaction: no worker sees a job between them
            both.eval(push.decode(), 1, *arguments)
            both.eval(_SETTLE, 0, *places)
            replies = both.execute(raise_on_error=False)
    except RedisError as error:
        raise RefusedError(str(error)) from None
    for reply in replies:
        if isinstance(reply, Exception):  # redis-py's own error would quote the jobs
            raise RefusedError(str(reply))


def _counter(is_periodic: bool) -> str:
    return PERIODIC_KEY if is_periodic else ACCEPTED_KEY
