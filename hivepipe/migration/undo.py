"""Taking a migration back: the old home to its place, the old hooks into the settings files."""

import os

from hivepipe.errors import MigrationError
from hivepipe.home import read_record
from hivepipe.install import edits, git_exclude, users_folder
from hivepipe.migration.carry_out import sha256
from hivepipe.predecessor import record as records
from hivepipe.predecessor.hooks import with_again
from hivepipe.predecessor.record import Move, Record, Settings


def undo(project: str) -> Record:
    """Give everything back; MigrationError: hivepipe is in the way. A second call goes on."""
    record = records.read(project)
    if record is None:
        raise MigrationError(f"nothing was migrated in {project}: nothing to undo")
    if read_record(project).get("home"):
        raise MigrationError(
            f"hivepipe still records {project}: `hivepipe uninstall --purge` deletes what it "
            "recorded and gives everything back; or run `hivepipe uninstall`, move .hive-mind "
            "away, then `hivepipe migrate --undo`"
        )
    for move in reversed(record.moves):
        _move_back(move)
    for aside in record.asides:
        edits.remove_if_empty(aside)
        _take_out_of_exclude(aside)
    for settings in record.settings:
        _give_back(settings)
    records.forget(project)
    users_folder.tidy()
    return record


def _move_back(move: Move) -> None:
    if not os.path.lexists(move.target):
        return
    if os.path.lexists(move.source):
        raise MigrationError(f"{move.source} is in the way of {move.target}: move it away")
    try:
        os.makedirs(os.path.dirname(move.source), mode=0o700, exist_ok=True)
        os.rename(move.target, move.source)
    except OSError as error:
        raise MigrationError(f"{move.target} cannot be moved: {error.strerror}") from error
    edits.remove_if_empty(os.path.dirname(move.target))


def _take_out_of_exclude(aside: str) -> None:
    path = git_exclude.exclude_file(f"{aside}/")
    text = edits.read(path) if path else None
    if path and text is not None:
        line = git_exclude.line_for(f"{aside}/")
        edits.make(edits.Edit(path, text, git_exclude.without_line(text, line)))


def _give_back(settings: Settings) -> None:
    """Restore a file that is still as we left it; one that was edited gets its hooks back."""
    text = edits.read(settings.path)
    if text is None or text == settings.before:
        return
    is_untouched = sha256(text) == settings.after_sha256
    after = settings.before if is_untouched else with_again(text, settings.hooks)
    edits.make_beneath(
        edits.Edit(settings.path, text, after), lambda old: with_again(old, settings.hooks)
    )
    if is_untouched:
        path = os.path.realpath(settings.path)
        os.utime(path, ns=(os.stat(path).st_atime_ns, settings.mtime_ns))
