"""Reading stdin: one complete event is enough, input is bounded, and waiting has a deadline."""

import json
import os
import signal
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hivepipe.hook import stdin
from hivepipe.hook.stdin import Braces, Input, read_event
from tests import payloads
from tests.payloads import encoded

GUARD_SECS = 30  # a hang guard, not a measurement


@pytest.fixture
def pipe() -> Iterator[list[int]]:
    """Return the two ends of a pipe. A test that closes an end sets it to -1."""
    ends = list(os.pipe())
    yield ends
    for end in ends:
        if end >= 0:
            os.close(end)


def is_whole(data: bytes, size: int = 0) -> bool:
    """Return whether the braces are balanced, counted in chunks of this size or at once."""
    braces = Braces()
    for start in range(0, len(data), size or len(data) or 1):
        braces.count(data[start : start + (size or len(data))])
    return braces.are_whole


class Reader(threading.Thread):
    """A thread that reads one event."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(daemon=True)
        self.descriptor = descriptor
        self.result: Input | None = None
        self.start()

    def run(self) -> None:
        self.result = read_event(self.descriptor)

    def finished(self) -> Input:
        self.join(GUARD_SECS)
        assert self.result is not None, "still reading"
        return self.result


@pytest.mark.parametrize("label", payloads.EVENTS)
def test_a_whole_object_is_enough_though_the_pipe_stays_open(pipe: list[int], label: str) -> None:
    end = (b"", b"\n", b" \r\n")[len(label) % 3]
    data = encoded(payloads.ALL[label]) + end
    os.write(pipe[1], data)
    received = Reader(pipe[0]).finished()
    assert (received.data, received.trouble) == (data, "")


def test_a_large_whole_object_is_enough_though_the_pipe_stays_open(pipe: list[int]) -> None:
    data = encoded({"tool_input": {"content": "}" * 3_000_000, "b": [{"c": '"{}\\'}] * 1000}})
    reader = Reader(pipe[0])
    # A thread, because a reader that ends too early leaves the writer blocked.
    threading.Thread(target=os.write, args=(pipe[1], data), daemon=True).start()
    assert reader.finished().data == data


def test_half_an_object_is_waited_for(pipe: list[int]) -> None:
    os.write(pipe[1], b'{"a":{"b":1}')
    reader = Reader(pipe[0])
    reader.join(0.1)
    assert reader.is_alive()
    os.write(pipe[1], b"}")
    assert reader.finished().data == b'{"a":{"b":1}}'


@pytest.mark.parametrize("data", [b"", b"nonsense", b'{"a":', b"[1,2]", b"null", b"\0\0"])
def test_input_without_an_object_is_returned_at_the_end_of_the_file(
    pipe: list[int], data: bytes
) -> None:
    os.write(pipe[1], data)
    os.close(pipe[1])
    pipe[1] = -1
    received = Reader(pipe[0]).finished()
    assert (received.data, received.trouble) == (data, "")


LATE = "stdin was not closed in time"


def test_input_from_before_the_deadline_is_kept(
    pipe: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    chunks = iter([b'{"a":1,', b'"b":2'])

    def read(_descriptor: int, _size: int) -> bytes:
        for chunk in chunks:
            return chunk
        raise BlockingIOError

    monkeypatch.setattr(stdin.posix, "read", read)
    received = read_event(pipe[0])
    assert (received.data, received.trouble) == (b'{"a":1,"b":2', LATE)


@pytest.mark.parametrize("whole", [True, False])
def test_input_that_arrived_before_the_deadline_is_used_even_if_unread(
    pipe: list[int], whole: bool
) -> None:
    """On a busy machine the deadline passes before this process runs."""
    data = b'{"a":{"b":1}' + b"}" * whole
    os.write(pipe[1], data)
    stdin.stop_waiting(pipe[0])
    received = read_event(pipe[0])
    assert (received.data, bool(received.trouble)) == (data, not whole)
    # A descriptor that others share blocks again after a timeout.
    assert os.get_blocking(pipe[0]) is not whole


def test_a_file_without_end_is_cut_at_the_deadline() -> None:
    with open("/dev/zero", "rb") as zeros:
        stdin.stop_waiting(zeros.fileno())
        received = read_event(zeros.fileno())
    assert len(received.data) < 3 << 20
    assert received.trouble == LATE


def test_a_waiting_read_is_ended_at_the_deadline(pipe: list[int]) -> None:
    os.write(pipe[1], b'{"a":')
    old = signal.signal(signal.SIGALRM, lambda *_: stdin.stop_waiting(pipe[0]))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        received = read_event(pipe[0])
    finally:
        signal.signal(signal.SIGALRM, old)
    assert (received.data, received.trouble) == (b'{"a":', LATE)


def test_a_stdin_that_cannot_be_read_is_named(pipe: list[int]) -> None:
    received = read_event(pipe[1])
    assert (received.data, received.trouble) == (b"", "stdin could not be read")


def test_reading_stops_beyond_the_limit(pipe: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    assert stdin.LIMIT_BYTES == 64 * 1024 * 1024
    monkeypatch.setattr(stdin, "LIMIT_BYTES", 100)
    os.write(pipe[1], b'{"a":"' + b"x" * 200)
    received = Reader(pipe[0]).finished()
    assert len(received.data) > 100
    assert received.trouble == "event larger than 64 MB"


values = st.recursive(
    st.none() | st.integers() | st.text(st.sampled_from('{}[]"\\:,a\n\u20ac')),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('{}"\\'), inner, max_size=3)
    ),
    max_leaves=10,
)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.dictionaries(st.text('{}"\\a'), values, max_size=4), st.booleans(), st.integers(0, 5))
def test_any_object_is_whole_at_its_end_and_at_no_brace_before(
    value: dict[str, object], ascii_only: bool, chunk: int
) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert is_whole(data, chunk)
    assert not any(
        is_whole(data[:end], chunk) for end in range(len(data)) if data[:end].endswith(b"}")
    )


@pytest.mark.parametrize("data", [b"", b"}", b"null", b"[]", b'"{}"', b'{"a":"}'])
def test_data_without_a_complete_object_is_not_whole(data: bytes) -> None:
    assert not is_whole(data)
