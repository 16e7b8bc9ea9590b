"""Why a stack's Redis accepts no jobs while it starts or ends."""

import socket
import threading
from collections.abc import Iterator
from tempfile import TemporaryDirectory

import pytest

from hivepipe.stack.runtime_folder import Stack
from hivepipe.stack.supervisor import redis_trouble

BUSY = "Redis is stopped or busy: it accepts connections and does not answer"
LOADING = "Redis is loading its file: events wait on disk until it has"


@pytest.fixture
def stack() -> Iterator[Stack]:
    with TemporaryDirectory(prefix="hp-", dir="/tmp") as folder:  # paths of sockets are limited
        yield Stack(folder, folder)


def serve(stack: Stack, *answers: bytes) -> None:
    """Give each connection one of these answers: to PING, to the check for a listener, to PING."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(stack.socket)
    listener.listen(len(answers))

    def answer() -> None:
        for text in answers:
            with listener.accept()[0] as connection:
                if text:
                    connection.recv(256)
                    connection.sendall(text)
        listener.close()

    threading.Thread(target=answer, daemon=True).start()


@pytest.mark.parametrize(
    ("answers", "trouble"),
    [
        ((b"+PONG\r\n",), ""),
        ((b"", b"", b"+PONG\r\n"), ""),  # it has just started
        ((b"", b"", b"-LOADING it\r\n"), LOADING),
        ((b"", b"", b""), BUSY),
    ],
)
def test_the_reason_is_that_of_the_last_answer(
    stack: Stack, answers: tuple[bytes, ...], trouble: str
) -> None:
    serve(stack, *answers)
    assert redis_trouble(stack) == trouble
