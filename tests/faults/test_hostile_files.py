"""A pipe, a folder or an unreadable file in place of a file: no process hangs or ends."""

import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from errno import EIO
from pathlib import Path

import pytest

from hivepipe import direct
from hivepipe.archive import scope
from hivepipe.config import config_file
from hivepipe.config.retention import limits_of
from hivepipe.costs.price_table import prices_in_force
from hivepipe.db.database import Database
from hivepipe.errors import HivepipeError
from hivepipe.queue import forget, housekeeping, spooled
from hivepipe.queue.housekeeping import Housekeeper
from hivepipe.queue.spool import write_spool
from hivepipe.redact import configured
from tests.conftest import Home, fire
from tests.faults import oracle
from tests.faults.harness import Bench
from tests.outcome import outcome_of
from tests.payloads import SESSION_START

TORN = 500
LONGEST_SECS = 20  # Opening a pipe would wait for ever.


@pytest.fixture(autouse=True)
def _nobody_waits() -> Iterator[None]:
    def end(*_: object) -> None:
        raise TimeoutError("waited for a pipe")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(LONGEST_SECS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


READERS: dict[str, tuple[str, Callable[[str], object]]] = {
    "settings": ("config.toml", config_file.Config),
    "rules of redaction": ("config.toml", configured.load_redactor),
    "retention": ("config.toml", limits_of),
    "prices": ("prices.toml", prices_in_force),
    "folders that are followed": (scope.FOLLOWED, scope.followed_folders),
    "forgetting": ("spool/1_1.json", lambda h: forget.last_spooled([Path(h, "spool")])),
}


@pytest.mark.parametrize("reader", READERS)
def test_no_reader_waits_for_a_pipe(private_home: Home, reader: str) -> None:
    name, read = READERS[reader]
    path = private_home.path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    with suppress(HivepipeError, OSError):  # Readers that need the file raise an error.
        read(str(private_home.path))


def test_the_doctor_ignores_a_pipe(bench: Bench) -> None:
    log = bench.home.logs / "hook-errors.log"
    log.parent.mkdir(parents=True)
    os.mkfifo(log)
    assert "checks" in bench.command("doctor", expect=None)


def test_a_pipe_in_the_place_of_the_database_is_refused(bench: Bench) -> None:
    bench.home.database.unlink(missing_ok=True)
    os.mkfifo(bench.home.database)
    for command in (["sessions"], ["cleanup"], ["drain"], ["backup", f"{bench.home.root}/b.tgz"]):
        assert "no plain file" in bench.command(*command, expect=1)


def test_a_torn_file_that_cannot_be_set_aside_stops_no_other_event(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """A torn file whose reason file cannot be written stays, and the error is logged only once."""
    spool = bench.home.path / "spool"
    (sent,) = oracle.messages(oracle.timed([oracle.start(0, "inst-a")]), bench.project, bench.swarm)
    keeper = Housekeeper(bench.redis, bench.home.path, bench.server.address)
    write_spool(str(spool), 7, sent)
    for number, make in enumerate((os.mkfifo, os.mkdir)):
        (spool / f"{number}_1.json").write_text("{")
        (spool / "bad").mkdir(exist_ok=True)
        make(spool / "bad" / f"{number}_1.json.reason")
    with caplog.at_level(logging.ERROR):
        assert keeper.drain() == 1
        assert [keeper.drain() for _ in range(5)] == [0] * 5
    assert sorted(path.name for path in spool.glob("*.json")) == ["1_1.json"]
    assert sum("stays" in record.message for record in caplog.records) == 1
    assert (spool / "bad" / "0_1.json.reason").read_text() == "torn, or not JSON\n"


def test_torn_files_hold_up_no_newer_event(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "ASIDES_SECS", 0.01)  # too short for all of them
    spool = bench.home.path / "spool"
    (sent,) = oracle.messages(oracle.timed([oracle.start(0, "inst-a")]), bench.project, bench.swarm)
    keeper = Housekeeper(bench.redis, bench.home.path, bench.server.address)
    spool.mkdir(exist_ok=True)
    for number in range(TORN):
        (spool / f"{number:020d}_1.json").write_text("{")
    write_spool(str(spool), time.time_ns(), sent)
    began = time.monotonic()
    assert keeper.drain() == 1  # older torn files still wait
    assert keeper.has_unreadable_files
    assert time.monotonic() - began < LONGEST_SECS / 4
    while keeper.has_unreadable_files:
        assert keeper.drain() == 0
    assert len(list(spool.glob("bad/*.json"))) == TORN


def test_torn_files_hold_up_no_newer_event_on_the_direct_path(
    private_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = private_home.path / "spool"
    env = private_home.with_env(AUTOSTART="0")
    fire("SessionStart", SESSION_START, env)
    (good,) = spool.glob("*.json")
    for number in range(3):
        (spool / f"{number:020d}_1.json").write_text("{")
    waiting = []

    def look(path: Path, _reason: str) -> None:
        waiting.append(good.exists())
        path.unlink()

    monkeypatch.setattr(direct, "set_aside", look)
    with closing(Database(private_home.database)) as db:
        report = direct.apply_files(str(private_home.path), db, sorted(spool.glob("*.json")))
    assert (report.applied, len(report.set_aside)) == (1, 3)
    assert waiting == [False] * 3


def test_an_event_that_the_disk_does_not_give_now_is_applied_later(
    private_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    fire("SessionStart", SESSION_START, private_home.with_env(AUTOSTART="0"))
    (event,) = private_home.spool

    def fails(*_: object) -> bytes:
        raise OSError(EIO, "Input/output error", str(event))

    with monkeypatch.context() as faulty:
        faulty.setattr(spooled, "read_bytes", fails)
        report = direct.drain(str(private_home.path))
    assert report.failed == {event: "cannot be read: Input/output error"}
    assert (report.applied, report.set_aside) == (0, {})
    assert direct.drain(str(private_home.path)).applied == 1
    assert private_home.count("sessions") == 1


def test_a_spool_that_is_no_folder_stops_no_writer(bench: Bench) -> None:
    """Jobs in Redis are written; the spool is read again when it is a folder."""
    spool = bench.home.path / "spool"
    bench.home.path.mkdir(exist_ok=True)
    spool.write_text("")
    events = oracle.timed([oracle.start(0, "inst-a")])
    bench.push(events)
    writer = bench.plain_writer()
    bench.settle(writer)
    bench.assert_tables(events)
    assert writer.text.count("cannot be read") == 1
    assert writer.end() == 0


@pytest.mark.parametrize(
    "what",
    [
        "logs",
        "logs/writer.log",
        "appendonly.aof",
        "appendonlydir",
        "appendonlydir/appendonly.aof.1",
    ],
)
def test_up_refuses_a_home_with_a_link_or_a_special_file(private_home: Home, what: str) -> None:
    """An adopted home from a clone: the first files that a process opens are checked."""
    path = private_home.path / what
    private_home.path.mkdir(mode=0o700, exist_ok=True)
    path.parent.mkdir(exist_ok=True)
    if what == "logs/writer.log":
        os.mkfifo(path)
    else:
        path.symlink_to(private_home.root)
    done = outcome_of(
        [sys.executable, "-I", "-m", "hivepipe.cli.main", "up", "-d", "--adopt"],
        private_home.env,
        private_home.project,
    )
    assert done.returncode == 1
    assert f"{path} is not a plain file or folder" in done.stderr
