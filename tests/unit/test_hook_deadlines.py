"""A hook's deadlines end a hook that hangs, not one that only waits for a processor."""

import posix
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from hivepipe.hook import intake, intake_server, run, stdin


class EndedError(Exception):
    """Raised where the process would end."""


class Kernel:
    """A fake of the hook's timer, of its exit, and of the time it has waited for a processor."""

    def __init__(self) -> None:
        self.waited_ns = 0
        self.timers: list[float] = []
        self.kept: list[str] = []

    def setitimer(self, _which: int, secs: float, _again: float = 0) -> None:
        self.timers.append(secs)

    def exit(self, _code: int) -> None:
        raise EndedError


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel()
    monkeypatch.setattr(run, "setitimer", made.setitimer)
    monkeypatch.setattr(run, "signal", lambda *_: None)
    monkeypatch.setattr(run, "_gains", 0)
    monkeypatch.setattr(run, "_waited_ns", 0)
    monkeypatch.setattr(run, "_keep_after", lambda _name, why: made.kept.append(why))
    monkeypatch.setattr(run.posix, "_exit", made.exit)
    monkeypatch.setattr(run.posix, "read", lambda *_: f"5 {made.waited_ns} 7".encode())
    return made


def test_a_hook_with_a_processor_is_stopped_at_its_deadline(kernel: Kernel) -> None:
    with pytest.raises(EndedError):
        run._stop_hard()
    assert kernel.kept == ["out of time"]


def test_a_hook_that_waits_for_a_processor_is_extended_three_times(kernel: Kernel) -> None:
    for _ in range(run.MOST_GAINS - 1):
        kernel.waited_ns += 300_000_000
        run._stop_hard()
    assert kernel.timers == [pytest.approx(0.4)] * 3
    kernel.waited_ns += 300_000_000
    with pytest.raises(EndedError):
        run._stop_hard()
    kernel.waited_ns += 300_000_000
    run._stop_at_last()  # the last extension is for writing to disk
    with pytest.raises(EndedError):
        run._stop_at_last()


def test_waiting_while_reading_does_not_shorten_the_later_deadline(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read() -> stdin.Input:
        for _ in range(2):
            kernel.waited_ns += 300_000_000
            run._stop_waiting()
        return stdin.Input(b"{}")

    monkeypatch.setattr(run.stdin, "read_event", read)
    run._read()
    assert kernel.timers[-1] == pytest.approx(run.HARD_STOP_SECS + 2 * stdin.WAIT_SECS, abs=0.3)


class Intake:
    """The intake's handling of one event, with the kernel's timer and the event's work replaced."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.failures: list[Exception] = []
        self.work: Callable[[], object] = lambda: None
        self.cancel: Callable[[], object] = lambda: None
        for name, new in (
            ("setitimer", lambda _which, secs: secs or self.cancel()),
            ("_take_in_as_sender", lambda _exchange: self.work() or intake.NOTHING),
            ("_log_failure", lambda _frame, error: self.failures.append(error)),
        ):
            monkeypatch.setattr(intake_server, name, new)
        monkeypatch.setattr(intake_server.posix, "chdir", lambda _path: None)

    def take_in(self) -> intake.Taken | None:
        exchange = SimpleNamespace(listed=SimpleNamespace(forget=lambda: None), frame=None)
        return intake_server._take_in(cast("intake_server.Exchange", exchange))


def test_an_alarm_ends_the_event_and_not_the_intake(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel may send it before the timer is cancelled, and Python delivers it afterwards."""
    server = Intake(monkeypatch)
    server.cancel = intake_server._out_of_time
    assert server.take_in() == intake.NOTHING
    server.work = lambda: posix.stat("/missing")
    assert server.take_in() is None
    server.cancel, server.work = lambda: None, intake_server._out_of_time
    assert server.take_in() is None
    errors = [type(error) for error in server.failures]
    assert errors == [FileNotFoundError, intake_server.OutOfTimeError]
