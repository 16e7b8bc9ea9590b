"""The notice about events on disk: for late events only, once a day."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hivepipe.hook import waiting_notice as module
from hivepipe.hook.waiting_notice import DAY_SECS, LATE_SECS, LOOK_SECS, notice

NOON = time.mktime((2026, 11, 21, 12, 0, 0, 0, 0, -1))  # a Saturday
At = Callable[..., str]


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> At:
    """Return a function that gives the notice at a number of seconds after noon."""

    class Clock:
        now = NOON
        localtime = staticmethod(time.localtime)
        strftime = staticmethod(time.strftime)

        @classmethod
        def time(cls) -> float:
            return cls.now

    monkeypatch.setattr(module, "time", Clock)

    def notice_at(secs: float, home: Path = tmp_path) -> str:
        Clock.now = NOON + secs
        return notice(str(home), str(tmp_path / "run"))

    return notice_at


def spool(home: Path, secs: float, pid: int = 1) -> Path:
    (home / "spool").mkdir(exist_ok=True)
    path = home / "spool" / f"{int((NOON + secs) * 1e9):020d}_{pid}.json"
    path.touch()
    return path


def test_an_empty_or_missing_spool_gives_no_notice(at: At, tmp_path: Path) -> None:
    assert at(0) == ""
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "bad").mkdir()
    (tmp_path / "spool" / "x.json").touch()
    assert at(0) == ""
    assert not (tmp_path / "notice").exists()


@pytest.mark.parametrize(
    ("secs", "words"),
    [
        ((-3600,), "1 event waits on disk since 11:00"),
        ((-DAY_SECS,), "1 event waits on disk since Friday"),
        ((-5.9 * DAY_SECS,), "1 event waits on disk since Sunday"),
        ((-7 * DAY_SECS,), "1 event waits on disk since 14 November"),
        ((-4 * DAY_SECS, -60, -5), "3 events wait on disk since Tuesday"),
    ],
)
def test_late_events_are_announced_with_their_number_and_age(
    at: At, tmp_path: Path, secs: tuple[float, ...], words: str
) -> None:
    for pid, each in enumerate(secs):
        spool(tmp_path, each, pid)
    assert at(0) == f"hivepipe: {words}; run `hivepipe doctor`"


def test_a_notice_is_given_once_a_day_and_not_for_recent_events(at: At, tmp_path: Path) -> None:
    spool(tmp_path, 0)
    assert at(LATE_SECS - 1) == ""
    spool(tmp_path, -LATE_SECS)
    assert at(LOOK_SECS + LATE_SECS)
    found = [at(LATE_SECS + LOOK_SECS + secs) for secs in (1, LOOK_SECS, DAY_SECS - 1, DAY_SECS)]
    assert [bool(text) for text in found] == [False, False, False, True]


def test_the_spool_is_listed_every_ten_minutes_at_most(
    at: At, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool(tmp_path, 0)
    assert at(1) == ""
    monkeypatch.setattr(module.posix, "listdir", lambda _path: pytest.fail("looked"))
    assert at(LOOK_SECS) == ""
    monkeypatch.undo()


def test_a_clock_that_is_set_back_suppresses_no_notice(at: At, tmp_path: Path) -> None:
    spool(tmp_path, -LATE_SECS)
    assert at(30 * DAY_SECS)
    assert at(0)


@pytest.mark.parametrize("text", ["", "x", "1 2 3", "nan x", "\0"])
def test_a_damaged_notice_file_is_ignored(at: At, tmp_path: Path, text: str) -> None:
    spool(tmp_path, -LATE_SECS)
    (tmp_path / "notice").write_text(text)
    assert at(0)


def test_events_in_memory_are_announced_too_and_once_a_day(at: At, tmp_path: Path) -> None:
    """A home that takes no file cannot keep the time of the notice either."""
    runtime = tmp_path / "run"
    runtime.mkdir()
    spool(runtime, -3600)
    home = tmp_path / "home"
    home.touch()
    assert "1 event waits outside the home since 11:00" in at(0, home)
    assert at(DAY_SECS - 1, home) == ""
    assert at(DAY_SECS, home)


def test_a_notice_whose_time_nothing_takes_is_repeated(at: At, tmp_path: Path) -> None:
    spool(tmp_path, -3600)
    (tmp_path / "notice").mkdir()
    assert at(0)
    assert at(1)
