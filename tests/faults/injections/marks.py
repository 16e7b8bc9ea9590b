"""The current step of each process, readable after its kill, and the step at which to linger.

phase.<pid>   the last step of a process
aim           the step at which each process that reaches it waits for a while
"""

import os
import time
from pathlib import Path

from hivepipe.worker.crash_marker import CrashMarker

LINGER_SECS = 0.03  # steps of microseconds would never be hit by chance


class Marks:
    """The marks of one process."""

    def __init__(self, folder: Path) -> None:
        self._phase = CrashMarker(str(folder / f"phase.{os.getpid()}"))
        self._aim = CrashMarker(str(folder / "aim"))

    def here(self, step: str) -> None:
        """Record the step, and linger if it is the aim."""
        self._phase.record(step)
        if step and self._aim.read() == step:
            time.sleep(LINGER_SECS)


def use_clock(folder: Path, role: str) -> None:
    """Change the clock of this process to the time that the test sets."""
    wanted, seen = (
        CrashMarker(str(folder / "clock")),
        CrashMarker(str(folder / f"clock.{os.getpid()}")),
    )
    real, real_ns = time.time, time.time_ns

    def wrong_secs() -> float:
        whose, _, secs = wanted.read().partition(" ")
        if whose != role:
            return 0.0
        seen.record(secs)
        return float(secs)

    time.time = lambda: real() + wrong_secs()
    time.time_ns = lambda: real_ns() + int(wrong_secs() * 1e9)


class Watch:
    """The test's view of all marks."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self._aim = CrashMarker(str(folder / "aim"))

    def aim(self, step: str) -> None:
        """Make processes linger at a step; "" clears it."""
        self._aim.record(step)

    def set_clock(self, role: str, secs: float) -> None:
        """Set the deviation of a process' clock; 0 corrects it."""
        CrashMarker(str(self.folder / "clock")).record(f"{role} {secs}")

    def clock(self, pid: int) -> float:
        """Return the deviation that the process last used."""
        return float(CrashMarker(str(self.folder / f"clock.{pid}")).read() or 0)

    def phase(self, pid: int) -> str:
        """Return the current or last step of a process."""
        return CrashMarker(str(self.folder / f"phase.{pid}")).read()
