"""The plan of `migrate`: the files found, and the steps to do. Planning changes nothing."""

import os
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from hivepipe.db.foreign import is_foreign
from hivepipe.db.location import database_path
from hivepipe.errors import MigrationError
from hivepipe.home import is_in_project, main_checkout, read_record, real_path
from hivepipe.install import installation
from hivepipe.install.claude_code import Scope
from hivepipe.migration import record as records
from hivepipe.migration.files import OldFiles, find_files
from hivepipe.migration.home import OldHome, find_home, old_home
from hivepipe.migration.hooks import OldHooks, find_hooks
from hivepipe.migration.processes import OldProcess, find_processes
from hivepipe.migration.record import Move, Record
from hivepipe.migration.rows import ImportResult, rehearse
from hivepipe.stack.conversion import tree_with_data
from hivepipe.stack.registration import new_home

ASIDE = ".hive-mind.before-hivepipe"


@dataclass(frozen=True)
class Plan:
    """The remaining steps of one project's migration.

    home       hivepipe's home, which receives the rows
    found      the old home at the path of hivepipe's home, or None
    elsewhere  other old homes; they are not moved
    files      archives and exports; they are not moved either
    aside      the target folder of `moves`
    """

    project: str
    home: str
    record: Record
    hooks: list[OldHooks]
    found: OldHome | None
    files: OldFiles | None
    elsewhere: list[OldHome]
    aside: str
    moves: list[Move]
    is_registered: bool

    @property
    def database(self) -> Path:
        return database_path(self.home)

    @property
    def old_hooks(self) -> int:
        return sum(len(each.old) for each in self.hooks)

    @property
    def is_empty(self) -> bool:
        """Tell whether there is no file of a predecessor, here or moved by an earlier run."""
        homes = self.found or self.elsewhere or self.record.asides
        return not (homes or self.old_hooks or self.files)

    def homes(self) -> list[OldHome]:
        """Return the homes to import, with their current paths; homes already moved come first.

        Raise MigrationError if one of them is not a folder.
        """
        aside = [old_home(Path(each)) for each in self.record.asides if os.path.isdir(each)]
        return [*aside, *([self.found] if self.found else []), *self.elsewhere]

    def processes(self) -> list[OldProcess]:
        """Return the processes that use the predecessor's queue or files that will be moved."""
        return find_processes(self.project, [Path(move.source) for move in self.moves])

    def rehearsed(self) -> ImportResult:
        """Return the result of the import as a dry run."""
        return rehearse(self.database, self.homes())


def plan(elsewhere: list[str]) -> Plan:
    """Return the plan for the current project; `elsewhere` are old homes in other places.

    Raises MigrationError, SettingsError or TreeError if something must be corrected first.
    """
    project = main_checkout(real_path("."))
    registered = read_record(project).get("home", "")
    home = registered or installation.plan(Scope.LOCAL).home
    if is_in_project(home):
        tree_with_data(home, new_home(project))  # an upgrade from 1.0.0 raises the same error
    record = records.read(project) or Record(project)
    found = find_home(project, is_moved=record.is_moved)
    aside, moves = _moves(record, found) if found else ("", [])
    if found and found.is_shared and not (registered or record.is_moved):
        raise MigrationError(
            f"{found.folder} holds files of hivepipe, and this project is not registered: "
            "run `hivepipe init --adopt` if they are yours, then `hivepipe migrate`"
        )
    return Plan(
        project=project,
        home=home,
        record=record,
        hooks=find_hooks(project),
        found=found,
        files=find_files(project, home),
        elsewhere=[old_home(Path(real_path(folder))) for folder in elsewhere],
        aside=aside,
        moves=moves,
        is_registered=bool(registered),
    )


def refuse_foreign_database(plan: Plan) -> None:
    """Raise MigrationError if hivepipe is configured to use the predecessor's database."""
    moved = {move.source for move in plan.moves} | {f"{move.source}/hive.db" for move in plan.moves}
    if str(plan.database) not in moved and is_foreign(plan.database):
        raise MigrationError(
            f"{plan.database} is the predecessor's, and HIVEPIPE_DB or HIVE_DB names it as "
            "hivepipe's: unset the variable"
        )


def _moves(record: Record, found: OldHome) -> tuple[str, list[Move]]:
    """Return target folder and moves of an interrupted run, or new ones if there is none."""
    for aside in record.asides:
        moves = _moves_to(aside, found)
        if not any(os.path.lexists(move.target) for move in moves) and moves[0] in record.moves:
            return aside, moves
    first = f"{found.folder.parent}/{ASIDE}"
    names = (f"{first}-{number}" if number > 1 else first for number in count(1))
    taken = record.asides
    aside = next(name for name in names if name not in taken and not os.path.lexists(name))
    return aside, _moves_to(aside, found)


def _moves_to(aside: str, found: OldHome) -> list[Move]:
    if not found.is_shared:
        return [Move(str(found.folder), aside)]
    return [Move(f"{found.folder}/{name}", f"{aside}/{name}") for name in found.entries]
