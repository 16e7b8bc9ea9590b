"""The wire client writes what RQ writes, and is refused in time by anything but a Redis server."""

import json
import pickle
import re
import signal
import socket
import subprocess
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
queue = rq.Queue(order["queue"], connection=redis.Redis.from_url(order["url"]))
queue.enqueue_call(
    func="hivepipe.run_job.run_job",
    args=(order["envelope"],),
    job_id=order["id"],
    timeout=60,
    result_ttl=60,
    failure_ttl=-1,
    retry=rq.Retry(max=3, interval=[1, 2, 4]),
    description=order["description"],
)
print(rq.__version__)
"""

ENVELOPES = {
    "small": json.dumps({"v": 1, "operation": "activate_session", "payload": {"a": 1}}),
    "empty": "",
    "empty payload": json.dumps({"v": 1, "payload": {}}),
    "255 bytes": "x" * 255,
    "256 bytes": "x" * 256,
    "300 bytes": json.dumps({"payload": {"prompt": "y" * 280}}),
    "unicode": json.dumps({"payload": {"prompt": "Grüße, 東京 \U0001f41d \ud83d \x00"}}),
    "60 kB": json.dumps({"payload": {"prompt": "z" * 60_000}}),
}


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


def enqueue_by_rq(server: Server, path: list[str], version: str, job: Message) -> None:
    order = {
        "path": path,
        "version": version,
        "url": server.url,
        "queue": job.queue,
        "id": job.id,
        "envelope": job.envelope,
        "description": job.description,
    }
    done = subprocess.run(
        [sys.executable, "-I", "-c", ENQUEUE],
        input=json.dumps(order),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECS,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, version), done.stderr


# ---- equal to RQ


@pytest.mark.parametrize("envelope", ENVELOPES.values(), ids=ENVELOPES)
@pytest.mark.parametrize("which", ["oldest", "newest"])
def test_each_field_of_a_job_equals_that_of_rq(
    redis_server: Server, which: str, envelope: str
) -> None:
    if which == "oldest" and not OLDEST.is_dir():
        pytest.fail(f"{OLDEST} is missing: pip install --no-deps --target {OLDEST} rq==2.9.0")
    job = message(envelope=envelope)
    with redis_server.client() as redis:
        assert push(redis_server.address, [job]) == 1
        by_client = contents(redis)
        redis.flushall()
        path, version = ([str(OLDEST)], "2.9.0") if which == "oldest" else ([], newest())
        enqueue_by_rq(redis_server, path, version, job)
        by_rq = contents(redis)

    assert by_client.pop(b"hivepipe:accepted") == b"1"
    assert by_client.pop(b"hivepipe:bell") == [b"1"], "the bell must ring once to wake the writer"
    key = b"rq:job:" + job.id.encode()
    client_fields, rq_fields = by_client[key], by_rq[key]
    assert client_fields.pop(b"hp") == b"1"
    for name in TIMES:
        assert TIME.fullmatch(client_fields.pop(name))
        assert TIME.fullmatch(rq_fields.pop(name))
    client_data, rq_data = client_fields.pop(b"data"), zlib.decompress(rq_fields.pop(b"data"))
    assert client_data == rq_data
    assert client_fields == rq_fields
    assert by_client == by_rq  # the queue's list, the set of queues, and no other key


def test_rq_reads_the_job_back(redis_server: Server) -> None:
    from rq.job import Job  # noqa: PLC0415

    envelope = ENVELOPES["unicode"]
    push(redis_server.address, [message(envelope=envelope)])
    with redis_server.client() as redis:
        job = Job.fetch("a" * 32, connection=redis)
        assert (job.func_name, job.args, job.kwargs) == (
            "hivepipe.run_job.run_job",
            (envelope,),
            {},
        )
        assert (job.retries_left, job.retry_intervals) == (3, [1, 2, 4])
        assert (job.timeout, job.result_ttl, job.failure_ttl) == (60, 60, -1)
        assert job.description == "insert_agent Explore"
        assert job.meta == {}


@pytest.mark.parametrize("size", [0, 1, 254, 255, 256, 257, 65_535, 65_536, 1 << 20])
def test_the_constant_pickle_equals_pickle_up_to_the_frame_limit(size: int) -> None:
    """Beyond 64 kB pickle splits frames; the client's bytes may differ but must load equally."""
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


def test_the_counter_counts_new_ids_only(redis_server: Server) -> None:
    push(redis_server.address, [message("a" * 32), message("b" * 32)])
    push(redis_server.address, [message("b" * 32), message("c" * 32), message("c" * 32)])
    push(redis_server.address, [message("a" * 32)])
    assert accepted(redis_server) == 3
    with redis_server.client() as redis:
        assert len(redis.keys("rq:job:*")) == 3


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
        with pytest.raises(RefusedError) as refused:
            push(redis_server.address, [message("a" * 32), message("b" * 32)])
        assert contents(redis) == {}
        redis.config_set("maxmemory", 0)
    assert not refused.value.is_absent
    assert push(redis_server.address, [message("a" * 32), message("b" * 32)]) == 2


def test_an_error_reply_raises_refused_error(redis_server: Server) -> None:
    with redis_server.client() as redis:
        redis.set("rq:queues", "not a set")
        with pytest.raises(RefusedError) as refused:
            push(redis_server.address, [message()])
        assert not refused.value.is_absent
        assert sorted(redis.keys("*")) == [b"rq:queues"]


def test_a_refusal_has_its_reason(redis_server: Server) -> None:
    """Redis 6.2 puts a hundred bytes before the reason."""
    with redis_server.client() as redis:
        redis.set("rq:queues", "not a set")
        with pytest.raises(RefusedError, match="WRONGTYPE"):
            push(redis_server.address, [message()])
        redis.config_set("maxmemory", 1)
        with pytest.raises(RefusedError, match="OOM"):
            push(redis_server.address, [message()])


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


@pytest.mark.parametrize("database", [0, 3])
def test_jobs_are_enqueued_in_a_database_of_a_loopback_port(
    tcp_server: Server, database: int
) -> None:
    assert push(f"{tcp_server.address}/{database}", [message()]) == 1
    assert push(f"{tcp_server.address}/{database}", [message()]) == 0
    with tcp_server.client() as redis:
        assert {name: found["keys"] for name, found in redis.info("keyspace").items()} == {
            f"db{database}": 5  # the job, the queue, the set of queues, the counter, the bell
        }


def test_an_address_without_a_database_means_the_first(tcp_server: Server) -> None:
    assert push(tcp_server.address, [message()]) == 1
    with tcp_server.client() as redis:
        assert redis.llen("rq:queue:medium") == 1


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


@pytest.mark.parametrize(
    "behave",
    [
        closing,
        closing_after_the_request,
        silent,
        trickling,
        sending(b""),
        sending(b"\r\n"),
        sending(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        sending(b"+OK\r\n"),
        sending(b":abc\r\n"),
        sending(b":\r\n"),
        sending(b":1"),
        sending(b"$-1\r\n"),
        sending(b"*-1\r\n"),
        sending(b"\xff\xfe\x00" * 50 + b"\r\n"),
        sending(b"x" * 200_000),
        sending(b"-ERR no\r\n"),
        sending(b"-\r\n"),
    ],
    ids=[
        "closes",
        "closes after the request",
        "silent",
        "trickles",
        "says nothing",
        "empty line",
        "http",
        "ok",
        "no number",
        "empty number",
        "unfinished",
        "null text",
        "null list",
        "binary",
        "endless line",
        "error",
        "empty error",
    ],
)
def test_a_server_other_than_redis_is_refused(
    fake: Callable[[Behaviour], str], behave: Behaviour
) -> None:
    assert not refusal(fake(behave)).is_absent


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


@pytest.mark.parametrize("address", ["", "nowhere", "127.0.0.1:99999", "127.0.0.1:0x1", "/" * 200])
def test_an_invalid_address_is_refused(address: str) -> None:
    refusal(address)


def test_a_stopped_server_is_refused_and_stores_the_job_when_it_continues(
    redis_server: Server,
) -> None:
    redis_server.signal(signal.SIGSTOP)
    assert not refusal(redis_server.address).is_absent
    redis_server.signal(signal.SIGCONT)
    assert push(redis_server.address, [message()], reply_secs=PATIENCE_SECS) == 0
    assert accepted(redis_server) == 1
