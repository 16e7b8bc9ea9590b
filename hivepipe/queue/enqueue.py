"""Enqueue spooled jobs, follow-up jobs and periodic jobs."""

from redis import Redis
from redis.exceptions import RedisError

from hivepipe.events.job_plan import Message
from hivepipe.queue.client import RefusedError, eval_command, push
from hivepipe.queue.connection import ACCEPTED_KEY, PERIODIC_KEY
from hivepipe.queue.endpoint import is_local
from hivepipe.queue.scripts import script

PUSH_SECS = 2.0  # longer than a hook waits, so that a slow Redis does not stop a drain

_DELAY = script("delay_work")

Work = tuple[Message, float]  # a job and its delay in seconds


def enqueue(
    connection: Redis, address: str, jobs: list[Message], *, is_periodic: bool = False
) -> None:
    """Enqueue jobs for the writer, or for stock workers.

    Like a hook, use a raw socket for a local address. Raise RefusedError unless it is certain that
    the jobs have arrived.
    """
    if is_local(address):
        push(address, jobs, PUSH_SECS, _counter(is_periodic))
        return
    try:
        enqueue_over(connection, jobs, _counter(is_periodic))
    except RedisError as error:
        raise RefusedError(str(error)) from None


def enqueue_over(connection: Redis, jobs: list[Message], counter: str) -> None:
    """Enqueue jobs over this connection, and increment the key `counter`."""
    _, script, _, *arguments = eval_command(jobs, counter=counter)
    connection.eval(script.decode(), 1, *arguments)


def enqueue_work(connection: Redis, jobs: list[Work], *, is_periodic: bool = False) -> None:
    """Enqueue jobs for the workers of their queues. Raise RefusedError as `enqueue` does."""
    messages = [message for message, _ in jobs]
    _, script_text, _, *arguments = eval_command(messages, counter=_counter(is_periodic))
    places = [value for message, secs in jobs for value in (message.id, message.queue, secs)]
    try:
        # One transaction, so that no worker sees a job before its delay is set.
        with connection.pipeline() as both:
            both.eval(script_text.decode(), 1, *arguments)
            both.eval(_DELAY, 0, *places)
            replies = both.execute(raise_on_error=False)
    except RedisError as error:
        raise RefusedError(str(error)) from None
    for reply in replies:
        if isinstance(reply, Exception):  # redis-py's own error would quote the jobs
            raise RefusedError(str(reply))


def _counter(is_periodic: bool) -> str:
    return PERIODIC_KEY if is_periodic else ACCEPTED_KEY
