"""The layout of `.hive/`, and the list of trusted hives.

    .hive/
      workers/<project>-<uuid>/   one worker: hivepipe.orchestrator.worker
      archive/<project>-<uuid>/   an archived worker
      projects.json               name -> path; a copy for other programs
      learnings/patterns.md, learnings/<project>-insights.md
      prompts/worker.md, prompts/park.md

Only folders that `hivepipe hive init` made are trusted (hivepipe.files.known_hives). The trusted
state of workers is outside of `.hive/`: hivepipe.orchestrator.trusted_state.
"""

import os
from contextlib import suppress
from pathlib import Path

from hivepipe.errors import HiveError
from hivepipe.events.claude_code import clean, valid_id
from hivepipe.files.known_hives import add, known
from hivepipe.files.regular_file import read_text
from hivepipe.home import make_folders, write_small
from hivepipe.orchestrator import trusted_state
from hivepipe.orchestrator.prompts import DEFAULTS
from hivepipe.orchestrator.worker import ARCHIVE, Worker

NAME = ".hive"
_SHOWN = 5


class Hive:
    """A `.hive` folder and the home that its workers report to."""

    def __init__(self, root: Path, home: str) -> None:
        """Set up; `root` is the `.hive` folder itself."""
        self.root = root
        self.home = home
        self.notes: list[str] = []  # messages for the user
        self.workers_folder = root / "workers"
        self.archive_folder = root / ARCHIVE
        self.trusted_folder = trusted_state.folder_of(root)
        self.state_folder = self.trusted_folder / "workers"
        self.learnings_folder = root / "learnings"
        self.projects_file = self.trusted_folder / trusted_state.PROJECTS

    @property
    def stored_root(self) -> str:
        """Return the path of `.hive` in the form that the store can hold: valid UTF-8."""
        return clean(str(self.root))

    def workers(self) -> list[Worker]:
        """Return every worker that is not archived, sorted by name."""
        return _workers_in(self.workers_folder, self.state_folder)

    def archived(self) -> list[Worker]:
        return _workers_in(self.archive_folder, self.trusted_folder / ARCHIVE)

    def with_state(self) -> list[Worker]:
        """Return every worker that has a state and is not archived."""
        states = _workers_in(self.state_folder, self.state_folder)
        return [self.new_worker(each.id) for each in states]

    def without_folder(self) -> list[Worker]:
        """Return every worker that has a state but whose folder was moved or removed."""
        there = {worker.id for worker in self.workers()}
        return [worker for worker in self.with_state() if worker.id not in there]

    def worker(self, start: str) -> Worker:
        """Return the worker whose id or session begins with `start`, or raise HiveError."""
        found = [worker for worker in self.workers() if worker.matches(start)]
        exact = [worker for worker in found if worker.id == start]
        if not start or not found:
            raise HiveError(f"no worker has the id {start}: see `hivepipe hive check --all`")
        if len(found) > 1 and not exact:
            some = ", ".join(worker.id for worker in found[:_SHOWN])
            more = " ..." if len(found) > _SHOWN else ""
            raise HiveError(
                f"{len(found)} workers have an id that begins with {start}: {some}{more}"
            )
        return (exact or found)[0]

    def new_worker(self, id: str) -> Worker:
        """Return the worker with this id, existing or not, or raise HiveError for an invalid id."""
        if valid_id(id) != id:
            raise HiveError(f"{id!r} cannot be a worker's id: letters, digits, '.', '_', '-'")
        return Worker(self.workers_folder / id, self.state_folder / id)

    def archived_worker(self, id: str) -> Worker:
        """Return the worker with this id and its archived folders; the folders need not exist."""
        return Worker(self.archive_folder / id, self.trusted_folder / ARCHIVE / id)

    def show_projects(self) -> None:
        """Copy the list of projects into `.hive` for other programs. Raise OSError on failure."""
        write_small(str(self.root / trusted_state.PROJECTS), read_text(self.projects_file))

    def migrated(self) -> "Hive":
        """Migrate workers' old state; return the hive with notes. Raise HiveError on failure."""
        self.notes += trusted_state.migrate_state(self.root)
        return self


def _workers_in(folder: Path, states: Path) -> list[Worker]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(each.name for each in entries if each.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []
    return [Worker(folder / name, states / name) for name in names if valid_id(name) == name]


def make_hive(parent: Path, home: str, *, adopt: bool = False) -> tuple[Hive, bool]:
    """Make a trusted `.hive` in `parent`; return the hive, and True if it is newly trusted.

    Raise HiveError if hivepipe did not make the existing `.hive` and `adopt` is not set.
    """
    root = Path(os.path.realpath(parent)) / NAME
    if "\n" in str(root):  # the list of trusted hives has one line per path
        raise HiveError(f"{str(root)!r} cannot be a hive: the name of its folder has a line break")
    is_known = str(root) in known(home)
    if root.is_symlink() or (root.exists() and not root.is_dir()):
        raise HiveError(f"{root} is not a folder: remove it")
    if root.exists() and not is_known and not adopt:
        raise HiveError(
            f"{root} exists already, and hivepipe did not make it here. If it is yours, add "
            "--adopt: then hivepipe uses its prompts and can end its processes. Else move it away"
        )
    if not root.exists():
        trusted_state.forget_deleted(root)
    hive = Hive(root, home)
    make_folders(str(root))
    add(home, str(root))  # first: if the rest fails, the next call completes it
    for folder in (hive.workers_folder, hive.archive_folder, hive.learnings_folder):
        make_folders(str(folder))
    _write_new(root / ".gitignore", "*\n")
    _write_new(root / trusted_state.PROJECTS, "{}\n")
    _write_new(hive.learnings_folder / "patterns.md", "# Patterns\n")
    make_folders(str(root / "prompts"))
    for name, text in DEFAULTS.items():
        _write_new(root / "prompts" / f"{name}.md", text)
    hive.migrated()
    return hive, not is_known


def _write_new(path: Path, text: str) -> None:
    if not path.exists():
        write_small(str(path), text)


def find_hive(start: str, home: str) -> Hive:
    """Return the hive of a folder or its nearest parent. Raise HiveError if none is trusted."""
    here = Path(os.path.realpath(start))
    for folder in (here, *here.parents):
        root = folder / NAME
        if root.is_dir():
            if str(root) in known(home):
                return Hive(root, home).migrated()
            raise HiveError(f"{root} was not made here: `hivepipe hive init --adopt` takes it over")
    raise HiveError("there is no .hive here or in a folder above: run `hivepipe hive init`")


def running_workers(home: str) -> list[Worker]:
    """Return the workers of a home that have a running process or a runner that is starting one.

    A hive that cannot be migrated is read without migration, and the periodic check logs its error.
    """
    found: list[Worker] = []
    for hive in known_hives(home):
        with suppress(HiveError, OSError):
            hive.migrated()
        with suppress(OSError):
            found += hive.with_state()
    return [worker for worker in found if (run := worker.last_run()) and run.is_at_work()]


def known_hives(home: str) -> list[Hive]:
    """Return every hive of a home whose folder exists, without a migration of old state."""
    return [Hive(Path(path), home) for path in known(home) if os.path.isdir(path)]
