"""One worker: who writes which file, and what each says.

    workers/<project>-<uuid>/   the protocol's own; the worker may write here
      status.json        the worker: where it stands
      run-report.md      the worker: a summary of the run
      task.md            we: what it was given
      session-id         we: its session, for `claude --resume`
      transcript.jsonl   Claude Code: all that it says, of all runs, one JSON object to a line
      stderr.log         Claude Code: what it complains of
      process.json       we: a copy of its last run, for whoever looks here
    state of the worker         ours alone, out of every project: hivepipe.hive.belief
      worker.json        session, project, path, flags
      runs/1.json        one process; hivepipe.hive.run
      runs/1.prompt.md   what that process was told
      settings.json      its hooks
      steps.jsonl        what was done about its silence; hivepipe.hive.steps
      runner.log         what its runner complains of
      run.lock           held while a process of this session is started, and while it lives

A folder without state, which others made, is a worker too.
"""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from hivepipe.hive.rights import ALL, may_commit
from hivepipe.hive.run import Run, as_json, read_run
from hivepipe.hive.status import UNCOMMITTED, Status, read_status
from hivepipe.home import make_folders, read_small, write_small

ARCHIVE = "archive"
_LARGEST_CARD = 1 << 16
LARGEST_TASK = 1 << 20


class Card(NamedTuple):
    """What was decided when a worker was spawned; the same for all its runs."""

    session: str
    project: str = ""
    path: str = ""
    task_id: str = ""
    profile: str = ""
    flags: tuple[str, ...] = ()
    created_at: str = ""
    respawn_of: str = ""
    respawns: int = 0


class Worker:
    """A worker's folder; nothing is read before it is asked for."""

    def __init__(self, folder: Path, state: Path) -> None:
        """Neither folder need be there yet; what is run and signalled stands in its state."""
        self.folder = folder
        self.id = folder.name
        self.state = state

    def __repr__(self) -> str:
        """Return its id."""
        return f"Worker({self.id})"

    @property
    def status_file(self) -> Path:
        """Return where it says how it stands."""
        return self.folder / "status.json"

    @property
    def transcript(self) -> Path:
        """Return where Claude Code writes what happens."""
        return self.folder / "transcript.jsonl"

    @property
    def stderr(self) -> Path:
        """Return where Claude Code complains."""
        return self.folder / "stderr.log"

    @property
    def report(self) -> Path:
        """Return its own summary."""
        return self.folder / "run-report.md"

    @property
    def folders(self) -> tuple[Path, Path]:
        """Return where its files lie: what it was told stands in its state."""
        return self.folder, self.state

    def is_called(self, start: str) -> bool:
        """Does its id begin so, or the session in it?"""
        return self.id.startswith(start) or self.card().session.startswith(start)

    def task(self) -> str:
        """Return what it was given."""
        return read_small(str(self.folder / "task.md"), LARGEST_TASK)

    def status(self) -> Status:
        """Return what it said last; who may not commit is not blamed for it."""
        said = read_status(self.status_file)
        if UNCOMMITTED not in said.problems or may_commit(self.card().flags or ALL.flags):
            return said
        left = tuple(each for each in said.problems if each != UNCOMMITTED)
        return said._replace(problems=left)

    def card(self) -> Card:
        """Return what was decided at its spawning; of a folder that others made, its session."""
        try:
            found = json.loads(read_small(str(self.state / "worker.json"), _LARGEST_CARD))
        except ValueError:
            found = {}
        known: dict[str, Any] = {
            name: found[name]
            for name, default in {**Card._field_defaults, "session": ""}.items()
            if type(found.get(name)) is type(default)
        }
        flags = found.get("flags")
        if isinstance(flags, list) and all(isinstance(flag, str) for flag in flags):
            known["flags"] = tuple(flags)
        session = known.pop("session", "") or read_small(str(self.folder / "session-id")).strip()
        return Card(session, **known)

    def is_own(self) -> bool:
        """Did hivepipe start it? Its card says so, which lies in our own folder."""
        return (self.state / "worker.json").is_file()

    def changed_at(self) -> float:
        """Return when any of its files was changed last, in seconds of 1970; its state is ours."""
        files = (path for path in self.folder.rglob("*") if not path.is_dir())
        return max((path.lstat().st_mtime for path in files), default=0.0)

    def make(self, card: Card, task: str) -> None:
        """Make the folder; the card comes last and makes it whole."""
        make_folders(str(self.folder))
        make_folders(str(self.state / "runs"))
        write_small(str(self.folder / "session-id"), f"{card.session}\n")
        write_small(str(self.folder / "task.md"), task if task.endswith("\n") else f"{task}\n")
        text = json.dumps({"id": self.id, **card._asdict()}, indent=2)
        write_small(str(self.state / "worker.json"), f"{text}\n")

    def runs(self) -> list[Run]:
        """Return its runs, the oldest first."""
        found = (read_run(self.run_file(number)) for number in self.run_numbers())
        return [run for run in found if run]

    def last_run(self) -> Run | None:
        """Return its last run; None: it had none that we know of."""
        for number in reversed(self.run_numbers()):
            if run := read_run(self.run_file(number)):
                return run
        return None

    def run_numbers(self) -> list[int]:
        """Return the numbers of its runs, rising."""
        try:
            names = os.listdir(self.state / "runs")
        except FileNotFoundError:
            return []
        stems = (name.removesuffix(".json") for name in names if name.endswith(".json"))
        return sorted(int(stem) for stem in stems if stem.isdecimal())

    def write_run(self, run: Run) -> None:
        """Replace what is known of a run."""
        write_small(str(self.run_file(run.number)), as_json(run))
        with suppress(OSError):  # the copy is for readers, and the folder is not ours alone
            write_small(str(self.folder / "process.json"), as_json(run))

    def run_file(self, number: int) -> Path:
        """Return the file of one run."""
        return self.state / "runs" / f"{number}.json"

    def prompt_file(self, number: int) -> Path:
        """Return what one run was told."""
        return self.state / "runs" / f"{number}.prompt.md"

    @property
    def lock(self) -> str:
        """Return what keeps two processes off one session."""
        return str(self.state / "run.lock")
