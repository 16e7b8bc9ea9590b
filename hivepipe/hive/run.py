"""One run of a worker: one process of Claude Code, from its plan to its exit code.

    planned     by whoever starts it, under the worker's lock
    started     by the process itself, in the instant before it becomes Claude Code
    ended       by the runner that waited for it; if that was killed, by whoever looks next

Each step replaces the file in one go, and no two of them ever run at once.
"""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from hivepipe.hive.process import lives
from hivepipe.home import read_small

_LARGEST = 1 << 16


@dataclass
class Run:
    """One run; times are UTC, `exit_code` as of `subprocess`: negative for a signal."""

    number: int
    kind: str  # spawn, resume, answer, park, ask; others: those that we did not start
    command: list[str]
    cwd: str
    offset: int = 0  # of the transcript, where this run begins
    machine: str = ""
    runner_pid: int = 0
    runner_started: str = ""
    pid: int = 0
    pid_started: str = ""
    started_at: str = ""
    started_ns: int = 0
    ended_at: str = ""
    exit_code: int | None = None
    is_lost: bool = False  # it ended, and nobody was there to see how
    left_behind: bool = False  # processes of its group outlived it
    trouble: str = ""  # why it could not be started
    cost_usd: str | None = None  # of the run, in dollars; a decimal number as text
    outcome: str = ""  # how its last result calls it
    words: str = ""  # the beginning of what that says, secrets taken out

    @property
    def is_started(self) -> bool:
        """Did a process ever become this run?"""
        return self.pid > 0

    @property
    def has_ended(self) -> bool:
        """Is it known that it is over?"""
        return bool(self.ended_at)

    @property
    def is_unpriced(self) -> bool:
        """Did it end without a result, which would have said what it cost?"""
        return self.is_started and self.has_ended and not self.outcome

    def process_lives(self) -> bool | None:
        """Does its Claude Code live? None: it runs on another machine."""
        if not self.is_started or self.has_ended:
            return False
        return lives(self.pid, self.pid_started, self.machine)

    def is_at_work(self) -> bool | None:
        """Does its Claude Code live, or the runner that starts it? None as above."""
        if self.has_ended:
            return False
        if self.is_started:
            return self.process_lives()
        return bool(self.runner_pid) and lives(self.runner_pid, self.runner_started, self.machine)


def read_run(path: Path) -> Run | None:
    """Return a run; None: the file is gone, or says nothing that can be read."""
    try:
        found = json.loads(read_small(str(path), _LARGEST))
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    known = {each.name for each in fields(Run)}
    values: dict[str, Any] = {name: value for name, value in found.items() if name in known}
    try:
        run = Run(**values)
    except TypeError:
        return None
    numbers = (run.number, run.offset, run.pid, run.runner_pid, run.started_ns)
    return run if all(type(each) is int for each in numbers) else None


def as_json(run: Run) -> str:
    """Return what the file of a run says."""
    return json.dumps(asdict(run), indent=2) + "\n"
