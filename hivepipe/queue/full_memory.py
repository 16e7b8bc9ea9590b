"""Recognise the errors of a Redis whose memory is full."""

from collections.abc import Iterator
from contextlib import contextmanager

import redis

from hivepipe.queue.client import RefusedError

# redis-py removes the error code at the start of a reply, but not in an error from a script.
FULL = "used memory > 'maxmemory'"


def is_full(error: Exception) -> bool:
    """Tell whether Redis refuses writes because its memory is full."""
    return FULL in str(error)


def has_room(client: redis.Redis) -> bool:
    """Tell whether Redis accepts writes that need memory. The check changes nothing."""
    try:
        client.setrange("hivepipe:none", 0, "")
    except redis.ResponseError as error:
        return not is_full(error)
    return True


@contextmanager
def unless_full() -> Iterator[None]:
    """Ignore the error of a full Redis in the block. Its memory is freed only if jobs continue."""
    try:
        yield
    except (redis.ResponseError, RefusedError) as error:
        if not is_full(error):
            raise
