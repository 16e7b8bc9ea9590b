"""A long `archive sweep` or `backup` says on a terminal how far it is."""

from collections.abc import Callable

import pytest

from hivepipe.cli import progress
from hivepipe.cli.archive import _so_far
from hivepipe.cli.backup import _Packed
from hivepipe.operations.sweep import SweepResult

Clock = Callable[[float], None]


@pytest.fixture(params=[True, False], ids=["terminal", "pipe"])
def is_terminal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(progress, "is_terminal", lambda *, err: request.param)
    return bool(request.param)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return lambda secs: now.__setitem__(0, secs)


def test_a_sweep_tells_every_ten_seconds_on_a_terminal(
    is_terminal: bool, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    told = progress.Progress()
    for number in range(5):
        clock(number * 6.0)
        result = SweepResult(taken=number * 1000, unchanged=number)
        told.tell(lambda result=result: _so_far(result))  # type: ignore[misc]
    lines = [
        "2,000 of 2,002 transcripts archived so far",
        "4,000 of 4,004 transcripts archived so far",
    ]
    assert capsys.readouterr().err.splitlines() == (lines if is_terminal else [])


def test_a_backup_tells_every_ten_seconds_on_a_terminal(
    is_terminal: bool, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = _Packed()
    for number in range(5):
        clock(number * 6.0)
        packed.add(1_000_000)
    lines = ["3 MB packed so far", "5 MB packed so far"]
    assert capsys.readouterr().err.splitlines() == (lines if is_terminal else [])
