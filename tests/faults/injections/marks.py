"""Where a process is at this moment, readable after its kill -9; and where it is to linger.

phase.<pid>   of each process, the step it has come to
aim           `<step>`: whoever comes to this step stays there for a while
"""

import os
import time
from pathlib import Path

from hivepipe.worker.crash_marker import BlackBox

LINGER_SECS = 0.03  # a step of microseconds is never hit by chance


class Marks:
    """A process' own."""

    def __init__(self, folder: Path) -> None:
        self._phase = BlackBox(str(folder / f"phase.{os.getpid()}"))
        self._aim = BlackBox(str(folder / "aim"))

    def here(self, step: str) -> None:
        """The process has come to this step."""
        self._phase.record(step)
        if step and self._aim.read() == step:
            time.sleep(LINGER_SECS)


def use_clock(folder: Path, role: str) -> None:
    """Let this process alone see the time that the test says."""
    told, seen = BlackBox(str(folder / "clock")), BlackBox(str(folder / f"clock.{os.getpid()}"))
    real, real_ns = time.time, time.time_ns

    def wrong_secs() -> float:
        whose, _, secs = told.read().partition(" ")
        if whose != role:
            return 0.0
        seen.record(secs)
        return float(secs)

    time.time = lambda: real() + wrong_secs()
    time.time_ns = lambda: real_ns() + int(wrong_secs() * 1e9)


class Watch:
    """The test's view of them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self._aim = BlackBox(str(folder / "aim"))

    def aim(self, step: str) -> None:
        """Let processes linger there; "": nowhere."""
        self._aim.record(step)

    def set_clock(self, role: str, secs: float) -> None:
        """Put the clock of a process wrong; 0: right again."""
        BlackBox(str(self.folder / "clock")).record(f"{role} {secs}")

    def clock(self, pid: int) -> float:
        """By how much the process saw it wrong last."""
        return float(BlackBox(str(self.folder / f"clock.{pid}")).read() or 0)

    def phase(self, pid: int) -> str:
        """Where the process is, or was when it died."""
        return BlackBox(str(self.folder / f"phase.{pid}")).read()
