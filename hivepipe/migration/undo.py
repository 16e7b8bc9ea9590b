"""Undo a migration: restore the old home and the old hooks."""

import os
import shutil
from collections.abc import Iterator

from hivepipe.errors import MigrationError, os_error_as
from hivepipe.home import read_record
from hivepipe.install import edits, git_exclude, users_folder
from hivepipe.migration import record as records
from hivepipe.migration.carry_out import sha256
from hivepipe.migration.hooks import with_restored_hooks
from hivepipe.migration.record import Move, Record, Settings
from hivepipe.stack.home_marks import is_marked


def undo(project: str) -> Record:
    """Undo a migration, or continue an undo; return the journal of the migration.

    Raises MigrationError if there is no migration to undo, or hivepipe is in use.
    """
    if records.read(project) is None:
        raise _nothing_to_undo(project)
    with records.locked():
        record = _undo(project)
    users_folder.tidy()
    return record


def _nothing_to_undo(project: str) -> MigrationError:
    return MigrationError(f"nothing was migrated in {project}: nothing to undo")


def _undo(project: str) -> Record:
    record = records.read(project)
    if record is None:
        raise _nothing_to_undo(project)
    if read_record(project).get("home"):
        raise MigrationError(
            f"hivepipe still records {project}: `hivepipe uninstall --purge` deletes what it "
            "recorded and restores everything; or run `hivepipe uninstall`, then "
            "`hivepipe migrate --undo`"
        )
    _refuse_hivepipes_home(record)
    in_the_way = [pair for move in record.moves for pair in _move_back(move)]
    for settings in record.settings:
        _restore_settings(settings)
    if in_the_way:
        text = "; ".join(
            f"{kept} cannot be moved to {place}, which exists" for place, kept in in_the_way[:5]
        )
        raise MigrationError(
            f"the rest of the old home and the old hooks are restored, but {text}. Move the "
            "existing files away, then run `hivepipe migrate --undo` again"
        )
    for aside in record.asides:
        edits.remove_if_empty(aside)
        _take_out_of_exclude(aside)
    records.forget(project)
    return record


def _refuse_hivepipes_home(record: Record) -> None:
    """Raise MigrationError if hivepipe's data is in the place of the old home."""
    for move in record.moves:
        home = move.source if move.target in record.asides else os.path.dirname(move.source)
        if os.path.lexists(move.target) and is_marked(home):
            raise MigrationError(
                f"{move.target} cannot be moved back, because {home} holds what hivepipe recorded: "
                "run `hivepipe uninstall --purge`, or move that folder away"
            )


def _move_back(move: Move) -> list[tuple[str, str]]:
    """Move a file or folder back; return (path, file) for each path that is taken.

    The file for such a path stays where it is. A file may have been moved twice, because an old
    hook may have created it again. So the oldest move is undone first.
    """
    if not os.path.lexists(move.target):
        return []
    with os_error_as(MigrationError, f"{move.target} cannot be moved"):
        os.makedirs(os.path.dirname(move.source), mode=0o700, exist_ok=True)
        in_the_way = list(_merge(move.target, move.source))
    edits.remove_if_empty(os.path.dirname(move.target))
    return in_the_way


def _merge(kept: str, place: str) -> Iterator[tuple[str, str]]:
    """Move `kept` to `place`, merging folders; yield (path, file) for each path that is taken."""
    if not os.path.lexists(place):
        os.rename(kept, place)
    elif _is_folder(kept) and _is_folder(place):
        for name in sorted(os.listdir(kept)):
            yield from _merge(f"{kept}/{name}", f"{place}/{name}")
        if not os.listdir(kept):
            shutil.copystat(kept, place)
            os.rmdir(kept)
    else:
        yield place, kept


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _take_out_of_exclude(aside: str) -> None:
    exclude, line = git_exclude.exclude_file(f"{aside}/"), git_exclude.line_for(f"{aside}/")
    edit = git_exclude.to_stop_ignoring(exclude, [line]) if exclude else None
    if edit:
        git_exclude.undo(edit)


def _restore_settings(settings: Settings) -> None:
    """Restore a settings file.

    If the file was edited after the migration, only the old hooks are added to it.
    """
    text = edits.read(settings.path)
    if text is None or text == settings.before:
        return
    is_untouched = sha256(text) == settings.after_sha256
    after = settings.before if is_untouched else with_restored_hooks(text, settings.hooks)
    edits.make_beneath(
        edits.Edit(settings.path, text, after), lambda old: with_restored_hooks(old, settings.hooks)
    )
    if is_untouched:
        path = os.path.realpath(settings.path)
        os.utime(path, ns=(os.stat(path).st_atime_ns, settings.mtime_ns))
