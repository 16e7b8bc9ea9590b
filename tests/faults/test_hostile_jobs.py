"""Jobs that an attacker pushes directly to Redis: none is executed, and nothing breaks."""

import json
import os
import pickle
import resource
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
import redis

from hivepipe.queue.all_jobs import oldest_job_time
from hivepipe.queue.client import job_data
from tests.conftest import QUEUES, Writer, until
from tests.faults import oracle
from tests.faults.harness import Bench
from tests.outcome import outcome_of

SESSION = oracle.SESSIONS[0]
SLOW_QUEUES = ("slow", "llm")
ENVELOPE: dict[str, Any] = {
    "v": 1,
    "id": "f" * 32,
    "seq": "1_0",
    "priority": 5,
    "operation": "record_prompt",
    "payload": {"prompt_id": "p", "prompt": "hostile"},
    "metadata": {"session": SESSION, "instance": "inst-a", "project": "/x", "agent": None},
    "event_time_ns": oracle.FIRST_NS,
    "created_at": "2026-11-21T01:00:00.000Z",
    "retries": 0,
}


class Global:
    """A pickle that runs a command when it is loaded."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.system, (f"touch {self.canary}",))


def enveloped(**more: Any) -> bytes:
    return job_data(json.dumps(oracle.changed({**ENVELOPE, **more})))


def called(function: str, *arguments: Any) -> bytes:
    return pickle.dumps((function, None, arguments, {}))


def nested(depth: int) -> bytes:
    return b"\x80\x05" + b"(" * depth + b"l" * depth + b"."


def hostile_jobs(canary: Path) -> dict[str, tuple[dict[str, Any], str]]:
    """Return name -> unusual fields of the job's hash, and a word of the failure's reason."""
    harm = Global(canary)
    touch = f"touch {canary}"
    return {
        "a global in the data": ({"data": pickle.dumps(harm)}, "pickle names"),
        "a global, compressed": ({"data": zlib.compress(pickle.dumps(harm))}, "pickle names"),
        "a global among the arguments": (
            {"data": called("hivepipe.run_job.run_job", harm)},
            "pickle names",
        ),
        "os.system as the function": ({"data": called("os.system", touch)}, "os.system"),
        "a function of ours": ({"data": called("hivepipe.direct.main", "x")}, "hivepipe.direct"),
        "two arguments": ({"data": called("hivepipe.run_job.run_job", "{}", "{}")}, "one call"),
        "an unknown operation": ({"data": enveloped(operation="drop_tables")}, "drop_tables"),
        "a zlib bomb": ({"data": zlib.compress(bytes(200_000_000), 9)}, "inflates"),
        "not a pickle": ({"data": b"\x00rubbish"}, "not a pickle"),
        "half a pickle": ({"data": enveloped()[:-40]}, "not a pickle"),
        "half a zlib stream": ({"data": zlib.compress(enveloped())[:-20]}, "not a pickle"),
        "no data": ({"data": b""}, "not a pickle"),
        "a deep pickle": ({"data": nested(300_000)}, ""),
        "no JSON": ({"data": job_data("{")}, "JSON"),
        "deep JSON": ({"data": job_data("[" * 100_000)}, "JSON"),
        "a list": ({"data": job_data("[]")}, "object"),
        "a version to come, marked 1": ({"data": enveloped(v=2)}, "version"),
        "an id that is a number": ({"data": enveloped(id=5)}, "type"),
        "a payload that is a list": ({"data": enveloped(payload=[1])}, "object"),
        "a session that is an object": (
            {"data": enveloped(metadata={"session": {"a": 1}})},
            "type",
        ),
        "a time beyond all years": ({"data": enveloped(event_time_ns=1 << 70)}, ""),
        "an agent id that is a number": (
            {"data": enveloped(operation="start_agent", payload={"agent_id": 5, "type": "x"})},
            "agent_id",
        ),
        "a number too large for the store": (
            {
                "data": enveloped(
                    operation="update_instance",
                    payload={"op_count": (1 << 64) - 1, "checkpoint_count": 1},
                )
            },
            "",
        ),
        "a session like a path": (
            {"data": enveloped(metadata={**ENVELOPE["metadata"], "session": "../../etc/x"})},
            "id",
        ),
        "an instance like a path": (
            {"data": enveloped(metadata={**ENVELOPE["metadata"], "instance": "../../etc/x"})},
            "id",
        ),
        "no marker": ({"data": enveloped(), "hp": None}, "marker"),
        "a marker that is no number": ({"data": enveloped(), "hp": "x"}, ""),
        "attempts that are no number": ({"data": b"rubbish", "hp_attempts": "x"}, ""),
        "attempts beyond all numbers": (
            {
                "data": enveloped(
                    operation="update_instance",
                    metadata={**ENVELOPE["metadata"], "session": "nobodys"},
                ),
                "hp_attempts": "inf",
            },
            "max retries",
        ),
        "deaths that are no number": ({"data": b"rubbish", "hp_deaths": "x"}, ""),
    }


def plant(
    connection: redis.Redis,
    fields: dict[str, Any],
    job_id: str | bytes = "evil",
    queue: str = "medium",
) -> None:
    """Push a job as RQ does, with these fields; None leaves a field out."""
    usual = {
        "created_at": "2026-11-21T01:00:00.000000Z",
        "enqueued_at": "2026-11-21T01:00:00.000000Z",
        "origin": queue,
        "status": "queued",
        "description": "hostile",
        "timeout": "60",
        "hp": "1",
    }
    kept = {key: value for key, value in {**usual, **fields}.items() if value is not None}
    name = job_id if isinstance(job_id, bytes) else job_id.encode()
    connection.hset(b"rq:job:" + name, mapping=kept)
    connection.rpush(f"rq:queue:{queue}", job_id)
    connection.rpush("hivepipe:bell", 1)


class OrdinaryJobs:
    """Ordinary jobs before and after a hostile one, and a writer."""

    def __init__(self, bench: Bench, edits: int = 6) -> None:
        self.bench = bench
        made = [oracle.edit(n, SESSION, "inst-a") for n in range(edits)]
        self.events = oracle.timed([oracle.start(0, "inst-a"), *made])
        self.sent = oracle.messages(self.events, bench.project, bench.swarm)
        self.writer = Writer(bench.home)
        bench.writers.append(self.writer)

    def before(self) -> None:
        for messages in self.sent[:4]:
            self.bench.send(messages)

    def after(self) -> None:
        for messages in self.sent[4:]:
            self.bench.send(messages)

    def check_ordinary(self) -> None:
        """The first writer applies all ordinary jobs and keeps running."""
        jobs = oracle.job_count(self.events)
        self.writer.start()

        def are_done() -> bool:
            if not self.writer.is_running:
                pytest.fail(f"the writer died: {self.writer.text[-1500:]}")
            return self.bench.accounts["done"] >= jobs

        until(are_done, "ordinary jobs wait", 15)
        self.bench.assert_tables(self.events)
        assert self.bench.applied() == jobs


def test_the_meta_of_a_job_is_never_unpickled(bench: Bench) -> None:
    """The meta is never read: the job itself is ordinary and is executed."""
    canary = bench.home.root / "canary"
    ordinary = OrdinaryJobs(bench)
    ordinary.before()
    meta = zlib.compress(pickle.dumps(Global(canary)))
    plant(bench.redis, {"data": enveloped(), "meta": meta})
    ordinary.after()
    ordinary.writer.start()
    bench.settle(ordinary.writer, 10)
    assert not canary.exists()
    assert bench.dead() == {}
    assert [row["prompt"] for row in bench.tables()["prompts"]] == ["hostile"]
    pickle.loads(zlib.decompress(meta))
    assert canary.exists(), "the pickle runs no command"


def test_many_newer_envelopes_keep_their_order(bench: Bench) -> None:
    ordinary = OrdinaryJobs(bench)
    for number in range(300):
        plant(bench.redis, {"data": enveloped(v=2), "hp": "2"}, f"new{number:03d}")
    ordinary.before()
    ordinary.after()
    ordinary.check_ordinary()
    until(lambda: "jobs of a newer hivepipe wait" in ordinary.writer.text, "no warning", 5)
    waiting = [job.decode() for job in bench.redis.lrange("rq:queue:medium", 0, -1)]
    assert waiting == [f"new{number:03d}" for number in range(300)]
    assert {bench.redis.hget(f"rq:job:{job}", "status") for job in waiting} == {b"queued"}
    assert bench.dead() == {}


def test_jobs_with_strange_ids_fail_and_stop_no_other_job(bench: Bench) -> None:
    ids = ("../../etc/passwd", "a:b", "a b", "x" * 5000, b"\xff\xfe")
    ordinary = OrdinaryJobs(bench)
    ordinary.before()
    for job_id in ids:
        plant(bench.redis, {"data": b"rubbish"}, job_id)
    ordinary.after()
    ordinary.check_ordinary()
    bench.settle(ordinary.writer, 10)
    dead = bench.dead()
    assert all("pickle" in dead[job_id] for job_id in ids if isinstance(job_id, str))


def test_jobs_without_their_hash_stop_no_other_job(bench: Bench) -> None:
    """A key of another type, or no key, under the id of a job affects no other job."""
    ordinary = OrdinaryJobs(bench)
    ordinary.before()
    for state in ("evil", "due"):
        bench.redis.set(f"rq:job:{state}-text", "x")
        bench.redis.rpush(f"rq:job:{state}-list", "x")
    for kind in ("text", "list", "missing"):
        bench.redis.rpush("rq:queue:high", f"evil-{kind}")
        bench.redis.zadd("rq:scheduled:high", {f"due-{kind}": 1})
    ordinary.after()
    ordinary.check_ordinary()
    assert ordinary.writer.is_running


def test_the_oldest_job_is_found_among_broken_ones(bench: Bench) -> None:
    bench.redis.set("rq:job:evil", "x")
    bench.redis.hset("rq:job:odd", "created_at", b"\xff")
    plant(bench.redis, {"data": b"rubbish"}, "old")
    assert oldest_job_time(bench.redis, bench.home.path / "spool") == "2026-11-21T01:00:00.000000Z"


def test_a_job_of_a_hundred_megabytes_fails(bench: Bench) -> None:
    """The job is larger than any of hivepipe's: it fails, and writer and Redis keep running."""
    ordinary = OrdinaryJobs(bench)
    ordinary.before()
    plant(bench.redis, {"data": bytes(100_000_000)})
    ordinary.after()
    ordinary.check_ordinary()
    bench.settle(ordinary.writer, 20)
    assert "100000000 bytes" in bench.dead()["evil"]
    assert bench.server.is_running


def show_all(bench: Bench, ids: list[str]) -> None:
    """Run `failed show` for each job in one process."""
    code = """if True:
        import sys
        from hivepipe.cli.main import main
        for job_id in sys.argv[1:]:
            main(["failed", "show", job_id], standalone_mode=False)
    """
    said = outcome_of(
        [sys.executable, "-I", "-c", code, *ids],
        bench.home.env,
        bench.home.project,
        timeout=120,
        check=True,
    )
    assert said.stdout.count("`hivepipe failed retry ") == len(ids)


def test_all_hostile_jobs_at_once_in_every_queue_fail(bench: Bench) -> None:
    """With all readers and workers running nothing is executed or breaks; each job fails.

    Each is in a queue of the writer, and in one of the two slow workers, which have one code.
    """
    canary = bench.home.root / "canary"
    hostile = hostile_jobs(canary)
    ordinary = OrdinaryJobs(bench)
    bench.redis.set("rq:job:no-job", "x")  # the first job of its queue, whose age is asked for
    bench.redis.rpush("rq:queue:medium", "no-job")
    bench.redis.rpush("rq:queue:low", b"\xff\xfe")
    ordinary.before()
    for number, (fields, _) in enumerate(hostile.values()):
        for queue in (QUEUES[number % 3], SLOW_QUEUES[number % 2]):
            plant(bench.redis, fields, f"evil-{queue}-{number}", queue)
    ordinary.after()
    waiting = 2 * len(hostile)
    said = json.loads(bench.command("status", "--json", expect=1))
    assert sum(said["queues"].values()) == waiting + oracle.job_count(ordinary.events) + 2
    assert "no failed jobs" in bench.command("failed", "list")
    bench.command("rq", "--", "info")
    workers = [ordinary.writer, *(bench.worker(name) for name in ("slow", "llm"))]
    ordinary.check_ordinary()
    bench.settle(ordinary.writer, 30)
    until(lambda: len(bench.dead()) == waiting, "not all failed")  # those of slow and llm too
    words = [word for _, word in hostile.values()]
    for job_id, reason in bench.dead().items():
        _, queue, number = job_id.split("-")
        has_no_handler = queue in SLOW_QUEUES and "no handler for operation" in reason
        assert words[int(number)] in reason or has_no_handler, job_id
        assert reason != "killed its worker three times", job_id
    assert all(worker.is_running for worker in workers)
    said = json.loads(bench.command("status", "--json"))
    assert said["accounts"]["failed"] == waiting
    listed = json.loads(bench.command("failed", "list", "--json"))["failed"]
    assert len(listed) == waiting
    show_all(bench, [letter["id"] for letter in listed])
    bench.command("rq", "--", "info")
    assert f"{waiting} discarded" in bench.command("failed", "discard", "--all", "--yes")
    assert not canary.exists()
    for worker in workers:
        assert worker.end() == 0, worker.text[-3000:]
    bench.assert_tables(ordinary.events)


def test_a_small_pickle_takes_little_memory() -> None:
    """LONG_BINPUT with a huge index makes C's unpickler allocate a table of that size."""
    index = 1 << 25
    pickled = b"\x80\x02K\x01r" + index.to_bytes(4, "little") + b"."
    code = (
        "import resource, sys\n"
        "from hivepipe.errors import BadEnvelopeError\n"
        "from hivepipe.queue.job_data import envelope_text\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: envelope_text(bytes.fromhex(sys.argv[1]))\n"
        "except BadEnvelopeError: pass\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    limit = 4 << 30
    said = subprocess.run(
        [sys.executable, "-I", "-c", code, pickled.hex()],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert int(said.stdout) < 50_000, f"{len(pickled)} bytes cost {int(said.stdout) // 1000} MB"
