"""Move a home's data between the home and its project's work tree, safe against crashes.

    <home>/moving    JSON. `from`, `to`: a project, or "" for the home itself. `names`: archives and
                     exports, relative to their folder. `database`: the names of the database
                     files. `token`: a random text.
    <project>/.hive-mind/moving    The same token. A renamed project keeps this file.

First all files are copied. Then the record is switched to the new place, in one step. Last, the old
files are deleted. After a crash, `finish_interrupted_move` deletes the copies if the record was not
switched, or else the old files. A work tree without the token may be a different one, so its files
are kept. If such a tree is the place whose files should stay, the files of the other place are
kept, too.
"""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from hivepipe.db.location import database_in
from hivepipe.errors import HivepipeError, TreeError
from hivepipe.files.regular_file import ANY_SIZE, read_bytes
from hivepipe.home import IN_PROJECT, kept_in, read_small, tree_of, write_small
from hivepipe.stack.copying import copy_file, sync, sync_folders
from hivepipe.stack.project_records import records_folder
from hivepipe.stack.registration import change_records
from hivepipe.stack.runtime_folder import make_private


class Move(NamedTuple):
    """A move of a home's data from one tree to another; the tree "" is the home itself."""

    home: str
    source: str
    target: str
    names: list[str]
    database: list[str]
    token: str

    @property
    def file(self) -> Path:
        return Path(self.home, "moving")

    def carry_out(self) -> None:
        """Copy all files, switch the record and delete the old files. The stack must not run.

        Raise OSError, StoreError or TreeError if the record was not switched.
        """
        finish_interrupted_move(self.home)
        self._refuse_other_files()
        try:
            self._begin()
            for old, new in zip(self._files(self.source), self._files(self.target), strict=True):
                if os.path.isfile(old):
                    copy_file(old, new)
            sync_folders(self._files(self.target))
            change_records({self.home}, tree=self.target)
            sync(records_folder())
        except BaseException:
            if tree_of(self.home) != self.target:  # the copies may fill the disk
                with suppress(HivepipeError, OSError):
                    finish_interrupted_move(self.home)
            raise
        finish_interrupted_move(self.home)

    def _refuse_other_files(self) -> None:
        """Raise TreeError for a pipe, which no copy would replace, or for a file at the target."""
        for old, new in zip(self._files(self.source), self._files(self.target), strict=True):
            if os.path.lexists(old) and not os.path.isfile(old):
                raise TreeError(f"{old} is no plain file: move it away, nothing was changed")
            if os.path.lexists(new) and not (os.path.exists(old) and os.path.samefile(old, new)):
                raise TreeError(f"{new} is there already: move it away, nothing was changed")

    def _begin(self) -> None:
        """Write the journal, then its random token into the work trees."""
        plan = {"from": self.source, "to": self.target, "names": self.names}
        plan |= {"database": self.database, "token": self.token}
        texts = {str(self.file): json.dumps(plan)}
        texts |= {_token_file(tree): self.token for tree in (self.source, self.target) if tree}
        for path, text in texts.items():
            make_private(os.path.dirname(path))
            write_small(path, text)
            sync(path)
            sync(os.path.dirname(path))

    def _is_of(self, tree: str) -> bool:
        return not tree or read_small(_token_file(tree)) == self.token

    def finish(self, tree: str, other: str) -> None:
        """Delete the files in `tree`, then the tokens and the journal.

        The files in `other` are kept. Raise TreeError if `other` is a work tree without the token.
        Such a work tree has no copies, so the files in `tree` may be the only ones.
        """
        if self._is_of(tree):
            self._delete(tree, other)
        for each in (tree, other):
            if each and self._is_of(each):
                os.unlink(_token_file(each))
        self.file.unlink(missing_ok=True)

    def _delete(self, tree: str, other: str) -> None:
        """Delete the moved files in `tree`, and folders that become empty.

        A file stays if its path is the same in `other`, as for a database on a shared file system.
        Raise TreeError, and delete nothing, if `other` is not the work tree of this move.
        """
        paths = sorted({*self._files(tree)} - {*self._files(other)})
        if not self._is_of(other) and any(map(os.path.lexists, paths)):
            raise TreeError(
                f"{other} is not the work tree of the interrupted move, and {tree or self.home} "
                f"may have the only copy of the data: put the work tree back. If it is lost, copy "
                f"the data into it and delete {self.file}"
            )
        for path in paths:
            for each in (path, f"{path}.moving"):
                with suppress(FileNotFoundError):
                    os.unlink(each)
        sync_folders(paths)  # after a power cut, files must not come back without the token
        kept, database = kept_in(self.home, tree), database_in(self.home, tree)
        folders = [folder for folder, _, _ in os.walk(kept, topdown=False)]
        for folder in (*folders, f"{database.parent}/backups"):
            with suppress(OSError):  # the folder contains a file of the user
                os.rmdir(folder)

    def _files(self, tree: str) -> list[str]:
        database, kept = database_in(self.home, tree), kept_in(self.home, tree)
        return [
            *(f"{database.parent}/{name}" for name in self.database),
            *(f"{kept}/{name}" for name in self.names),
        ]


def finish_interrupted_move(home: str, old: str = "", project: str = "") -> None:
    """Finish an interrupted move: undo it if the record was not switched, else complete it.

    If the project was renamed, `old` is the earlier path of its tree and `project` the new path.
    """
    if move := _begun(home):
        trees = [project if tree == old else tree for tree in (move.source, move.target)]
        is_switched = tree_of(home) == move.target
        move.finish(*(trees if is_switched else reversed(trees)))


def _token_file(tree: str) -> str:
    return f"{tree}{IN_PROJECT}/moving"


def _begun(home: str) -> Move | None:
    try:
        plan = json.loads(read_bytes(Path(home, "moving"), ANY_SIZE))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:  # a power cut came before the file was synced: nothing was copied yet
        return None
    return Move(home, plan["from"], plan["to"], plan["names"], plan["database"], plan["token"])
