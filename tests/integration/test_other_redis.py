"""An existing Redis: on this machine, on another one, or used by another program."""

import os
import posix
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import redis
from rq import Queue
from rq_scheduler.scheduler import Scheduler

from hivepipe.home import read_record
from hivepipe.queue.claims import accounts
from hivepipe.queue.ticks import SCHEDULED_KEY
from hivepipe.stack.other_redis import claim, trouble
from tests.conftest import ROOT, find_server
from tests.sandbox import ONE_OF_EACH, Sandbox, command_lines, eventually

PASSWORD = "p@ss/word"
URL_PASSWORD = "p%40ss%2Fword"
WITHOUT_REDIS = {kind: n for kind, n in ONE_OF_EACH.items() if kind not in ("redis", "forwarder")}


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
def new_redis(sandbox: Sandbox) -> Iterator[Callable[..., TheirRedis]]:
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


def recorded(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    seen = {os.fsencode(name): os.fsencode(value) for name, value in sandbox.env.items()}
    monkeypatch.setattr(posix, "environ", seen)
    return read_record(str(sandbox.project))


def counts(sandbox: Sandbox) -> dict[str, int]:
    """Return the number of each kind of process, without the server of the test."""
    return {kind: n for kind, n in sandbox.counts().items() if kind != "redis"}


def remote_url(theirs: TheirRedis) -> str:
    """Return an address of this machine that does not count as a loopback address."""
    return f"redis://0.0.0.0:{theirs.port}/2"


# ---- on this machine
def test_hooks_push_to_a_loopback_redis_with_password_and_database(
    sandbox: Sandbox, new_redis: Callable[..., TheirRedis], monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = new_redis("--requirepass", PASSWORD)
    sandbox.run("up", "-d", "--redis-url", f"redis://:{URL_PASSWORD}@localhost:{theirs.port}/3")
    eventually(lambda: counts(sandbox) == WITHOUT_REDIS)  # the intake is renamed after its start
    address = f"redis://:{URL_PASSWORD}@127.0.0.1:{theirs.port}/3"
    assert recorded(sandbox, monkeypatch)["socket"] == address
    client = theirs.client(3, password=PASSWORD)
    sandbox.fire("s-1")
    assert int(client.get("hivepipe:accepted") or 0) == 1, "the hook did not push"  # type: ignore[arg-type]
    eventually(lambda: sandbox.sessions() == {"s-1"})
    output = sandbox.run("status")
    assert f"redis://:***@127.0.0.1:{theirs.port}/3" in output
    assert URL_PASSWORD not in output + sandbox.run("logs")
    assert sandbox.run("url").strip() == address, "RQ's tools need it"
    sandbox.run("rq", "--", "info", "--only-queues")

    sandbox.run("down")
    assert client.ping(), "down stopped a foreign Redis"
    sandbox.fire("s-2")
    assert sandbox.spooled == 1, "down, but an event was pushed"
    sandbox.run("up", "-d")
    assert recorded(sandbox, monkeypatch)["socket"] == address, "the choice was not stored"
    eventually(lambda: sandbox.sessions() == {"s-1", "s-2"})

    sandbox.run("up", "-d", "--embedded")
    assert sandbox.socket.endswith("/redis.sock")
    accepted = client.get("hivepipe:accepted")
    sandbox.fire("s-3")
    eventually(lambda: "s-3" in sandbox.sessions())
    assert client.get("hivepipe:accepted") == accepted, "it got another job"


def test_a_unix_socket_with_a_database(sandbox: Sandbox, theirs: TheirRedis) -> None:
    sandbox.run("up", "-d", "--redis-url", f"unix://{sandbox.folder}/theirs.sock?db=5")
    sandbox.fire("s-1")
    assert int(theirs.client(5).get("hivepipe:accepted") or 0) == 1  # type: ignore[arg-type]
    eventually(lambda: sandbox.sessions() == {"s-1"})


def test_redis_url_alone_is_not_used(sandbox: Sandbox, theirs: TheirRedis) -> None:
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
    assert int(theirs.client(2).get("hivepipe:accepted") or 0) == 1, (
        "the hook did not use the record"
    )  # type: ignore[arg-type]


def test_a_redis_that_hangs_holds_up_no_status(sandbox: Sandbox, theirs: TheirRedis) -> None:
    sandbox.run("up", "-d", "--redis-url", f"redis://127.0.0.1:{theirs.port}/1")
    theirs.process.send_signal(signal.SIGSTOP)
    begun = time.monotonic()
    assert "does not answer" in sandbox.run("status", expect=1)
    assert time.monotonic() - begun < 10


# ---- elsewhere
def test_only_the_forwarder_connects_to_a_remote_redis(
    sandbox: Sandbox, theirs: TheirRedis
) -> None:
    sandbox.run("up", "-d", "--redis-url", remote_url(theirs))
    whole = WITHOUT_REDIS | {"forwarder": 1}
    eventually(lambda: counts(sandbox) == whole)
    os.kill(sandbox.pid("forwarder"), signal.SIGSTOP)
    os.kill(sandbox.pid("writer"), signal.SIGSTOP)  # the writer drains the spool too
    sandbox.fire("s-1")
    assert sandbox.spooled == 1, "the hook did not spool"
    os.kill(sandbox.pid("forwarder"), signal.SIGCONT)
    eventually(lambda: sandbox.spooled == 0)
    os.kill(sandbox.pid("writer"), signal.SIGCONT)
    eventually(lambda: sandbox.sessions() == {"s-1"})

    theirs.end()
    for number in range(2, 7):
        sandbox.fire(f"s-{number}")
    assert sandbox.spooled == 5, "not all events were spooled"
    theirs.start()
    eventually(lambda: len(sandbox.sessions()) == 6)
    assert sandbox.spooled == 0

    # The restarted Redis has lost its data; without an owner the stack would not start again.
    eventually(lambda: theirs.client(2).exists("hivepipe:owner"))
    kill_all(sandbox)
    # A hook that found no forwarder without their Redis delayed the next start.
    eventually(lambda: not has_starter(sandbox))
    for file in sandbox.run_folder.rglob("starting"):
        file.unlink()
    sandbox.fire("s-7")
    eventually(lambda: counts(sandbox) == whole)
    eventually(lambda: len(sandbox.sessions()) == 7)
    sandbox.run("down")
    assert counts(sandbox) == {}
    assert sandbox.status(expect=1)["failed_start"] is None


def has_starter(sandbox: Sandbox) -> bool:
    words = ("hivepipe.stack.starter", str(sandbox.run_folder))
    return any(all(word in line for word in words) for _, line in command_lines())


def kill_all(sandbox: Sandbox) -> None:
    """Stop all processes before killing them, so that none starts another."""
    pids = [sandbox.pid(kind) for kind in counts(sandbox)]
    for name in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            os.kill(pid, name)
    eventually(lambda: counts(sandbox) == {})


# ---- used by another program
def test_a_redis_of_another_home_is_refused_and_named(
    sandbox: Sandbox, theirs: TheirRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"redis://127.0.0.1:{theirs.port}/1"
    sandbox.run("up", "-d", "--redis-url", url)
    first = sandbox.home
    sandbox.project = sandbox.folder / "second"
    sandbox.project.mkdir()
    output = sandbox.run("up", "-d", "--redis-url", url, expect=1)
    assert f"{first} on {socket.gethostname()}" in output
    assert recorded(sandbox, monkeypatch) == {}
    assert not (sandbox.project / ".hive-mind").exists()
    sandbox.run("up", "-d", "--redis-url", f"redis://127.0.0.1:{theirs.port}/2")


def test_a_redis_of_an_application_is_refused_and_not_changed(
    sandbox: Sandbox, theirs: TheirRedis
) -> None:
    Queue("high", connection=theirs.client()).enqueue("app.tasks.pay", 1)
    before = theirs.client().keys()
    output = sandbox.run("up", "-d", "--redis-url", f"redis://127.0.0.1:{theirs.port}", expect=1)
    assert "another program (rq:queue:high)" in output
    assert theirs.client().keys() == before
    assert counts(sandbox) == {}


def test_a_foreign_job_is_kept_and_a_hook_starts_a_killed_stack(
    sandbox: Sandbox, theirs: TheirRedis
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

    def is_started_by_a_hook() -> bool:
        sandbox.fire("s-2")  # again, because the start by one hook may not be due yet
        return counts(sandbox) == WITHOUT_REDIS

    kill_all(sandbox)
    sandbox.fire("s-2")
    assert sandbox.spooled == 0, "the hook did not push"
    eventually(is_started_by_a_hook)
    eventually(lambda: sandbox.sessions() == {"s-1", "s-2"})


def test_a_cluster_is_refused_and_a_redis_that_evicts_keys_is_named(
    sandbox: Sandbox, new_redis: Callable[..., TheirRedis]
) -> None:
    cluster = new_redis("--cluster-enabled", "yes")
    output = sandbox.run("up", "-d", "--redis-url", f"redis://127.0.0.1:{cluster.port}", expect=1)
    assert "is a Redis Cluster, which RQ does not support" in output
    cluster.end()
    evicting = new_redis("--maxmemory-policy", "allkeys-lru")
    output = sandbox.run("up", "-d", "--redis-url", f"redis://127.0.0.1:{evicting.port}")
    assert "may evict events when it is full" in output


def acl_rules() -> str:
    """Return the rules for an ACL user that docs/redis.md names."""
    found = re.search("hivepipe's user needs `([^`]+)`", (ROOT / "docs" / "redis.md").read_text())
    assert found
    return found[1]


def test_a_redis_that_refuses_jobs_is_named_and_waited_for(
    sandbox: Sandbox, theirs: TheirRedis
) -> None:
    url = f"redis://hive:pw@127.0.0.1:{theirs.port}/2"
    client = theirs.client()
    client.execute_command(*["ACL", "SETUSER", "hive", "on", ">pw", *acl_rules().split()])
    changes = {
        "read only replica": ("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"),
        "no permissions": ("ACL SETUSER hive -eval", "ACL SETUSER hive +eval"),
        "'blpop' command": ("ACL SETUSER hive -blpop", "ACL SETUSER hive +blpop"),
        "'evalsha' command": ("ACL SETUSER hive -evalsha", "ACL SETUSER hive +evalsha"),
        "'scan' command": ("ACL SETUSER hive -scan", "ACL SETUSER hive +scan"),
        "MULTI": ("ACL SETUSER hive -multi", "ACL SETUSER hive +multi"),
        "access": (  # "can't access ... the keys", "No permissions to access a key"
            "ACL SETUSER hive resetkeys ~rq:*",
            "ACL SETUSER hive ~hivepipe:*",
        ),
        "invalid username-password pair": ("ACL SETUSER hive <pw", "ACL SETUSER hive >pw"),
    }
    for reason, (refusing, accepting) in changes.items():
        client.execute_command(*refusing.split())
        output = sandbox.run("up", "-d", "--redis-url", url, expect=1)
        assert f"redis://hive:***@127.0.0.1:{theirs.port}/2 refuses: " in output
        assert reason in output
        assert "user_script" not in output
        assert "pipeline" not in output
        client.execute_command(*accepting.split())
    sandbox.run("up", "-d", "--redis-url", url)
    for number, (reason, (refusing, accepting)) in enumerate(changes.items()):
        client.execute_command(*refusing.split())
        client.execute_command(*["CLIENT", "KILL", "USER", "hive"])
        sandbox.fire(f"s-{number}")
        report = sandbox.status(expect=1)
        assert report["condition"] == "unhealthy"
        assert reason in str(report["trouble"])
        assert f"{report['trouble']}; events wait on disk" in sandbox.run("doctor", expect=1)
        client.execute_command(*accepting.split())
        eventually(lambda number=number: f"s-{number}" in sandbox.sessions())  # type: ignore[misc]


def test_a_missing_or_old_password_is_named_with_the_command_that_records_another(
    sandbox: Sandbox, theirs: TheirRedis
) -> None:
    address = f"127.0.0.1:{theirs.port}/2"
    theirs.client().config_set("requirepass", "new")
    output = sandbox.run("up", "-d", "--redis-url", f"redis://{address}", expect=1)
    assert f"redis://{address} refuses: it needs a password: run `hivepipe up -d" in output
    output = sandbox.run("up", "-d", "--redis-url", f"redis://:old@{address}", expect=1)
    assert "invalid username-password pair or user is disabled: run `hivepipe up -d" in output
    sandbox.run("up", "-d", "--redis-url", f"redis://:new@{address}")


def test_a_full_redis_is_no_trouble_because_it_finishes_its_jobs(theirs: TheirRedis) -> None:
    url = f"redis://127.0.0.1:{theirs.port}/2"
    claim(url, "/home", "owner")
    theirs.client().config_set("maxmemory", 1)
    assert trouble(url) == ""
    claim(url, "/home", "owner")  # else no worker would start and empty it


def test_an_unusable_address_is_refused_without_its_password(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for url, reason in {
        "redis://:secret@127.0.0.1:1": "does not answer",
        "http://:secret@127.0.0.1": "not an address of a Redis",
        "redis+sentinel://:secret@h/mymaster": "Sentinel and Cluster are not supported",
        "redis://:secret@127.0.0.1:port": "not an address of a Redis",
        "redis://:secret@127.0.0.1/name": "not an address of a Redis",
        "rediss://:secret@h/?decode_responses=yes": "has the option decode_responses",
        "rediss://:secret@h/?ssl_ca_certs=ca.crt": "ssl_ca_certs=ca.crt is not an absolute path",
    }.items():
        output = sandbox.run("up", "-d", "--redis-url", url, expect=1)
        assert reason in output
        assert "secret" not in output
        assert recorded(sandbox, monkeypatch) == {}


def test_only_one_redis_can_be_chosen(sandbox: Sandbox) -> None:
    sandbox.run("up", "--embedded", "--redis-url", "redis://127.0.0.1", expect=64)
    assert "REDIS_URL is not set" in sandbox.run("up", "--use-env-redis", expect=64)


# ---- uninstall
def unfinished(client: "redis.Redis") -> int:
    """Return how many jobs wait or run."""
    found = accounts(client)
    return found["waiting"] + found["running"] + found["retrying"]


def test_uninstall_deletes_only_keys_of_hivepipe(sandbox: Sandbox, theirs: TheirRedis) -> None:
    theirs.client(3).set("mine", "1")
    sandbox.run("up", "-d", "--redis-url", f"redis://127.0.0.1:{theirs.port}/3")
    sandbox.fire("s1")
    eventually(lambda: "s1" in sandbox.sessions())

    def is_uninstalled() -> bool:
        """Uninstall, or run the jobs that ended ones have enqueued, as the error says."""
        os.kill(sandbox.pid("scheduler"), signal.SIGSTOP)  # it would enqueue periodic jobs
        eventually(lambda: not unfinished(theirs.client(3)))
        if sandbox.done("uninstall").returncode == 0:
            return True
        sandbox.run("up", "-d")
        return False

    eventually(is_uninstalled)
    assert theirs.client(3).keys("*") == [b"mine"]
    # A worker may have run the starter, which ends at once because the project is not registered.
    eventually(lambda: sandbox.processes().keys() <= {"redis"})


def test_uninstall_keeps_the_jobs_of_a_program_that_came_later(
    sandbox: Sandbox, theirs: TheirRedis
) -> None:
    sandbox.run("up", "-d", "--redis-url", f"redis://127.0.0.1:{theirs.port}/3")
    sandbox.fire("s1")
    eventually(lambda: "s1" in sandbox.sessions())
    job = Queue("mail", connection=theirs.client(3)).enqueue("app.tasks.send", 1)
    sandbox.run("uninstall", "--purge", "--yes")
    left = {b"rq:queues", b"rq:queue:mail", f"rq:job:{job.id}".encode()}
    assert {key for key in theirs.client(3).keys("*") if theirs.client(3).ttl(key) < 0} == left
    assert theirs.client(3).smembers("rq:queues") == {b"rq:queue:mail"}
    assert theirs.client(3).lrange("rq:queue:mail", 0, -1) == [job.id.encode()]


def test_uninstall_keeps_a_job_that_another_program_only_scheduled(
    sandbox: Sandbox, theirs: TheirRedis
) -> None:
    """RQ lists a queue when its first job is enqueued, not when the job is scheduled."""
    sandbox.run("up", "-d", "--redis-url", f"redis://127.0.0.1:{theirs.port}/3")
    sandbox.fire("s1")
    eventually(lambda: "s1" in sandbox.sessions())
    later = datetime.now(UTC) + timedelta(hours=1)
    job = Scheduler("mail", connection=theirs.client(3)).enqueue_at(later, "app.tasks.send", 1)
    sandbox.run("uninstall", "--purge", "--yes")
    assert theirs.client(3).zrange(SCHEDULED_KEY, 0, -1) == [job.id.encode()]
    assert theirs.client(3).hget(f"rq:job:{job.id}", "origin") == b"mail"


def test_uninstall_keeps_unfinished_jobs_unless_it_purges(
    sandbox: Sandbox, theirs: TheirRedis
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
