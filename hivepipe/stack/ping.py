"""Tell whether a Redis server answers."""

import redis

from hivepipe.queue.connection import connect
from hivepipe.stack.listening import ANSWER_SECS, ask


def answers(address: str) -> bool:
    """Tell whether a Redis answers PING; a socket gets one attempt, without redis-py's retries."""
    if not address.startswith("/"):
        return _answers_at_url(address)
    return ping(address).startswith(b"+PONG")


def ping(path: str) -> bytes:
    """Return a server's answer to PING at this socket, or b"" if there is none."""
    return ask(path, b"PING\r\n", 256)


def _answers_at_url(url: str) -> bool:
    try:
        with connect(url, limit_secs=ANSWER_SECS) as connection:
            return bool(connection.ping())
    except redis.RedisError:
        return False
