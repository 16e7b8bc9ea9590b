"""The steps of `migrate`. After a crash in one step, the next run continues there.

The hooks are removed first, because they start the worker and fill the queue. Then the old home is
moved aside, hivepipe is installed, and the rows are imported; the import is idempotent.
"""

import hashlib
import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import NamedTuple

from hivepipe.db.database import opened
from hivepipe.errors import HivepipeError, MigrationError, os_error_as
from hivepipe.home import KEPT_IN_PROJECT, Place, read_record
from hivepipe.install import (
    claude_code,
    edits,
    git_exclude,
    installation,
    settings_text,
    users_folder,
)
from hivepipe.install.claude_code import Scope
from hivepipe.migration import record as records
from hivepipe.migration.files import import_files
from hivepipe.migration.hooks import OldHooks, without_old
from hivepipe.migration.plan import Plan, refuse_foreign_database
from hivepipe.migration.plan import plan as planned
from hivepipe.migration.record import Move, Record, Settings
from hivepipe.migration.rows import ImportResult, import_homes
from hivepipe.operations.found_exports import Row
from hivepipe.stack import lifecycle
from hivepipe.stack.runtime_folder import Stack, make_private

_MOVED_WITH_ITS_DATABASE = "/hive.db"


class Result(NamedTuple):
    """The rows and files that were imported."""

    rows: ImportResult
    files: list[Row]


def carry_out(plan: Plan) -> Result:
    """Execute all steps; return what was imported.

    Raises MigrationError, for example if the predecessor still runs, or SettingsError if a settings
    file cannot be changed.
    """
    refuse_foreign_database(plan)
    _refuse_settings(plan)
    _refuse_links(plan)
    users_folder.make()
    try:
        with records.locked():
            _refuse_another_state(plan)
            return _carry_out(plan)
    finally:
        users_folder.tidy()


def _refuse_another_state(plan: Plan) -> None:
    """Raise MigrationError if another run has changed the files since this plan was made."""
    now = planned([str(each.folder) for each in plan.elsewhere])
    if (now.record, now.hooks, now.moves) != (plan.record, plan.hooks, plan.moves):
        raise MigrationError(
            f"{plan.project} was changed meanwhile: run `hivepipe migrate` again; nothing was "
            "changed by this run"
        )


def _carry_out(plan: Plan) -> Result:
    record = plan.record
    for hooks in plan.hooks:
        record = _take_out(hooks, record)
    _refuse_processes(plan)
    record = _move_aside(plan, record)
    try:
        _install(plan, record)
    except HivepipeError as error:
        raise MigrationError(
            f"{error}. hivepipe is not installed, and the old hooks are out of the settings. "
            "Correct this, then run `hivepipe migrate` again: it continues from here. Or run "
            "`hivepipe uninstall --purge`, which restores the old home and the old hooks"
        ) from error
    rows = _import(plan, record)
    files = import_files(plan.home, plan.files) if plan.files else []
    records.write(replace(record, is_complete=True))
    return Result(rows, files)


def _refuse_settings(plan: Plan) -> None:
    """Raise MigrationError or SettingsError for a settings file that must be corrected first."""
    for hooks in plan.hooks:
        if hooks.trouble:
            raise MigrationError(
                f"{hooks.path} {hooks.trouble}: correct it first, because it may have old hooks; "
                "nothing was changed"
            )
        if hooks.old:
            edits.read(hooks.path)


def _refuse_links(plan: Plan) -> None:
    """Raise MigrationError if the folder of the old archives and exports is a symbolic link."""
    if plan.is_registered:
        return
    logs = f"{plan.project}{KEPT_IN_PROJECT}"
    for folder in (os.path.dirname(logs), logs):
        if os.path.islink(folder):
            raise MigrationError(
                f"{folder} is a link to {os.readlink(folder)}, which is not followed: put the "
                "folder itself in its place; nothing was changed"
            )


def _take_out(hooks: OldHooks, record: Record) -> Record:
    """Remove the old hooks from one settings file; return the journal with this change."""
    if not hooks.old:
        return record
    project = record.project
    text = edits.read(hooks.path) or ""
    base = _without_ours(hooks.path, text)
    known = record.settings_of(hooks.path)
    old = known.hooks if known else []
    changed = Settings(
        path=hooks.path,
        before=base,
        mtime_ns=os.stat(hooks.path).st_mtime_ns,
        after_sha256=sha256(without_old(base, project)),
        hooks=[*old, *(pair for pair in hooks.old if pair not in old)],
    )
    record = record.with_settings(changed)
    records.write(record)
    edit = edits.Edit(hooks.path, text, without_old(text, project))
    edits.make_beneath(edit, lambda original: without_old(original, project))
    return record


def _without_ours(path: str, text: str) -> str:
    """Return the text of a settings file without hivepipe's hooks."""
    known = edits.manifest_of(path)
    if known is None:
        return text
    original = known.original if known.is_of(text) else None
    return settings_text.without_entries(text) if original is None else original


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _refuse_processes(plan: Plan) -> None:
    found = plan.processes()
    if found:
        names = "; ".join(f"{each.text} (pid {each.pid})" for each in found)
        raise MigrationError(
            f"still running: {names}. End it, then run `hivepipe migrate` again: it continues from "
            "here. An old queue worker ends by itself five minutes after its last entry"
        )


def _move_aside(plan: Plan, record: Record) -> Record:
    if not plan.moves:
        return record
    asides = [*record.asides, *([] if plan.aside in record.asides else [plan.aside])]
    new = [move for move in plan.moves if move not in record.moves]
    record = replace(record, moves=[*record.moves, *new], asides=asides, is_complete=False)
    with _stack_at_rest(plan):  # stopping may fail, so nothing is recorded before
        records.write(record)
        if edit := git_exclude.to_ignore(f"{plan.aside}/"):  # often only the old name is ignored
            edits.make(edit)
        for move in plan.moves:
            _move(move, plan.aside)
    return record


def _stack_at_rest(plan: Plan) -> AbstractContextManager[None]:
    """Stop the stack during the block if the predecessor's database is in place of the stack's.

    Such a stack cannot store anything. The next event starts the stack again.
    """
    if not any(move.source.endswith(_MOVED_WITH_ITS_DATABASE) for move in plan.moves):
        return nullcontext()
    place = Place(plan.project, plan.home, read_record(plan.project))
    return lifecycle.at_rest(Stack.of(place))


def _move(move: Move, aside: str) -> None:
    """Rename a file or folder. Contents, mode and times stay unchanged."""
    if move.target != aside:
        make_private(aside)
        make_private(os.path.dirname(move.target))
    with os_error_as(MigrationError, f"{move.source} cannot be moved"):
        os.rename(move.source, move.target)


def _install(plan: Plan, record: Record) -> None:
    """Register the project, and add the hooks unless a settings file contains them."""
    has_hooks = any(_has_our_hooks(scope, plan.project) for scope in Scope)
    if plan.is_registered and has_hooks:
        return
    wanted = installation.plan(Scope.LOCAL)
    if has_hooks:
        settings = replace(wanted.settings, after=wanted.settings.before)
        wanted = replace(wanted, settings=settings, exclude=None)
    installation.carry_out(wanted, adopt=record.is_moved)


def _has_our_hooks(scope: Scope, project: str) -> bool:
    path = claude_code.settings_path(scope, project)
    return os.path.exists(path) and bool(settings_text.entries(edits.read(path) or ""))


def _import(plan: Plan, record: Record) -> ImportResult:
    with opened(plan.home):
        pass  # opening creates a missing database
    now = replace(plan, record=record, found=None if plan.moves else plan.found)
    return import_homes(plan.database, now.homes())
