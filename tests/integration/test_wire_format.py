"""The wire client writes what RQ writes, and is refused in time by anything but a Redis server."""

import json
import pickle
import re
import signal
import socket
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from hivepipe.events.job_plan import Message
from hivepipe.queue import client
from hivepipe.queue.client import RefusedError, push
from tests.conftest import PATIENCE_SECS, ROOT, Home, Server, accepted, find_server
from tests.outcome import outcome_of

OLDEST = ROOT / ".venv" / "rq-oldest"
TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
TIMES = (b"created_at", b"enqueued_at")

# Uses RQ without hivepipe's client; -I excludes the current folder and PYTHONPATH.
ENQUEUE = """
import json, sys
order = json.loads(sys.stdin.read())
sys.path[:0] = order["path"]
import redis, rq
assert rq.__version__ == order["version"], (rq.__version__, rq.__file__)
for queue, id, envelope, description in order["jobs"]:
    rq.Queue(queue, connection=redis.Redis.from_url(order["url"])).enqueue_call(
        func="hivepipe.run_job.run_job",
        args=(envelope,),
        job_id=id,
        timeout=60,
        result_ttl=60,
        failure_ttl=-1,
        retry=rq.Retry(max=3, interval=[1, 2, 4]),
        description=description,
    )
print(rq.__version__)
"""

ENVELOPES = [
    json.dumps({"v": 1, "operation": "activate_session", "payload": {"a": 1}}),
    "",
    "x" * 255,
    "x" * 256,
    json.dumps({"payload": {"prompt": "Grüße, 東京 \U0001f41d \ud83d \x00"}}),
    json.dumps({"payload": {"prompt": "z" * 60_000}}),
]


def message(
    id: str = "a" * 32, twin: str = "", queue: str = "medium", envelope: str = '{"v":1}'
) -> Message:
    return Message(id, twin, queue, "insert_agent Explore", "2026-11-21T01:02:03.456789Z", envelope)


def newest() -> str:
    from importlib.metadata import version  # noqa: PLC0415

    return version("rq")


def contents(redis: Redis) -> dict[bytes, Any]:
    """Return all keys of Redis with their values."""
    found: dict[bytes, Any] = {}
    for key in redis.keys("*"):
        kind = redis.type(key)
        if kind == b"hash":
            found[key] = redis.hgetall(key)
        elif kind == b"list":
            found[key] = redis.lrange(key, 0, -1)
        elif kind == b"set":
            found[key] = redis.smembers(key)
        else:
            found[key] = redis.get(key)
    return found


def enqueue_by_rq(server: Server, path: list[str], version: str, jobs: list[Message]) -> None:
    fields = [(job.queue, job.id, job.envelope, job.description) for job in jobs]
    order = {"path": path, "version": version, "url": server.url, "jobs": fields}
    done = outcome_of([sys.executable, "-I", "-c", ENQUEUE], input=json.dumps(order))
    assert (done.returncode, done.stdout.strip()) == (0, version), done.stderr


# ---- equal to RQ
@pytest.mark.parametrize("which", ["oldest", "newest"])
def test_each_field_of_a_job_equals_that_of_rq(redis_server: Server, which: str) -> None:
    if which == "oldest" and not OLDEST.is_dir():
        pytest.fail(f"{OLDEST} is missing: pip install --no-deps --target {OLDEST} rq==2.9.0")
    jobs = [message(f"{n:032}", envelope=text) for n, text in enumerate(ENVELOPES)]
    with redis_server.client() as redis:
        assert push(redis_server.address, jobs, reply_secs=PATIENCE_SECS) == len(jobs)
        by_client = contents(redis)
        redis.flushall()
        path, version = ([str(OLDEST)], "2.9.0") if which == "oldest" else ([], newest())
        enqueue_by_rq(redis_server, path, version, jobs)
        by_rq = contents(redis)

    assert by_client.pop(b"hivepipe:accepted") == str(len(jobs)).encode()
    assert by_client.pop(b"hivepipe:bell") == [b"1"], "the bell must ring once to wake the writer"
    for key in (b"rq:job:" + job.id.encode() for job in jobs):
        assert by_client[key].pop(b"hp") == b"1"
        for name in TIMES:
            assert TIME.fullmatch(by_client[key].pop(name))
            assert TIME.fullmatch(by_rq[key].pop(name))
        by_rq[key][b"data"] = zlib.decompress(by_rq[key][b"data"])
    assert by_client == by_rq  # the jobs, the queue's list, the set of queues, and no other key


def test_the_constant_pickle_equals_pickle_up_to_the_frame_limit() -> None:
    """Beyond 64 kB pickle splits frames; the client's bytes may differ but must load equally."""
    for size in (0, 1, 254, 255, 256, 257, 65_535, 65_536, 1 << 20):
        text = "e" * size
        call = (client.FUNCTION, None, (text,), {})
        assert pickle.loads(client.job_data(text)) == call
        if size < 65_000:
            assert client.job_data(text) == pickle.dumps(call, 5)


# ---- the script
def test_a_repeated_id_is_enqueued_once(redis_server: Server) -> None:
    first, second = message("a" * 32), message("b" * 32)
    assert push(redis_server.address, [first, first, second]) == 2
    assert push(redis_server.address, [second, first]) == 0
    with redis_server.client() as redis:
        assert redis.lrange("rq:queue:medium", 0, -1) == [b"a" * 32, b"b" * 32]
    assert accepted(redis_server) == 2


def test_a_job_with_a_known_twin_is_not_enqueued(redis_server: Server) -> None:
    assert push(redis_server.address, [message("a" * 32)]) == 1
    assert push(redis_server.address, [message("b" * 32, twin="a" * 32)]) == 0
    assert push(redis_server.address, [message("c" * 32, twin="d" * 32)]) == 1
    with redis_server.client() as redis:
        assert redis.lrange("rq:queue:medium", 0, -1) == [b"a" * 32, b"c" * 32]
        assert not redis.exists("rq:job:" + "b" * 32)


def test_each_job_enters_its_own_queue_in_order(redis_server: Server) -> None:
    jobs = [
        message(c * 32, queue=q)
        for c, q in zip("abcd", ("low", "high", "low", "medium"), strict=True)
    ]
    assert push(redis_server.address, jobs) == 4
    with redis_server.client() as redis:
        assert redis.lrange("rq:queue:low", 0, -1) == [b"a" * 32, b"c" * 32]
        assert redis.lrange("rq:queue:high", 0, -1) == [b"b" * 32]
        assert redis.smembers("rq:queues") == {
            b"rq:queue:low",
            b"rq:queue:high",
            b"rq:queue:medium",
        }
        assert redis.hget("rq:job:" + "d" * 32, "origin") == b"medium"


def test_with_full_memory_no_job_of_an_event_is_enqueued(redis_server: Server) -> None:
    with redis_server.client() as redis:
        redis.config_set("maxmemory", 1)
        with pytest.raises(RefusedError, match="OOM") as refused:
            push(redis_server.address, [message("a" * 32), message("b" * 32)])
        assert contents(redis) == {}
        redis.config_set("maxmemory", 0)
    assert not refused.value.is_absent
    assert push(redis_server.address, [message("a" * 32), message("b" * 32)]) == 2


def test_an_error_reply_raises_refused_error(redis_server: Server) -> None:
    with redis_server.client() as redis:
        redis.set("rq:queues", "not a set")
        # Redis 6.2 puts a hundred bytes before the reason.
        with pytest.raises(RefusedError, match="WRONGTYPE") as refused:
            push(redis_server.address, [message()])
        assert not refused.value.is_absent
        assert sorted(redis.keys("*")) == [b"rq:queues"]


# ---- a loopback port
@pytest.fixture
def tcp_server(private_home: Home) -> Iterator[Server]:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    options = [find_server(), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    server = Server(private_home, f"redis://127.0.0.1:{port}", options)
    server.start()
    yield server
    server.end(signal.SIGKILL)


@pytest.mark.parametrize(("suffix", "database"), [("", 0), ("/3", 3)])
def test_jobs_are_enqueued_in_a_database_of_a_loopback_port(
    tcp_server: Server, suffix: str, database: int
) -> None:
    assert push(f"{tcp_server.address}{suffix}", [message()]) == 1
    assert push(f"{tcp_server.address}/{database}", [message()]) == 0
    with tcp_server.client() as redis:
        assert {name: found["keys"] for name, found in redis.info("keyspace").items()} == {
            f"db{database}": 5  # the job, the queue, the set of queues, the counter, the bell
        }


def test_a_missing_database_is_refused_and_others_stay_unchanged(tcp_server: Server) -> None:
    with pytest.raises(RefusedError, match="out of range"):
        push(f"{tcp_server.address}/99", [message()])
    with tcp_server.client() as redis:
        assert contents(redis) == {}


# ---- servers other than Redis

Behaviour = Callable[[socket.socket], None]


def read_all(connection: socket.socket) -> None:
    """Read the request, because closing earlier would reset the connection."""
    connection.settimeout(5)
    received = b""
    while not received.endswith(b"456789Z\r\n") and (chunk := connection.recv(65536)):
        received += chunk


def closing(connection: socket.socket) -> None:
    connection.close()


def closing_after_the_request(connection: socket.socket) -> None:
    read_all(connection)


def sending(answer: bytes) -> Behaviour:
    def behave(connection: socket.socket) -> None:
        read_all(connection)
        connection.sendall(answer)
        connection.recv(1)  # until the client disconnects

    return behave


def silent(connection: socket.socket) -> None:
    connection.settimeout(5)
    while connection.recv(65536):
        pass


def trickling(connection: socket.socket) -> None:
    """Send bytes often and without end."""
    read_all(connection)
    pause = threading.Event()
    for _ in range(500):
        connection.sendall(b"+")
        pause.wait(0.02)


@pytest.fixture
def fake(private_home: Home) -> Iterator[Callable[[Behaviour], str]]:
    """Return a function that serves one connection in a thread and returns the address."""
    threads: list[threading.Thread] = []
    sockets: list[socket.socket] = []

    def make(behave: Behaviour) -> str:
        path = private_home.root / f"fake{len(sockets)}.sock"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen()
        sockets.append(listener)

        def serve() -> None:
            try:
                connection, _ = listener.accept()
                with connection:
                    behave(connection)
            except OSError:
                return  # the client has disconnected

        threads.append(threading.Thread(target=serve, daemon=True))
        threads[-1].start()
        return str(path)

    yield make
    for listener in sockets:
        listener.close()
    for thread in threads:
        thread.join(PATIENCE_SECS)


def refusal(address: str) -> RefusedError:
    """Return the error of a push; fail if the push does not end in time."""
    caught: list[BaseException] = []

    def attempt() -> None:
        try:
            push(address, [message()])
        except BaseException as error:  # noqa: BLE001  whatever it is: the test looks at it
            caught.append(error)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive(), "push has no deadline"
    assert caught, "push accepted an invalid answer"
    assert isinstance(caught[0], RefusedError), repr(caught[0])
    return caught[0]


OTHERS = {
    "closes": closing,
    "closes after the request": closing_after_the_request,
    "silent": silent,
    "trickles": trickling,
    "http": sending(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    "endless line": sending(b"x" * 200_000),
    "error": sending(b"-ERR no\r\n"),
}


def test_a_server_other_than_redis_is_refused(fake: Callable[[Behaviour], str]) -> None:
    for name, behave in OTHERS.items():
        assert not refusal(fake(behave)).is_absent, name


def test_an_absent_server_is_distinguished_from_a_failing_one(private_home: Home) -> None:
    assert refusal(str(private_home.root / "none.sock")).is_absent
    stale = private_home.root / "stale.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(stale))
    assert refusal(str(stale)).is_absent
    plain = private_home.root / "plain"
    Path(plain).write_text("")
    assert refusal(str(plain)).is_absent
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    assert refusal(f"redis://127.0.0.1:{port}").is_absent


def test_an_invalid_address_is_refused() -> None:
    for address in ("", "nowhere", "127.0.0.1:99999", "127.0.0.1:0x1", "/" * 200):
        refusal(address)


def test_a_stopped_server_is_refused_and_stores_the_job_when_it_continues(
    redis_server: Server,
) -> None:
    redis_server.signal(signal.SIGSTOP)
    assert not refusal(redis_server.address).is_absent
    redis_server.signal(signal.SIGCONT)
    assert push(redis_server.address, [message()], reply_secs=PATIENCE_SECS) == 0
    assert accepted(redis_server) == 1
