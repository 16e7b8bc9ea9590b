"""An existing Redis: on this machine, on another, or used by another program."""

import os
import posix
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from rq import Queue

from hivepipe.home import read_record
from hivepipe.queue.claims import accounts
from tests.conftest import find_server
from tests.integration.test_stack import (  # noqa: F401  a fixture
    ONE_OF_EACH,
    Sandbox,
    eventually,
    sandbox,
)

PASSWORD = "p@ss/word"
URL_PASSWORD = "p%40ss%2Fword"
OURS = {kind: n for kind, n in ONE_OF_EACH.items() if kind not in ("redis", "forwarder")}


class TheirRedis:
    """A server of another program, on a port of this machine."""

    def __init__(self, folder: Path, *options: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        self.command = [find_server(), "--port", str(self.port), "--save", "", "--dir", str(folder)]
        self.command += ["--unixsocket", f"{folder}/theirs.sock", *options]
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)
        eventually(self.answers)

    def answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def client(self, database: int = 0, **options: str) -> "redis.Redis":
        return redis.Redis(port=self.port, db=database, **options)  # type: ignore[arg-type]

    def end(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def new_redis(sandbox: Sandbox) -> Iterator[Callable[..., TheirRedis]]:  # noqa: F811
    made: list[TheirRedis] = []

    def make(*options: str) -> TheirRedis:
        made.append(TheirRedis(sandbox.folder, *options))
        return made[-1]

    yield make
    for server in made:
        server.end()


@pytest.fixture
def theirs(new_redis: Callable[..., TheirRedis]) -> TheirRedis:
    return new_redis()


def recorded(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:  # noqa: F811
    seen = {os.fsencode(name): os.fsencode(value) for name, value in sandbox.env.items()}
    monkeypatch.setattr(posix, "environ", seen)
    return read_record(str(sandbox.project))


def counts(sandbox: Sandbox) -> dict[str, int]:  # noqa: F811
    """Without the server that belongs to the test."""
    return {kind: n for kind, n in sandbox.counts().items() if kind != "redis"}


def remote(theirs: TheirRedis) -> str:
    """An address of this machine that is no loopback address by its name."""
    return f"redis://0.0.0.0:{theirs.port}/2"


# ---- on this machine


def test_hooks_speak_to_a_loopback_redis_with_password_and_database(
    sandbox: Sandbox,  # noqa: F811
    new_redis: Callable[..., TheirRedis],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    theirs = new_redis("--requirepass", PASSWORD)
    sandbox.run("up", "-d", "--redis-url", f"redis://:{URL_PASSWORD}@localhost:{theirs.port}/3")
    assert counts(sandbox) == OURS
    address = f"redis://:{URL_PASSWORD}@127.0.0.1:{theirs.port}/3"
    assert recorded(sandbox, monkeypatch)["socket"] == address
    client = theirs.client(3, password=PASSWORD)
    sandbox.fire("s-1")
    assert int(client.get("hivepipe:accepted") or 0) == 1, "the hook itself pushed"  # type: ignore[arg-type]
    eventually(lambda: sandbox.sessions() == {"s-1"})
    said = sandbox.run("status")
    assert f"redis://:***@127.0.0.1:{theirs.port}/3" in said
    assert URL_PASSWORD not in said + sandbox.run("logs")
    assert sandbox.run("url").strip() == address, "RQ's tools need it"
    sandbox.run("rq", "--", "info", "--only-queues")

    sandbox.run("down")
    assert client.ping(), "it is not ours to stop"
    sandbox.fire("s-2")
    assert sandbox.spooled == 1, "down: nothing goes to a server that runs on"
    sandbox.run("up", "-d")
    assert recorded(sandbox, monkeypatch)["socket"] == address, "chosen once"
    eventually(lambda: sandbox.sessions() == {"s-1", "s-2"})

    sandbox.run("up", "-d", "--embedded")
    assert sandbox.socket.endswith("/redis.sock")
    accepted = client.get("hivepipe:accepted")
    sandbox.fire("s-3")
    eventually(lambda: "s-3" in sandbox.sessions())
    assert client.get("hivepipe:accepted") == accepted, "it gets nothing more"


def test_a_unix_socket_with_a_database(sandbox: Sandbox, theirs: TheirRedis) -> None:  # noqa: F811
    sandbox.run("up", "-d", "--redis-url", f"unix://{sandbox.folder}/theirs.sock?db=5")
    sandbox.fire("s-1")
    assert int(theirs.client(5).get("hivepipe:accepted") or 0) == 1  # type: ignore[arg-type]
    eventually(lambda: sandbox.sessions() == {"s-1"})


def test_a_bare_redis_url_names_another_redis(
    sandbox: Sandbox,  # noqa: F811
    theirs: TheirRedis,
) -> None:
    theirs_url = f"redis://127.0.0.1:{theirs.port}/1"
    sandbox.run("up", "-d", REDIS_URL=theirs_url)
    sandbox.fire("s-1", REDIS_URL=theirs_url)
    eventually(lambda: sandbox.sessions() == {"s-1"})
    assert theirs.client(1).keys() == []
    sandbox.run("down")
    sandbox.run("up", "-d", "--use-env-redis", REDIS_URL=theirs_url)
    assert b"hivepipe:owner" in theirs.client(1).keys("*")  # type: ignore[operator]
    sandbox.run("up", "-d", HIVEPIPE_REDIS_URL=f"redis://127.0.0.1:{theirs.port}/2")
    assert b"hivepipe:owner" in theirs.client(2).keys("*")  # type: ignore[operator]
    sandbox.fire("s-2", HIVEPIPE_REDIS_URL=theirs_url)
    assert int(theirs.client(2).get("hivepipe:accepted") or 0) == 1, "hooks believe the record"  # type: ignore[arg-type]


# ---- elsewhere


def test_a_remote_redis_is_the_forwarders(
    sandbox: Sandbox,  # noqa: F811
    theirs: TheirRedis,
) -> None:
    sandbox.run("up", "-d", "--redis-url", remote(theirs))
    whole = OURS | {"forwarder": 1}
    assert counts(sandbox) == whole
    os.kill(sandbox.pid("forwarder"), signal.SIGSTOP)
    os.kill(sandbox.pid("writer"), signal.SIGSTOP)  # which drains the spool, too
    sandbox.fire("s-1")
    assert sandbox.spooled == 1, "a hook never waits for a network"
    os.kill(sandbox.pid("forwarder"), signal.SIGCONT)
    eventually(lambda: sandbox.spooled == 0)
    os.kill(sandbox.pid("writer"), signal.SIGCONT)
    eventually(lambda: sandbox.sessions() == {"s-1"})

    theirs.end()
    for number in range(2, 7):
        sandbox.fire(f"s-{number}")
    assert sandbox.spooled == 5, "they wait on disk while it is away"
    theirs.start()
    eventually(lambda: len(sandbox.sessions()) == 6)
    assert sandbox.spooled == 0

    # It has forgotten everything: else the stack would not start again, on queues of its own.
    eventually(lambda: theirs.client(2).exists("hivepipe:owner"))
    kill_all(sandbox)
    sandbox.fire("s-7")
    eventually(lambda: counts(sandbox) == whole)
    eventually(lambda: len(sandbox.sessions()) == 7)
    sandbox.run("down")
    assert counts(sandbox) == {}
    assert sandbox.status(expect=1)["failed_start"] is None


def kill_all(sandbox: Sandbox) -> None:  # noqa: F811
    """Kill a stack at one blow: none of it starts another anew meanwhile."""
    pids = [sandbox.pid(kind) for kind in counts(sandbox)]
    for name in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            os.kill(pid, name)
    eventually(lambda: counts(sandbox) == {})


# ---- somebody else's


def test_a_redis_of_another_home_is_refused_by_name(
    sandbox: Sandbox,  # noqa: F811
    theirs: TheirRedis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = f"redis://127.0.0.1:{theirs.port}/1"
    sandbox.run("up", "-d", "--redis-url", url)
    first = sandbox.home
    sandbox.project = sandbox.folder / "second"
    sandbox.project.mkdir()
    said = sandbox.run("up", "-d", "--redis-url", url, expect=1)
    assert f"{first} on {socket.gethostname()}" in said
    assert recorded(sandbox, monkeypatch) == {}
    assert not (sandbox.project / ".hive-mind").exists()
    sandbox.run("up", "-d", "--redis-url", f"redis://127.0.0.1:{theirs.port}/2")


def test_a_redis_that_an_application_uses_is_refused_and_left_as_it_was(
    sandbox: Sandbox,  # noqa: F811
    theirs: TheirRedis,
) -> None:
    Queue("high", connection=theirs.client()).enqueue("app.tasks.pay", 1)
    before = theirs.client().keys()
    said = sandbox.run("up", "-d", "--redis-url", f"redis://127.0.0.1:{theirs.port}", expect=1)
    assert "another program (rq:queue:high)" in said
    assert theirs.client().keys() == before
    assert counts(sandbox) == {}


def test_a_foreign_job_in_our_queue_is_kept_and_a_hook_that_pushed_starts_the_stack(
    sandbox: Sandbox,  # noqa: F811
    theirs: TheirRedis,
) -> None:
    sandbox.run("up", "-d", "--redis-url", f"redis://127.0.0.1:{theirs.port}")
    job = Queue("high", connection=theirs.client()).enqueue("app.tasks.pay", 1)
    before = theirs.client().hgetall(f"rq:job:{job.id}")
    sandbox.fire("s-1")
    eventually(lambda: sandbox.sessions() == {"s-1"})
    assert theirs.client().lrange("rq:queue:high", 0, -1) == [job.id.encode()]
    assert theirs.client().hgetall(f"rq:job:{job.id}") == before
    eventually(
        lambda: "1 job of another program" in sandbox.run("logs", "--lines", "9999", "writer")
    )

    kill_all(sandbox)
    sandbox.fire("s-2")
    assert sandbox.spooled == 0, "the hook pushed, and saw that nobody works"
    eventually(lambda: counts(sandbox) == OURS)
    eventually(lambda: sandbox.sessions() == {"s-1", "s-2"})


def test_a_cluster_is_refused_with_a_sentence(
    sandbox: Sandbox,  # noqa: F811
    new_redis: Callable[..., TheirRedis],
) -> None:
    cluster = new_redis("--cluster-enabled", "yes")
    said = sandbox.run("up", "-d", "--redis-url", f"redis://127.0.0.1:{cluster.port}", expect=1)
    assert "is a Redis Cluster, which RQ does not support" in said


def test_a_redis_that_forgets_is_named(
    sandbox: Sandbox,  # noqa: F811
    new_redis: Callable[..., TheirRedis],
) -> None:
    forgetful = new_redis("--maxmemory-policy", "allkeys-lru")
    said = sandbox.run("up", "-d", "--redis-url", f"redis://127.0.0.1:{forgetful.port}")
    assert "may throw events away when it is full" in said


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("redis://:secret@127.0.0.1:1", "does not answer"),
        ("http://:secret@127.0.0.1", "no address of a Redis"),
        ("redis+sentinel://:secret@h/mymaster", "Sentinel and Cluster are not supported"),
        ("redis://:secret@127.0.0.1:port", "no address of a Redis"),
        ("redis://:secret@127.0.0.1/name", "no address of a Redis"),
    ],
)
def test_an_address_that_leads_nowhere_is_refused_without_its_password(
    sandbox: Sandbox,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    reason: str,
) -> None:
    said = sandbox.run("up", "-d", "--redis-url", url, expect=1)
    assert reason in said
    assert "secret" not in said
    assert recorded(sandbox, monkeypatch) == {}


def test_only_one_redis_can_be_chosen(sandbox: Sandbox) -> None:  # noqa: F811
    sandbox.run("up", "--embedded", "--redis-url", "redis://127.0.0.1", expect=64)
    assert "REDIS_URL is not set" in sandbox.run("up", "--use-env-redis", expect=64)


# ---- and gone again


def waiting(client: "redis.Redis") -> int:
    """Return how many jobs wait or run."""
    found = accounts(client)
    return found["waiting"] + found["running"] + found["retrying"]


def test_uninstall_leaves_nothing_of_ours_and_all_of_theirs(
    sandbox: Sandbox,  # noqa: F811
    theirs: TheirRedis,
) -> None:
    theirs.client(3).set("mine", "1")
    sandbox.run("up", "-d", "--redis-url", f"redis://127.0.0.1:{theirs.port}/3")
    sandbox.fire("s1")
    eventually(lambda: "s1" in sandbox.sessions())
    os.kill(sandbox.pid("scheduler"), signal.SIGSTOP)  # else more comes by the clock
    eventually(lambda: not waiting(theirs.client(3)))
    sandbox.run("uninstall")
    assert theirs.client(3).keys("*") == [b"mine"]
    assert sandbox.processes().keys() <= {"redis"}


def test_uninstall_keeps_jobs_that_were_never_done_unless_it_purges(
    sandbox: Sandbox,  # noqa: F811
    theirs: TheirRedis,
) -> None:
    sandbox.run("up", "-d", "--redis-url", f"redis://127.0.0.1:{theirs.port}/3")
    os.kill(sandbox.pid("writer"), signal.SIGKILL)
    sandbox.run("down")
    sandbox.fire("s1")
    theirs.client(3).rpush("rq:queue:high", "waiting")
    assert "unfinished jobs" in sandbox.run("uninstall", expect=1)
    assert theirs.client(3).exists("hivepipe:owner", "rq:queue:high") == 2
    sandbox.run("uninstall", "--purge", "--yes")
    assert theirs.client(3).keys("*") == []
    assert not sandbox.home.exists()
