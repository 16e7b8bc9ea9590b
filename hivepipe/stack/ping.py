"""Tell whether a Redis server answers."""

import socket

import redis

from hivepipe.queue.connection import connect

ANSWER_SECS = 2


def answers(address: str) -> bool:
    """Tell whether a Redis answers PING.

    A socket's path gets one attempt, because redis-py would retry and wait.
    """
    if not address.startswith("/"):
        return _answers_at_url(address)
    return ping(address).startswith(b"+PONG")


def ping(path: str) -> bytes:
    """Return a server's answer to PING at this socket, or b"" if there is none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ANSWER_SECS)
        try:
            connection.connect(path)
            connection.sendall(b"PING\r\n")
            return connection.recv(256)
        except OSError:
            return b""


def _answers_at_url(url: str) -> bool:
    try:
        with connect(url, limit_secs=ANSWER_SECS) as connection:
            return bool(connection.ping())
    except redis.RedisError:
        return False
