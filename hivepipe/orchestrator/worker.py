"""One worker: its files, and the program that writes each file.

    workers/<project>-<uuid>/   folder of the protocol; the worker can write here
      status.json        by the worker: its state
      run-report.md      by the worker: a summary of the run
      task.md            by hivepipe: its task
      session-id         by hivepipe: its session, for `claude --resume`
      transcript.jsonl   by Claude Code: the output of all runs, one JSON object per line
      stderr.log         by Claude Code: its error output
      process.json       by hivepipe: a copy of its last run, for other programs
    state of the worker         written only by hivepipe, outside every project
      worker.json        session, project, path, flags
      runs/1.json        one process; hivepipe.orchestrator.run
      runs/1.prompt.md   the prompt of that process
      settings.json      its hooks
      steps.jsonl        steps taken for a silent worker; hivepipe.orchestrator.respawn_policy
      runner.log         error output of its runner
      run.lock           held while a process of this session is started, and while it runs

A folder without state was made by another program. Such a folder is a worker, too.
"""

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from hivepipe.events.claude_code import clean
from hivepipe.files.typed_file import read_or, write_typed
from hivepipe.home import make_folders, read_small, write_small
from hivepipe.orchestrator.rights import ALL, may_commit
from hivepipe.orchestrator.run import Run, read_run
from hivepipe.orchestrator.status import UNCOMMITTED, Status, read_status

ARCHIVE = "archive"
_LARGEST_CARD = 1 << 16
LARGEST_TASK = 1 << 20


@dataclass(frozen=True)
class Card:
    """The parameters of a spawn, which are the same for all runs of the worker."""

    id: str = ""
    session: str = ""
    project: str = ""
    path: str = ""
    task_id: str = ""
    profile: str = ""
    flags: tuple[str, ...] = ()
    created_at: str = ""
    respawn_of: str = ""
    respawns: int = 0


class Worker:
    """A worker's folders; files are read on access."""

    def __init__(self, folder: Path, state: Path) -> None:
        """Set the folders, which need not exist. Commands and pids are read from `state` only."""
        self.id = folder.name
        self.folder = folder
        self.state = state
        self.folders = (folder, state)
        self.status_file = folder / "status.json"
        self.transcript = folder / "transcript.jsonl"
        self.stderr = folder / "stderr.log"
        self.report = folder / "run-report.md"
        self.lock = str(state / "run.lock")  # prevents two processes on one session

    def __repr__(self) -> str:
        return f"Worker({self.id})"

    def matches(self, start: str) -> bool:
        return self.id.startswith(start) or self.card().session.startswith(start)

    def task(self) -> str:
        return read_small(str(self.folder / "task.md"), LARGEST_TASK)

    def status(self) -> Status:
        """Return the status; a missing commit is no problem if the worker must not commit."""
        status = read_status(self.status_file)
        if UNCOMMITTED not in status.problems or may_commit(self.card().flags or ALL.flags):
            return status
        left = tuple(each for each in status.problems if each != UNCOMMITTED)
        return status._replace(problems=left)

    def card(self) -> Card:
        """Return the parameters of the spawn.

        If hivepipe did not start the worker, only the session is known.
        """
        card = read_or(self.state / "worker.json", Card, Card(), _LARGEST_CARD)
        if card.session:
            return card
        return replace(card, session=clean(read_small(str(self.folder / "session-id")).strip()))

    def is_own(self) -> bool:
        """Tell whether hivepipe started the worker. In that case the state folder has a card."""
        return (self.state / "worker.json").is_file()

    def changed_at(self) -> float:
        """Return when a file in the worker's folder last changed, in seconds since 1970."""
        files = (path for path in self.folder.rglob("*") if not path.is_dir())
        return max((path.lstat().st_mtime for path in files), default=0.0)

    def make(self, card: Card, task: str) -> None:
        """Make the worker's folders. The card is written last: a worker with a card is complete."""
        make_folders(str(self.folder))
        make_folders(str(self.state / "runs"))
        write_small(str(self.folder / "session-id"), f"{card.session}\n")
        write_small(str(self.folder / "task.md"), task if task.endswith("\n") else f"{task}\n")
        write_typed(self.state / "worker.json", replace(card, id=self.id))

    def runs(self) -> list[Run]:
        found = (read_run(self.run_file(number)) for number in self.run_numbers())
        return [run for run in found if run]

    def last_run(self) -> Run | None:
        """Return the last run of the worker, or None if no run is recorded."""
        for number in reversed(self.run_numbers()):
            if run := read_run(self.run_file(number)):
                return run
        return None

    def run_numbers(self) -> list[int]:
        """Return the numbers of the worker's runs in ascending order."""
        try:
            names = os.listdir(self.state / "runs")
        except FileNotFoundError:
            return []
        stems = (name.removesuffix(".json") for name in names if name.endswith(".json"))
        return sorted(int(stem) for stem in stems if stem.isdecimal())

    def write_run(self, run: Run) -> None:
        write_typed(self.run_file(run.number), run)
        with suppress(OSError):  # the copy is only for readers, and others write to the folder
            write_typed(self.folder / "process.json", run)

    def run_file(self, number: int) -> Path:
        return self.state / "runs" / f"{number}.json"

    def prompt_file(self, number: int) -> Path:
        return self.state / "runs" / f"{number}.prompt.md"
