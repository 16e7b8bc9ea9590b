"""The status of the uplink process as `team status` reports it."""

import time
from contextlib import closing, nullcontext

import pytest

from hivepipe.cli.team.uplink_lines import show_uplink
from hivepipe.db.changes import is_captured, start_capture
from hivepipe.db.database import Database
from hivepipe.errors import TeamAwayError, TeamError
from hivepipe.home import Place
from hivepipe.stack.runtime_folder import Stack, make_private
from hivepipe.summaries import providers
from hivepipe.team import capture
from hivepipe.team.membership import Membership, write
from hivepipe.team.uplink_status import (
    UplinkStatus,
    read_status,
    uplink_report,
    write_pass_result,
    write_status,
)
from hivepipe.worker import uplink
from hivepipe.worker.archive_passes import RETRY_SECS, ArchivePasses
from tests.conftest import Home, Process, Server, until


@pytest.fixture
def process(private_home: Home, monkeypatch: pytest.MonkeyPatch) -> uplink.Uplink:
    for module in ("membership", "user_file"):
        folder = f"hivepipe.team.{module}.user_config_folder"
        monkeypatch.setattr(folder, lambda: str(private_home.root))
    write(Membership("ann", "desk", "postgresql://h:5432/d", {"*": "everything"}))
    place = Place(str(private_home.project), str(private_home.path), {})
    stack = Stack.of(place)
    make_private(stack.folder)
    private_home.path.mkdir(parents=True, exist_ok=True)
    write_status(place.home, UplinkStatus(state="connected", since=1.0))
    return uplink.Uplink(stack)


def test_an_uplink_that_ends_with_an_error_is_not_reported_as_connected(
    process: uplink.Uplink, private_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise UnicodeEncodeError("latin-1", "x", 0, 1, "not in range")

    stopped: list[bool] = []
    monkeypatch.setattr(process, "_ship", fail)
    monkeypatch.setattr(process._archives, "stop", lambda: stopped.append(True))
    with pytest.raises(UnicodeEncodeError):
        process.run()
    assert stopped == [True]  # the next uplink starts passes of its own
    found = read_status(str(private_home.path))
    assert found.state == "away"
    assert found.error.startswith("UnicodeEncodeError: ")
    assert found.since > 1.0


def test_a_server_that_is_away_for_a_day_ends_no_uplink(
    process: uplink.Uplink, monkeypatch: pytest.MonkeyPatch
) -> None:
    delays: list[float] = []

    def fail() -> None:
        process._is_stopped = len(delays) > 1100
        raise TeamAwayError("no answer")

    monkeypatch.setattr(process, "_ship", fail)
    monkeypatch.setattr(process, "_wait", delays.append)
    monkeypatch.setattr(process, "_write_state", lambda *_: None)  # the status is another test's
    process.run()
    assert len(delays) == 1102
    longest = uplink.AWAY_SECS[1]
    assert longest / 2 <= min(delays[9:]) <= max(delays) <= longest  # they grew
    passes = ArchivePasses()
    for _ in range(1100):
        passes._ended(1, 0.0)
    assert passes._due == RETRY_SECS[1]


@pytest.mark.usefixtures("process")
def test_the_status_counts_the_archives_that_are_not_sent(
    private_home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    write_pass_result(str(private_home.path), left_out=2)
    report = uplink_report(str(private_home.path))
    assert report
    show_uplink(report)
    assert "not sent  2 archives: " in capsys.readouterr().out


def test_an_uplink_that_is_stopped_while_it_connects_ends_without_a_fault(
    process: uplink.Uplink, private_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    Database(private_home.database).close()

    class Connecting(nullcontext[None]):
        mark = left_out = 0

        def __init__(self, *_: object) -> None:
            process.stop(15, None)

        def __enter__(self) -> "Connecting":
            return self

    monkeypatch.setattr(uplink, "Shipment", Connecting)
    monkeypatch.setattr(uplink.membership, "machine_address", lambda: "postgresql://h/d")
    process.run()
    assert read_status(str(private_home.path)).error == ""


def test_a_batch_that_fails_after_each_connection_is_tried_less_and_less_often(
    process: uplink.Uplink, private_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    Database(private_home.database).close()
    delays: list[float] = []

    class Failing(nullcontext[None]):
        mark = left_out = 0

        def __init__(self, *_: object) -> None:
            process._is_stopped = len(delays) > 10

        def __enter__(self) -> "Failing":
            return self

        def ship_next(self) -> bool:
            raise TeamError("git is not installed")

    monkeypatch.setattr(uplink, "Shipment", Failing)
    monkeypatch.setattr(uplink.membership, "machine_address", lambda: "postgresql://h/d")
    monkeypatch.setattr(process, "_wait", delays.append)
    process.run()
    assert delays[-1] >= uplink.AWAY_SECS[1] / 2


def test_credentials_that_others_may_read_are_reported_and_tried_again(
    process: uplink.Uplink, private_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(providers, "user_config_folder", lambda: str(private_home.root))
    path = providers.credentials_path()
    path.write_text("HIVEPIPE_TEAM=x\n")
    path.chmod(0o644)
    monkeypatch.setattr(time, "sleep", lambda _: process.stop(15, None))
    process.run()
    assert f"other users can read {path}" in read_status(str(private_home.path)).error


def test_a_stack_whose_membership_was_removed_meanwhile_captures_no_changes(
    private_home: Home, redis_server: Server, slow_worker: Process
) -> None:
    with closing(Database(private_home.database)) as db:
        start_capture(db)
        write_status(str(private_home.path), UplinkStatus(state="connected"))
        slow_worker.start()
        until(lambda: not is_captured(db), "the end of the capture")


def test_a_capture_without_an_uplink_belongs_to_drain_and_goes_on(private_home: Home) -> None:
    home = str(private_home.path)
    with closing(Database(private_home.database)) as db:
        start_capture(db)
        capture.stop_without_team(home)
        assert is_captured(db)
        write_status(home, UplinkStatus(state="connected"))
        capture.stop_without_team(home)
        assert not is_captured(db)
        start_capture(db)
        capture.stop_without_team(home)
        assert is_captured(db)
