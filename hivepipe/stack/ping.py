"""Does a Redis answer? Apart from its server's file: that process need not load redis-py."""

import socket

import redis

from hivepipe.queues.connection import connect

ANSWER_SECS = 2


def answers(address: str) -> bool:
    """Does a Redis answer PING here? One attempt, where redis-py would try again and wait."""
    if not address.startswith("/"):
        return _answers_elsewhere(address)
    return ping(address).startswith(b"+PONG")


def ping(path: str) -> bytes:
    """Return what a server at this socket answers to PING; nothing if it does not."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ANSWER_SECS)
        try:
            connection.connect(path)
            connection.sendall(b"PING\r\n")
            return connection.recv(64)
        except OSError:
            return b""


def _answers_elsewhere(url: str) -> bool:
    try:
        with connect(url) as connection:
            return bool(connection.ping())
    except redis.RedisError:
        return False
