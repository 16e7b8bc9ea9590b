"""Move a home's data between the home and its project's work tree, safe against crashes.

    <home>/moving    JSON. `from`, `to`: a project, or "" for the home itself. `names`: archives and
                     exports, relative to their folder. `database`: the names of its files.

First all files are copied. Then the record is switched to the new place, in one step. Last, the old
files are deleted. After a crash, `finish_interrupted_move` deletes the copies if the record was not
switched, or else the old files.
"""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from hivepipe.db.location import database_in
from hivepipe.errors import TreeError
from hivepipe.files.regular_file import ANY_SIZE, read_bytes
from hivepipe.home import kept_in, tree_of, write_small
from hivepipe.stack.copying import copy_file, sync, sync_folders
from hivepipe.stack.project_records import records_folder
from hivepipe.stack.registration import set_tree


class Move(NamedTuple):
    """A move of a home's data from one tree to another; the tree "" is the home itself."""

    home: str
    source: str
    target: str
    names: list[str]
    database: list[str]

    @property
    def file(self) -> Path:
        """Return the path of the journal file."""
        return Path(self.home, "moving")

    def carry_out(self) -> None:
        """Copy all files, switch the record and delete the old files. The stack must not run.

        OSError, StoreError and TreeError mean that the record was not switched.
        """
        finish_interrupted_move(self.home)
        self._refuse_to_replace()
        plan: dict[str, Any] = {"from": self.source, "to": self.target}
        plan |= {"names": self.names, "database": self.database}
        write_small(str(self.file), json.dumps(plan))
        sync(str(self.file))
        sync(self.home)
        for old, new in zip(self._files(self.source), self._files(self.target), strict=True):
            if os.path.isfile(old):
                copy_file(old, new)
        sync_folders(self._files(self.target))
        set_tree(self.home, self.target)
        sync(records_folder())
        finish_interrupted_move(self.home)

    def _refuse_to_replace(self) -> None:
        for old, new in zip(self._files(self.source), self._files(self.target), strict=True):
            if os.path.lexists(new) and not (os.path.exists(old) and os.path.samefile(old, new)):
                raise TreeError(f"{new} is there already: move it away, nothing was changed")

    def delete(self, tree: str, other: str) -> None:
        """Delete the moved files in one of the two places, and folders that become empty.

        A file whose path is the same in both stays: a database on a shared file system.
        """
        kept, database = kept_in(self.home, tree), database_in(self.home, tree)
        for path in sorted({*self._files(tree)} - {*self._files(other)}):
            for each in (path, f"{path}.moving"):
                with suppress(FileNotFoundError):
                    os.unlink(each)
        folders = [folder for folder, _, _ in os.walk(kept, topdown=False)]
        for folder in (*folders, f"{database.parent}/backups"):
            with suppress(OSError):  # it contains a file of the user
                os.rmdir(folder)
        self.file.unlink(missing_ok=True)

    def _files(self, tree: str) -> list[str]:
        database, kept = database_in(self.home, tree), kept_in(self.home, tree)
        return [
            *(f"{database.parent}/{name}" for name in self.database),
            *(f"{kept}/{name}" for name in self.names),
        ]


def finish_interrupted_move(home: str, old: str = "", project: str = "") -> None:
    """Finish an interrupted move: undo it if the record was not switched, else complete it.

    The files in the tree `old` are now in `project`, which was renamed.
    """
    if move := _begun(home):
        trees = [project if tree == old else tree for tree in (move.source, move.target)]
        is_switched = tree_of(home) == move.target
        move.delete(*(trees if is_switched else reversed(trees)))


def _begun(home: str) -> Move | None:
    try:
        plan = json.loads(read_bytes(Path(home, "moving"), ANY_SIZE))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:  # a power cut came before it was synced: nothing was copied yet
        return None
    return Move(home, plan["from"], plan["to"], plan["names"], plan["database"])
