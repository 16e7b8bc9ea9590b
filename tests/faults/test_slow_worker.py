"""Slow work: handed on, interrupted, killed and retried, while the writer continues."""

import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hivepipe.errors import NO_MEMORY
from hivepipe.events.job_plan import PRIORITIES, Job, Message
from hivepipe.jobs.envelope import envelope_of, follow_ups
from hivepipe.queue.spool import write_spool
from tests.conftest import ROOT, Process, until
from tests.faults import oracle
from tests.faults.harness import Bench
from tests.outcome import outcome_of

LAUNCHER = Path(__file__).with_name("launch_slow.py")


class Crew:
    """A writer and a slow worker that know `test_work`."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        bench.has_slow_worker = True
        self.folder = bench.home.root / "marks"
        self.folder.mkdir()
        bench.push(oracle.timed([oracle.start(0, "inst-a")]))
        self.writer, self.slow = self._worker("writer"), self._worker("slow")
        self.writer.start()
        self.slow.start()

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-I", str(LAUNCHER), arguments[0], str(self.folder), *arguments[1:]]

    def _worker(self, name: str) -> Process:
        home = self.bench.home
        made = Process(
            self.command(str(ROOT / "workers" / f"{name}.py")),
            home.root / f"{name}.log",
            home.env,
            home.root,
        )
        self.bench.writers.append(made)
        return made

    def message(self, note: str, how: str, settle_s: float = 0) -> Message:
        """Return the job as a hook makes it."""
        payload: dict[str, Any] = {"how": how, "note": note, "settle_s": settle_s}
        parent = envelope_of(
            {
                "v": 1,
                "id": "0" * 32,
                "operation": "none",
                "priority": 8,
                "metadata": {
                    "session": oracle.SESSIONS[0],
                    "instance": "inst-a",
                    "project": self.bench.project,
                },
                "event_time_ns": time.time_ns(),
            }
        )
        return follow_ups(parent, [Job("test_work", payload, "")])[0]

    def ask(self, note: str, how: str = "ok", settle_s: float = 0) -> str:
        message = self.message(note, how, settle_s)
        assert self.bench.send([message]) == 1
        return message.id

    def began(self, note: str) -> list[float]:
        """Return the times at which the work was started."""
        path = self.folder / f"began-{note}"
        lines = path.read_text().splitlines() if path.exists() else []
        return [float(line.split()[0]) for line in lines]

    def noted(self) -> list[str]:
        found = self.bench.home.rows("SELECT prompt FROM prompts ORDER BY prompt")
        return [row["prompt"].removeprefix("noted ") for row in found]

    def status(self, job_id: str) -> str:
        return (self.bench.redis.hget(f"rq:job:{job_id}", "status") or b"").decode()

    def until_noted(self, *notes: str) -> None:
        until(lambda: self.noted() == sorted(notes), f"not noted: {notes}")
        self.bench.settle()

    def go(self) -> None:
        (self.folder / "go").touch()


@pytest.fixture(autouse=True)
def _known() -> Iterator[None]:
    PRIORITIES["test_work"] = 8
    yield
    del PRIORITIES["test_work"]


@pytest.fixture
def crew(bench: Bench) -> Crew:
    return Crew(bench)


def assert_balanced(crew: Crew, jobs: int, dead: int = 0) -> None:
    figures = crew.bench.accounts
    assert figures["accepted"] == jobs
    assert figures["done"] == jobs - dead, crew.bench.dead()
    assert figures["failed"] == dead


def test_slow_work_is_handed_on_and_its_result_is_stored(crew: Crew) -> None:
    job_id = crew.ask("one")
    crew.until_noted("one")
    assert crew.bench.redis.hget(f"rq:job:{job_id}", "origin") == b"slow"
    assert crew.bench.redis.zscore("rq:finished:slow", job_id)
    assert_balanced(crew, 2)  # The start of the session and the work. The result is no job.


def test_writes_do_not_wait_for_slow_work(crew: Crew) -> None:
    crew.ask("long", "hold")
    until(lambda: crew.began("long"), "not begun")
    events = oracle.mix(11, 40).all
    crew.bench.push(events)
    busy = ("high", "medium", "low")
    until(lambda: not any(crew.bench.redis.llen(f"rq:queue:{q}") for q in busy), "writes wait")
    assert crew.noted().count("long") == 0
    crew.go()
    until(lambda: "long" in crew.noted(), "never ended")


def test_slow_work_waits_for_its_settle_time(crew: Crew) -> None:
    at = time.time()
    job_id = crew.ask("later", settle_s=0.7)
    until(lambda: crew.status(job_id) == "scheduled", "not scheduled")
    crew.until_noted("later")
    assert crew.began("later")[0] - at >= 0.7


def test_the_lease_of_slow_work_is_renewed(crew: Crew) -> None:
    job_id = crew.ask("held", "hold")
    until(lambda: crew.began("held"), "not begun")
    member = f"{job_id}:hivepipe"
    crew.bench.redis.zadd("rq:wip:slow", {member: 1})
    ahead = time.time() + 30
    until(lambda: (crew.bench.redis.zscore("rq:wip:slow", member) or 0) > ahead, "not renewed")
    workers = crew.bench.redis.smembers("rq:workers")
    busy = [crew.bench.redis.hget(key, "state") for key in workers]
    assert b"busy" in busy
    crew.go()
    crew.until_noted("held")


def test_stop_signals_go_to_the_main_thread_of_a_worker(crew: Crew) -> None:
    """In another thread they would end no wait of the main one, and a stop would take a second."""
    crew.ask("held", "hold")
    until(lambda: crew.began("held"), "not begun")
    for worker in (crew.writer, crew.slow):
        threads = Path(f"/proc/{worker.pid}/task")
        until(lambda threads=threads: len([*threads.iterdir()]) == 3, f"threads of {worker.log}")
        for each in threads.iterdir():
            blocked = re.search(r"SigBlk:\t(\w+)", (each / "status").read_text())
            assert blocked
            is_blocked = bool(int(blocked[1], 16) >> (signal.SIGTERM - 1) & 1)
            assert is_blocked == (each.name != str(worker.pid))
    crew.go()


def test_a_forgotten_worker_registers_again(crew: Crew) -> None:
    """After a long suspend Redis knows none of the workers."""
    crew.ask("held", "hold")
    until(lambda: crew.began("held"), "not begun")
    names = [name for name in crew.bench.redis.smembers("rq:workers")]
    (slow,) = [name for name in names if b"slow" in (crew.bench.redis.hget(name, "queues") or b"")]
    queues = crew.bench.redis.hget(slow, "queues")
    crew.bench.redis.srem("rq:workers", slow)
    crew.bench.redis.delete(slow)
    until(lambda: slow in crew.bench.redis.smembers("rq:workers"), "not registered")
    assert crew.bench.redis.hget(slow, "queues") == queues
    crew.go()
    crew.until_noted("held")


def test_a_job_stopped_during_its_call_is_queued_again(crew: Crew) -> None:
    """It returns to the head of its queue without a used attempt, and the next worker runs it."""
    job_id = crew.ask("resumed", "hold")
    until(lambda: crew.began("resumed"), "not begun")
    assert crew.slow.end(signal.SIGTERM) == 0
    assert crew.status(job_id) == "queued"
    assert crew.bench.redis.lrange("rq:queue:slow", 0, -1) == [job_id.encode()]
    assert not crew.bench.redis.hget(f"rq:job:{job_id}", "hp_attempts")
    crew.go()
    crew.slow.start()
    crew.until_noted("resumed")


def test_a_kill_during_a_stop_is_not_blamed_on_the_job(crew: Crew) -> None:
    """Four stops that end in a kill fail no job."""
    crew.ask("long", "stubborn")
    box = Path(crew.bench.server.address).with_name("slow.job")
    for times in range(1, 5):
        until(lambda n=times: len(crew.began("long")) == n, "not begun")  # type: ignore[misc]
        crew.slow.signal(signal.SIGTERM)
        until(lambda: not box.read_bytes().strip(b"\0"), "still blamed")
        crew.slow.end(signal.SIGKILL)
        crew.slow.start()
    crew.go()
    crew.until_noted("long")


def test_slow_work_that_kills_its_worker_three_times_fails(crew: Crew) -> None:
    """It fails after the third kill, and the job behind it is done."""
    job_id = crew.ask("poison", "die")
    crew.ask("innocent")
    for _ in range(3):
        until(lambda: not crew.slow.is_running, "it lives")
        crew.slow.start()
    crew.until_noted("innocent")
    assert len(crew.began("poison")) == 3
    assert crew.bench.dead() == {job_id: "killed its worker three times"}
    assert_balanced(crew, 3, dead=1)


CANNOT_SUCCEED = {
    "refuse": ("JobError: this will never do", 1),
    "bug": ("KeyError: 'bad'", 1),
    "wrongtype": ("ResponseError: WRONGTYPE", 1),
    "memory": (NO_MEMORY, 5),
    "missing": ("FileNotFoundError: [Errno 2] No such file: 'missing'", 5),
}


def test_slow_work_that_cannot_succeed_fails_with_its_reason(crew: Crew) -> None:
    ids = {how: crew.ask(how, how) for how in CANNOT_SUCCEED}
    until(lambda: len(crew.bench.dead()) == len(ids), "not dead")
    dead = crew.bench.dead()
    found = {how: (dead[job_id], len(crew.began(how))) for how, job_id in ids.items()}
    assert found == CANNOT_SUCCEED


def test_slow_work_that_failed_once_is_repeated(crew: Crew) -> None:
    crew.ask("second", "once")
    crew.until_noted("second")
    assert len(crew.began("second")) == 2


def test_a_full_disk_or_a_store_in_trouble_kills_no_job(crew: Crew) -> None:
    ids = {how: crew.ask(how, how) for how in ("full", "unreadable", "damaged")}
    for how, job_id in ids.items():
        until(lambda how=how: len(crew.began(how)) > 8, "given up")  # type: ignore[misc]
        assert crew.status(job_id) in ("scheduled", "queued", "started")
    assert crew.bench.dead() == {}


def test_a_second_slow_worker_of_a_home_exits(crew: Crew) -> None:
    until(lambda: crew.bench.redis.scard("rq:workers") == 2, "not registered")
    second = outcome_of(
        [*crew.command(str(ROOT / "workers" / "slow.py"))],
        crew.bench.home.env,
        crew.bench.home.root,
    )
    assert second.returncode == 75


def test_a_stock_worker_executes_slow_work_too(crew: Crew) -> None:
    crew.writer.end()
    crew.slow.end()
    crew.bench.send([crew.message("stock", "ok")])
    outcome_of(
        crew.command("rq", "rq.cli", "worker", "--burst", "-u", crew.bench.server.url, "low"),
        crew.bench.home.env,
        crew.bench.home.root,
        check=True,
    )
    assert crew.noted() == ["stock"]


def test_drain_executes_slow_work_without_redis(crew: Crew) -> None:
    """`drain` executes slow work at once; a job that fails stays in the spool."""
    crew.bench.settle()
    crew.writer.end()
    crew.slow.end()
    spool = crew.bench.home.path / "spool"
    for number, (note, how) in enumerate({"spooled": "ok", "lost": "missing"}.items()):
        write_spool(str(spool), number, [crew.message(note, how)])
    drained = outcome_of(
        crew.command("drain", "hivepipe.cli.main", "drain"),
        crew.bench.home.env,
        crew.bench.home.project,
    )
    assert drained.returncode == 1
    assert "No such file" in drained.stdout + drained.stderr
    assert crew.noted() == ["spooled"]
    (left,) = spool.glob("*.json")
    assert left.name.startswith(f"{1:020d}_")
    shutil.rmtree(spool)
