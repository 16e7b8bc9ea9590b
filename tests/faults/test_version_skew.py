"""Two releases at once: hooks and package are upgraded separately while jobs wait."""

import json
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hivepipe.queue.spool import write_spool
from tests.conftest import Process, until
from tests.faults import oracle
from tests.faults.harness import Bench
from tests.faults.oracle import Fired
from tests.faults.releases import NEXT, TODAY, Release
from tests.rounds import SEED

EVENTS = oracle.mix(SEED, 40)
HALF = len(EVENTS.bulk) // 2


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Today's release, installed."""
    return Release(tmp_path_factory.mktemp("today"), TODAY)


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """The next release, installed."""
    return Release(tmp_path_factory.mktemp("later"), NEXT)


def writer_of(bench: Bench, release: Release) -> Process:
    """Start the writer of a release."""
    log = bench.home.root / f"writer-{release.package.parents[3].name}.log"
    made = Process(release.writer, log, bench.home.env, bench.home.root)
    bench.writers.append(made)
    made.start()
    return made


def fire(bench: Bench, release: Release, events: tuple[Fired, ...], at_once: int = 10) -> None:
    bench.hooks = release.hooks
    bench.fire(events, at_once)


def status_of(bench: Bench, release: Release) -> dict[str, object]:
    """Return the status by the command line of a release."""
    bench.forker = release.forker
    return dict(json.loads(bench.command("status", "--json", expect=1)))  # no supervisor runs here


def envelopes(bench: Bench) -> set[int]:
    return {int(bench.redis.hget(key, "hp") or 0) for key in bench.redis.keys("rq:job:*")}


def check(bench: Bench, events: oracle.Mix) -> None:
    """Each row exists once, with any version of hooks and workers."""
    assert bench.dead() == {}
    found = bench.tables()
    for row in found["sessions"]:
        row.pop("note", None)
    wanted = oracle.expected(events.all, bench.project, bench.swarm)
    said = oracle.differences(
        oracle.without_times(wanted), oracle.without_times(oracle.comparable(found))
    )
    assert said == []
    bench.assert_accounts(oracle.job_count(events.all))


def test_old_workers_leave_the_jobs_of_new_hooks(
    bench: Bench, today: Release, later: Release
) -> None:
    """Jobs of the next release wait, block no other job, and appear in `status`."""
    old = writer_of(bench, today)
    fire(bench, today, EVENTS.opening, 1)
    fire(bench, later, EVENTS.bulk[:HALF])
    assert 2 in envelopes(bench)
    bench.server.end(signal.SIGKILL)
    fire(bench, later, EVENTS.bulk[HALF:])
    spooled = len(bench.home.spool)
    assert b'"v":2,"id"' in bench.home.spool[0].read_bytes()
    bench.server.start()
    lone = oracle.timed([oracle.prompt(70_001, oracle.SESSIONS[2], "inst-f")])
    fire(bench, today, lone)
    until(lambda: bench.tables()["prompts"], "the old writer does nothing")
    time.sleep(1.5)
    assert bench.dead() == {}
    assert len(bench.home.spool) == spooled
    assert not list((bench.home.path / "spool").glob("bad/*"))
    assert bench.accounts["waiting"] > 0
    assert bench.accounts["running"] == 0
    assert bench.home.count("prompts") == 2  # one of the opening, and the lone one
    assert "of a newer hivepipe" in old.text
    assert old.text.count("of a newer hivepipe") <= 4, "the log fills up"
    said = status_of(bench, today)
    assert (said["newer_version"], said["healthy"]) == (2, False)
    bench.command("drain", expect=1)
    assert len(bench.home.spool) == spooled
    assert old.end() == 0
    new = writer_of(bench, later)
    bench.settle(new)
    fire(bench, later, EVENTS.closing, 1)
    bench.settle(new)
    check(bench, oracle.Mix(EVENTS.opening, (*EVENTS.bulk, *lone), EVENTS.closing))


def test_a_file_of_the_next_release_does_not_hide_the_ones_behind_it(bench: Bench) -> None:
    """There are more such files than the writer takes in at a time."""
    events = oracle.timed([oracle.start(0, "inst-a"), oracle.edit(1, oracle.SESSIONS[0], "inst-a")])
    sent = oracle.messages(events, bench.project, bench.swarm)
    folder = f"{bench.home.path}/spool"
    for number in range(600):
        write_spool(folder, number, sent[0])
    for path in bench.home.spool:
        path.write_bytes(path.read_bytes().replace(b'{"v":1,"id"', b'{"v":2,"id"'))
    for number, messages in enumerate(sent):
        write_spool(folder, oracle.FIRST_NS + number, messages)
    writer = bench.plain_writer()
    until(lambda: bench.accounts["done"] == oracle.job_count(events), "not found")
    assert len(bench.home.spool) == 600
    assert writer.text.count("of a newer hivepipe") == 1
    bench.assert_tables(events)


@pytest.fixture
def stack(bench: Bench) -> Iterator[Release]:
    """Today's release with a running stack; its test installs another one in its place."""
    today = Release(bench.home.root / "today", TODAY)
    bench.forker = today.forker
    bench.hooks = today.hooks
    bench.up()
    yield today
    bench.down()


def workers(bench: Bench) -> dict[str, int]:
    """Return the pids of the stack's RQ workers and of its scheduler."""
    return {name: pid for name, pid in bench.pids().items() if name != "redis"}


def change(bench: Bench, sql: str, values: dict[str, object] | None = None) -> None:
    connection = sqlite3.connect(bench.home.database, timeout=10)
    with connection:
        connection.execute(sql, values or {})
    connection.close()


def test_all_jobs_are_done_across_an_upgrade(bench: Bench, stack: Release) -> None:
    """The workers notice it and exit, the supervisor starts the new code, and all jobs are done."""
    before = workers(bench)
    bench.fire(EVENTS.opening, 1)
    bench.settle()
    swarm = bench.home.rows("SELECT * FROM swarms")[0]
    change(bench, "DELETE FROM swarms")
    first = next(e for e in EVENTS.bulk if e.payload.get("tool_name") == "Agent")
    bench.fire([first], 1)
    until(bench.dead, "no failed job", 20)
    names = ", ".join(swarm)
    change(bench, f"INSERT INTO swarms ({names}) VALUES (:{', :'.join(swarm)})", swarm)
    # Suspended, so that jobs wait during the upgrade.
    for entry in (before["writer"], before["slow"]):
        os.kill(entry, signal.SIGSTOP)
    bench.fire([e for e in EVENTS.bulk[:HALF] if e is not first], 10)
    waiting = bench.accounts["waiting"]
    assert waiting > 0
    stack.install(NEXT)
    for name in ("writer", "slow", "scheduler"):  # `up` stopped the scheduler
        os.kill(before[name], signal.SIGCONT)
    bench.fire([e for e in EVENTS.bulk[HALF:] if e is not first], 10)
    until(lambda: not set(workers(bench).values()) & set(before.values()), "the old code runs on")
    assert "1 sent back" in bench.command("failed", "retry", "--all")
    bench.settle(secs=60)
    bench.stop_the_clock()
    bench.fire(EVENTS.closing, 1)
    bench.settle()
    check(bench, EVENTS)
    assert bench.home.rows("SELECT note FROM sessions")
    log = (bench.home.path / "logs" / "writer.log").read_text()
    assert "hivepipe was upgraded: exiting" in log
    assert len(list((bench.home.database.parent / "backups").iterdir())) == 1
    os.kill(bench.pids()["scheduler"], signal.SIGCONT)  # `stop_the_clock` suspended it
    bench.command("status")


def test_a_forwarder_exits_after_an_upgrade(bench: Bench) -> None:
    """Otherwise it could not read what the hooks of the new release spool."""
    version = bench.home.root / "version"
    version.write_text("1")
    code = (
        "import sys; from pathlib import Path; from hivepipe.worker import forwarder, own_process\n"
        "own_process.installed = Path(sys.argv[1]).read_text\n"
        "own_process.serve_alone(forwarder.Forwarder)"
    )
    command = [sys.executable, "-I", "-c", code, str(version)]
    forwarder = Process(command, bench.home.root / "forwarder.log", bench.home.env, bench.home.root)
    bench.writers.append(forwarder)
    forwarder.start()
    bell = Path(bench.server.address).with_name("bell.sock")
    until(bell.exists, "it never started")
    version.write_text("2")
    until(lambda: not forwarder.is_running, "it runs on", 20)
    assert not bell.exists()
