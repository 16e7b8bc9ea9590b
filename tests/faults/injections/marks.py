"""Where a process is at this moment, readable after its kill -9; and where it is to linger.

phase.<pid>   of each process, the step it has come to
aim           `<step>`: whoever comes to this step stays there for a while
"""

import os
import time
from pathlib import Path

from hivepipe.black_box import BlackBox

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


class Watch:
    """The test's view of them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self._aim = BlackBox(str(folder / "aim"))

    def aim(self, step: str) -> None:
        """Let processes linger there; "": nowhere."""
        self._aim.record(step)

    def phase(self, pid: int) -> str:
        """Where the process is, or was when it died."""
        return BlackBox(str(self.folder / f"phase.{pid}")).read()
