"""Any answer of an embeddings endpoint gives a vector for each text or one EmbeddingError."""

import json
import socket
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from threading import Thread

import pytest

from hivepipe.agents.memory import embeddings
from hivepipe.agents.memory.embeddings import Provider, embed, similarity
from hivepipe.errors import EmbeddingError

KEY = "made-up-key-of-nobody"
Serve = Callable[[bytes | Callable[[socket.socket], None]], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Return a function that serves the given bytes to one request and returns the URL."""
    with ExitStack() as stack:

        def started(answer: bytes | Callable[[socket.socket], None]) -> str:
            listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

            def once() -> None:
                with suppress(OSError), listening.accept()[0] as connection:
                    connection.recv(1 << 16)
                    answer(connection) if callable(answer) else connection.sendall(answer)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(1 << 16):
                        pass

            Thread(target=once, daemon=True).start()
            return f"http://127.0.0.1:{listening.getsockname()[1]}/v1"

        yield started


def ok(body: str) -> bytes:
    return f"HTTP/1.0 200 OK\r\n\r\n{body}".encode()


def vectors(*values: object) -> bytes:
    data = [{"index": n, "embedding": value} for n, value in enumerate(values)]
    return ok(json.dumps({"data": data}))


def test_a_local_server_is_called_without_the_proxy(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    one, other = embed(Provider(serve(vectors([3, 4], [4, 3])), "m", KEY), ["a", "b"])
    assert similarity(one, one) == pytest.approx(1)
    assert similarity(one, other) == pytest.approx(0.96)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"garbage\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        b"HTTP/1.0 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n",
        ok("[]"),
        ok('{"data": [{"index": 0}]}'),
        ok('{"data": ' + "[" * 100_000),
        vectors([1], [1]),
        vectors(["a"]),
        vectors([10**400]),
        vectors([float("nan")]),
        vectors([float("inf"), 1]),
    ],
)
def test_an_invalid_answer_raises_an_embedding_error(serve: Serve, answer: bytes) -> None:
    with pytest.raises(EmbeddingError):
        embed(Provider(serve(answer), "m", KEY), ["a"])


def test_a_response_that_is_sent_too_slowly_is_given_up(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embeddings, "LONGEST_SECS", 0.2)

    def drip(connection: socket.socket) -> None:
        connection.sendall(ok(""))
        for _ in range(300):  # until the client closes the connection
            connection.sendall(b" ")
            time.sleep(0.02)

    began = time.monotonic()
    with pytest.raises(EmbeddingError, match="TimeoutError"):
        embed(Provider(serve(drip), "m", KEY), ["a"])
    assert time.monotonic() - began < 4


def test_a_key_that_cannot_be_sent_is_in_no_message_and_an_invalid_url_is_named(
    serve: Serve,
) -> None:
    with pytest.raises(EmbeddingError) as error:
        embed(Provider(serve(b""), "m", f"{KEY}\n"), ["a"])
    assert KEY not in "".join(traceback.format_exception(error.value))
    for url in ("localhost:8080/v1", "http://a:b@127.0.0.1/v1", "http://h:p/v1"):
        with pytest.raises(EmbeddingError, match="embeddings_url must be an http or https URL"):
            pytest.fail(f"called {url}: {embed(Provider(url, 'm', KEY), ['a'])}")
