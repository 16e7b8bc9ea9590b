"""One run of a worker: one process of Claude Code, from its plan to its exit code.

    planned     written by the process that starts it, under the worker's lock
    started     written by the run's own process, just before it executes Claude Code
    ended       written by the runner, or by the next check if the runner was killed

Each step replaces the file atomically, and no two steps run at the same time.
"""

from dataclasses import dataclass
from pathlib import Path

from hivepipe.files.typed_file import read_or
from hivepipe.orchestrator.recorded_process import lives

_LARGEST = 1 << 16


@dataclass
class Run:
    """One run. Times are UTC. `exit_code` is as in `subprocess`: negative for a signal."""

    number: int
    kind: str  # spawn, resume, answer, park, ask; another value: not started by hivepipe
    command: list[str]
    cwd: str
    offset: int = 0  # byte offset in the transcript where this run begins
    machine: str = ""
    runner_pid: int = 0
    runner_started: str = ""
    pid: int = 0
    pid_started: str = ""
    started_at: str = ""
    started_ns: int = 0
    ended_at: str = ""
    exit_code: int | None = None
    is_lost: bool = False  # the process ended, but its exit code is unknown
    left_behind: bool = False  # processes of its group still run after its end
    trouble: str = ""  # the error of its start, or ""
    cost_usd: str | None = None  # cost of this run alone; a decimal number as text
    outcome: str = ""  # the subtype of its last result
    words: str = ""  # the beginning of the result's text, secrets redacted

    @property
    def is_started(self) -> bool:
        """Tell whether a process was started for this run."""
        return self.pid > 0

    @property
    def has_ended(self) -> bool:
        return bool(self.ended_at)

    @property
    def has_unrecorded_end(self) -> bool:
        """Tell whether the process ended, but the runner was killed before recording the end.

        A caller that records the end must check again under the worker's lock.
        """
        return self.is_started and self.cost_usd is None and self.is_at_work() is False

    @property
    def is_unpriced(self) -> bool:
        """Tell whether the run ended without a result line; its cost is then unknown."""
        return self.is_started and self.has_ended and not self.outcome

    def process_lives(self) -> bool | None:
        """Tell whether the run's Claude Code is running, or None if it is on another machine."""
        if not self.is_started or self.has_ended:
            return False
        return lives(self.pid, self.pid_started, self.machine)

    def is_at_work(self) -> bool | None:
        """Tell whether Claude Code (or, before it, the runner) runs; None on another machine."""
        if self.has_ended:
            return False
        if self.is_started:
            return self.process_lives()
        return bool(self.runner_pid) and lives(self.runner_pid, self.runner_started, self.machine)


def read_run(path: Path) -> Run | None:
    """Return a run, or None if the file is gone or invalid."""
    return read_or(path, Run, None, _LARGEST)
