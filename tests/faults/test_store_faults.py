"""The database is locked, read-only or full, or lacks a row: each case decides which jobs wait."""

import resource
import threading
import time
from pathlib import Path

import pytest

from tests.conftest import Process, Writer, until
from tests.faults import oracle
from tests.faults.harness import Bench, shell
from tests.faults.injections.disks import mounted, run
from tests.faults.oracle import Fired

SESSION = oracle.SESSIONS[0]
SMALL_BYTES = 36_000  # The shared memory of a WAL fits into this limit, a batch does not.
START = oracle.start(0, "inst-a")


def begun(bench: Bench, *more: Fired) -> tuple[Writer, tuple[Fired, ...]]:
    """Start a writer and apply the session's start; return all events."""
    events = oracle.timed([START, *more])
    writer = bench.plain_writer()
    bench.push(events[:1])
    bench.settle(writer)
    return writer, events


def push_after(bench: Bench, events: tuple[Fired, ...]) -> None:
    """Push all events but the first, which `begun` pushed."""
    first = len(oracle.messages(events[:1], bench.project, bench.swarm))
    for sent in oracle.messages(events, bench.project, bench.swarm)[first:]:
        bench.send(sent)


def origins(bench: Bench, operation: str) -> set[tuple[int, str]]:
    """Return attempts and queues of the jobs of an operation."""
    found = set()
    for key in bench.redis.keys("rq:job:*"):
        said, origin, attempts = bench.redis.hmget(key, "description", "origin", "hp_attempts")
        if said and said.decode().startswith(operation):
            found.add((int(attempts or 0), origin.decode()))
    return found


def test_a_lock_does_not_use_up_the_attempts_that_wait_for_a_parent(bench: Bench) -> None:
    writer, _ = begun(bench)
    session = oracle.SESSIONS[1]
    events = oracle.timed([oracle.start(1, "inst-b"), oracle.stop(1, session, "inst-b")])
    _, stop = oracle.messages(events, bench.project, bench.swarm)  # its session is never stored
    with shell(bench) as other:
        other.execute("BEGIN IMMEDIATE")
        bench.send(stop)
        until(lambda: max(origins(bench, "pause_session"))[0] > 3, "not locked")
    bench.settle(writer)
    assert bench.dead()
    for id in bench.dead():
        attempts, failures = bench.redis.hmget(f"rq:job:{id}", "hp_attempts", "hp_failures")
        assert (int(attempts) > 6, int(failures)) == (True, 3)


def test_jobs_survive_a_lock(bench: Bench) -> None:
    """Each failure lowers a job's priority, and none is final, however often the job is retried."""
    mix = oracle.mix(7, 60)
    events = mix.all
    writer = bench.plain_writer()
    bench.push(oracle.timed(mix.opening))
    bench.settle(writer)
    sent = oracle.messages(events, bench.project, bench.swarm)[len(mix.opening) :]
    seen: set[tuple[int, str]] = set()
    with shell(bench) as other:
        other.execute("BEGIN IMMEDIATE")
        for messages in sent[: len(sent) // 2]:
            bench.send(messages)
        end = time.monotonic() + 30
        while max(seen, default=(0, ""))[0] < 4:
            seen |= origins(bench, "insert_agent")
            assert time.monotonic() < end, writer.text
        for messages in sent[len(sent) // 2 :]:
            bench.send(messages)
        assert bench.home.count("agents") == 0
        other.execute("COMMIT")
    early = {(0, "medium"), (1, "medium")}
    late = seen - early  # a busy machine may miss an attempt
    assert (max(late)[0] >= 4, {queue for _, queue in late}) == (True, {"low"})
    assert "Database busy, will retry: insert_agent" in writer.text
    bench.settle(writer, 15)
    until(lambda: "Completed: insert_agent (age: " in writer.text, "it is not logged")
    assert bench.dead() == {}
    bench.assert_tables(events)
    bench.assert_accounts(oracle.job_count(events))


def test_events_of_a_deleted_session_have_no_effect(bench: Bench) -> None:
    """Later checkpoints change no row: they are counted and logged, and no job fails."""
    edits = [oracle.edit(n, SESSION, "inst-a") for n in range(3)]
    writer, events = begun(bench, *edits, oracle.stop(9, SESSION, "inst-a"))
    with shell(bench) as other:
        other.execute("PRAGMA foreign_keys=ON")
        assert other.execute("DELETE FROM sessions").rowcount == 1
    push_after(bench, events)
    bench.settle(writer)
    assert bench.dead() == {}
    assert bench.home.count("sessions") == 0
    counters = {r["name"]: r["value"] for r in bench.tables()["counters"]}
    assert counters["zero_rows:update_checkpoint"] == 4
    assert counters["zero_rows:update_instance"] == 3
    assert counters["zero_rows:pause_session"] == 1
    logs = bench.tables()["session_logs"]
    assert len(logs) == 3, "history outlives the session"
    warned = [line for line in writer.text.splitlines() if "WARNING" in line]
    assert any("update_checkpoint" in line and SESSION in line for line in warned)
    bench.assert_accounts(oracle.job_count(events))


def test_a_repeated_start_does_not_restore_a_deleted_session(bench: Bench) -> None:
    """Only `applied` shows that the start already had its effect; a new start would create it."""
    writer, events = begun(bench)
    with shell(bench) as other:
        assert other.execute("DELETE FROM sessions").rowcount == 1
    (sent,) = oracle.messages(events, bench.project, bench.swarm)
    bench.redis.delete(*[f"rq:job:{message.id}" for message in sent])
    assert bench.send(sent) == len(sent)
    bench.settle(writer)
    assert bench.home.count("sessions") == 0


def writer_on(bench: Bench, folder: Path) -> Writer:
    """Return a writer whose database is in a folder."""
    made = Writer(bench.home)
    env = bench.home.with_env(DB=str(folder / "hive.db"))
    Process.__init__(made, made.command, made.log, env, bench.home.root)
    bench.writers.append(made)
    return made


def looking_at(bench: Bench, folder: Path) -> None:
    link = bench.home.database
    link.symlink_to(folder / "hive.db")


def test_jobs_wait_while_the_database_is_read_only(bench: Bench) -> None:
    """Nothing is claimed and no job fails; when the database is writable all jobs are applied."""
    events = oracle.timed([START, *(oracle.edit(n, SESSION, "inst-a") for n in range(20))])
    folder = bench.home.root / "db"
    writer = writer_on(bench, folder)
    with mounted(folder, "-t", "tmpfs", "-o", "size=20m", "tmpfs"):
        writer.start()
        bench.push(events[:1])
        bench.settle(writer)
        assert writer.end() == 0
        assert run("mount", "-o", "remount,ro", str(folder))
        with pytest.raises(OSError, match="Read-only"):
            (folder / "probe").touch()
        writer.start()
        push_after(bench, events)
        until(lambda: "ead-only" in writer.text, "the writer says nothing")
        assert writer.is_running, writer.text
        assert bench.dead() == {}
        figures = bench.accounts
        assert figures["waiting"] + figures["retrying"] == oracle.job_count(events) - 1
        assert figures["running"] == 0
        assert run("mount", "-o", "remount,rw", str(folder))
        looking_at(bench, folder)
        bench.settle(writer, 20)
        bench.assert_tables(events)
        bench.assert_accounts(oracle.job_count(events))
        assert writer.end() == 0
        bench.home.database.unlink()


def many_edits(count: int) -> tuple[Fired, ...]:
    return oracle.timed([START, *(oracle.edit(n, SESSION, "inst-a") for n in range(count))])


def wait_for_failures(bench: Bench, writer: Writer, accepted: int) -> None:
    until(lambda: bench.accounts["accepted"] == accepted, "not all accepted")
    until(lambda: "will retry" in writer.text, f"never failed: {bench.accounts}", 20)
    time.sleep(1)
    assert writer.is_running, writer.text[-2000:]
    assert bench.dead() == {}


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="Linux alone can limit others")
def test_jobs_wait_while_the_database_cannot_grow(bench: Bench) -> None:
    """The same without a mount: the kernel limits the size of the database's files."""
    events = many_edits(300)
    writer, _ = begun(bench)
    wal = bench.home.database.with_name("hive.db-wal")
    limit = max(wal.stat().st_size, bench.home.database.stat().st_size) + 8192
    free = resource.prlimit(writer.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(writer.pid, resource.RLIMIT_FSIZE, (limit, free[1]))
    pushed = threading.Thread(target=push_after, args=(bench, events))
    pushed.start()
    pushed.join()
    wait_for_failures(bench, writer, oracle.job_count(events))
    resource.prlimit(writer.pid, resource.RLIMIT_FSIZE, free)
    bench.settle(writer, 60)
    bench.assert_tables(events)
    bench.assert_accounts(oracle.job_count(events))


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="Linux alone can limit others")
def test_store_trouble_dates_from_the_first_failure(bench: Bench) -> None:
    """The database can be opened but not written: the trouble dates from the first failure."""
    events = many_edits(3)
    writer, _ = begun(bench)
    free = resource.prlimit(writer.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(writer.pid, resource.RLIMIT_FSIZE, (SMALL_BYTES, free[1]))
    push_after(bench, events)
    since = until(lambda: bench.redis.hget("hivepipe:trouble", "since"), "no word of it")
    until(lambda: max(origins(bench, "insert_log"))[0] >= 5, "not tried again")
    assert bench.redis.hget("hivepipe:trouble", "since") == since
    resource.prlimit(writer.pid, resource.RLIMIT_FSIZE, free)
    bench.settle(writer)
    assert not bench.redis.exists("hivepipe:trouble")
    bench.assert_tables(events)
