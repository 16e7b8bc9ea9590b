"""Any reply in place of Redis: only a complete, correct one counts as an acknowledgement."""

import re
import socket
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivepipe.queue import client
from tests.conftest import Home, fire
from tests.faults import oracle
from tests.fuzz.inputs import broken, fuzzed, replayed
from tests.payloads import SESSION_START, changed

MESSAGES = oracle.messages(
    oracle.timed([oracle.start(0, "inst-a"), oracle.edit(1, oracle.SESSIONS[0], "inst-a")]),
    "/home/ana/shop",
    "swarm-a",
)[1]
REPLY_SECS = 0.05
LONGEST_SECS = 5.0  # only against a hanging client
GOOD = [b":%d\r\n" % number for number in range(len(MESSAGES) + 1)]
OTHER = [
    b"+OK\r\n", b"-ERR no\r\n", b"-LOADING\r\n", b"$-1\r\n", b"$3\r\nabc\r\n", b"*1\r\n:1\r\n",
    b":-1\r\n", b":\r\n", b":1000\r\n", b":" + b"9" * 5000 + b"\r\n", b"$999999999999\r\n",
    b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\r\n", b"x" * 70_000,
    ":²\r\n".encode(), ":٣\r\n".encode(), b":abc\r\n", b"", b":1", b"*-1\r\n", b"-\r\n",
    b"\xff\xfe\x00" * 50 + b"\r\n",
]  # fmt: skip


class FakeRedis(threading.Thread):
    """A server that answers each request with the same pieces and closes the connection."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self.address = str(path)
        self.pieces: list[bytes] = []
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(self.address)
        self._listening.listen()

    def run(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with connection:
                connection.recv(1 << 20)
                for piece in self.pieces:
                    try:
                        connection.sendall(piece)
                    except OSError:
                        break

    def end(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@pytest.fixture(scope="module")
def fake_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeRedis]:
    made = FakeRedis(tmp_path_factory.mktemp("s") / "redis.sock")
    made.start()
    yield made
    made.end()


def asked(address: str, script: str) -> object:
    if script:
        return client.push_with(address, MESSAGES, script, ["a"])
    return client.push(address, MESSAGES, REPLY_SECS)


def check_reply(fake_redis: FakeRedis, data: bytes, cuts: list[int]) -> None:
    """Send jobs and check that only a valid reply counts as an acknowledgement."""
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    fake_redis.pieces = [data[a:b] for a, b in pairwise(places)]
    began = time.monotonic()
    for script in ("", "said = 'x'\n"):
        try:
            said = asked(fake_redis.address, script)
        except client.RefusedError:
            continue
        kind = rb"\+[^\r\n]*" if script else rb":[0-9]{1,2}"
        assert re.fullmatch(kind + rb"\r\n", data), said
        if not script:
            assert said == int(data[1:-2])
            assert 0 <= int(data[1:-2]) <= len(MESSAGES)
    assert time.monotonic() - began < LONGEST_SECS


@fuzzed
@given(data=broken(st.sampled_from([*GOOD, *OTHER])), cuts=st.lists(st.integers(0, 60), max_size=3))
def test_only_a_valid_reply_is_an_acknowledgement(
    fake_redis: FakeRedis, data: bytes, cuts: list[int]
) -> None:
    check_reply(fake_redis, data, cuts)


@replayed("replies")
def test_a_reply_that_failed_once(fake_redis: FakeRedis, data: bytes) -> None:
    check_reply(fake_redis, data, [1])


def test_a_hook_spools_its_event_without_an_acknowledgement(private_home: Home) -> None:
    """The hook's own script, which counts the hook, replies with a text."""
    address = Path(private_home.address)
    for folder in (address.parents[1], address.parent):
        folder.mkdir(mode=0o700)
    fake_redis = FakeRedis(address)
    fake_redis.start()
    kept = 0
    for number, data in enumerate([b"+\r\n", *GOOD, *OTHER]):
        fake_redis.pieces = [data]
        fire("SessionStart", changed(SESSION_START, session_id=f"s{number}"), private_home.env)
        kept += not data.startswith(b"+")
        assert len(private_home.spool) == kept, data
    fake_redis.end()


@pytest.mark.parametrize("data", GOOD)
def test_a_good_reply_is_taken(fake_redis: FakeRedis, data: bytes) -> None:
    fake_redis.pieces = [data]
    assert client.push(fake_redis.address, MESSAGES, LONGEST_SECS) == int(data[1:-2])
