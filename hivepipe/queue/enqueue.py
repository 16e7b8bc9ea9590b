"""Enqueue follow-up jobs and periodic jobs."""

from redis import Redis
from redis.exceptions import RedisError

from hivepipe.events.job_plan import Message
from hivepipe.queue.client import RefusedError, eval_command
from hivepipe.queue.connection import ACCEPTED_KEY, PERIODIC_KEY, send
from hivepipe.queue.scripts import script

PUSH_SECS = 2.0

_DELAY = script("delay_work")

Work = tuple[Message, float]  # a job and its delay in seconds


def enqueue(
    connection: Redis, address: str, jobs: list[Message], *, is_periodic: bool = False
) -> None:
    """Enqueue jobs for the writer, or for stock workers.

    Raise RefusedError if the jobs may not have arrived.
    """
    send(connection, address, jobs, PUSH_SECS, _counter(is_periodic))


def enqueue_work(connection: Redis, jobs: list[Work], *, is_periodic: bool = False) -> None:
    """Enqueue jobs for the workers of their queues. Raise RefusedError as `enqueue` does."""
    messages = [message for message, _ in jobs]
    _, push, _, *arguments = eval_command(messages, counter=_counter(is_periodic))
    places = [value for message, secs in jobs for value in (message.id, message.queue, secs)]
    try:
        # One transaction, so that no worker sees a job before its delay is set.
        with connection.pipeline() as both:
            both.eval(push.decode(), 1, *arguments)
            both.eval(_DELAY, 0, *places)
            replies = both.execute(raise_on_error=False)
    except RedisError as error:
        raise RefusedError(str(error)) from None
    for reply in replies:
        if isinstance(reply, Exception):  # redis-py's own error would quote the jobs
            raise RefusedError(str(reply))


def _counter(is_periodic: bool) -> str:
    return PERIODIC_KEY if is_periodic else ACCEPTED_KEY
