"""Command `migrate`: replaces the predecessor's hooks, and imports its database and queue."""

import os
import sys
from collections import Counter
from pathlib import Path

import click

from hivepipe.cli.import_old import show_unimported
from hivepipe.cli.migrate_json import plan_entry, result_entry, undone_entry
from hivepipe.cli.probe import entries, is_good, no_probe_option, probe_here, show_probe
from hivepipe.cli.tables import as_json, json_option, show_json
from hivepipe.cli.terminal import confirm_or_end, say, say_prose, short, yes_option
from hivepipe.db.legacy_rows import TABLES
from hivepipe.doctor.probing import Probe
from hivepipe.home import main_checkout, real_path
from hivepipe.migration import plan as planning
from hivepipe.migration import record as records
from hivepipe.migration.carry_out import Result, carry_out
from hivepipe.migration.home import find_above
from hivepipe.migration.hooks import OldHooks, command_of
from hivepipe.migration.importing import BEFORE, TAKEN, Outcome
from hivepipe.migration.plan import Plan, refuse_foreign_database
from hivepipe.migration.record import Record
from hivepipe.migration.rows import NOTHING, ImportResult
from hivepipe.migration.undo import undo as undo_migration
from hivepipe.operations.found_exports import Row
from hivepipe.text.visible import printable

_UNREAD = "a part of the old database could not be read; it is named above"


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
@yes_option
@click.option(
    "--from",
    "folders",
    multiple=True,
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="An old .hive-mind elsewhere, which is read and not moved.",
)
@click.option("--undo", is_flag=True, help="Restore the old home and the old hooks.")
@no_probe_option
@json_option
def migrate(dry_run: bool, folders: tuple[str, ...], undo: bool, no_probe: bool) -> None:
    """Move over from the bash hooks and the file queue that hivepipe replaces.

    Removes the old hooks from the settings files, renames the old .hive-mind, installs hivepipe and
    imports the old database and queue. Nothing is deleted. The command can be run again.
    """
    if undo and dry_run:
        raise click.UsageError("--undo and --dry-run exclude each other")
    if undo:
        _undo()
        return
    plan = planning.plan(list(folders))
    rehearsed = NOTHING if plan.is_empty else _rehearsed(plan)
    is_to_do = not (plan.is_empty or _is_done(plan, rehearsed))
    planned = plan_entry(plan, rehearsed) if as_json() else {}  # before anything is changed
    if not as_json():
        _show_found(plan, rehearsed, is_to_do)
    if dry_run or not is_to_do:
        if not show_json(changed=False, plan=planned, result=None, probe=None) and is_to_do:
            say("nothing was changed")
        sys.exit(0 if is_to_do or rehearsed.is_read else 1)
    confirm_or_end("Migrate now?")
    result = carry_out(plan)
    if not as_json():
        _show_result(plan, result)
    probed = None if no_probe else probe_here()
    probes = None if probed is None else entries(probed)
    if not show_json(changed=True, plan=planned, result=result_entry(plan, result), probe=probes):
        _show_end(probed, result)
    sys.exit(0 if is_good(probed or []) and result.rows.is_read else 1)


def _rehearsed(plan: Plan) -> ImportResult:
    refuse_foreign_database(plan)
    return plan.rehearsed()


def _undo() -> None:
    project = main_checkout(real_path("."))
    confirm_or_end("Restore the old home and the old hooks?")
    record = undo_migration(project)
    if not show_json(**undone_entry(record)):
        show_undone(record)


def show_undone(record: Record) -> None:
    for move in record.moves:
        if os.path.lexists(move.source):
            say_prose(f"home     {short(move.source)} is back in its place")
    for settings in record.settings:
        say_prose(
            f"hooks    {len(settings.hooks)} old ones were restored in {short(settings.path)}"
        )


def _is_done(plan: Plan, rehearsed: ImportResult) -> bool:
    has_new = any(each.outcome == TAKEN for each in rehearsed.imported.outcomes)
    is_over = plan.record.is_complete and plan.is_registered
    return is_over and not (plan.old_hooks or plan.moves or has_new)


def _show_found(plan: Plan, rehearsed: ImportResult, is_to_do: bool) -> None:
    """Print the plan, or that there is nothing to migrate."""
    if plan.is_empty:
        _show_nothing(plan)
    elif not is_to_do:
        say_prose(
            f"nothing new: this project is already migrated; {old_home_location(plan.record)}", 2
        )
        _show_doubtful(plan.hooks)
        if not rehearsed.is_read:
            _show_rows(rehearsed, "can be")
            say_prose(_UNREAD, 2)
    else:
        _show_plan(plan)
        _show_rows(rehearsed, "will be")


def _show_nothing(plan: Plan) -> None:
    say_prose(
        f"{short(plan.project)} has nothing to migrate: there is no .hive-mind of the old hooks, "
        "and the settings of Claude Code contain none of these hooks",
        2,
    )
    _show_doubtful(plan.hooks)
    above = find_above(plan.project)
    if above:
        say_prose(f"{short(above)} has an old .hive-mind: run `hivepipe migrate` there", 2)
    elif not plan.is_registered:
        say("`hivepipe init` installs hivepipe here")


def _show_plan(plan: Plan) -> None:
    for hooks in plan.hooks:
        if hooks.old:
            say_prose(
                f"hooks    {len(hooks.old)} old ones will be removed from {short(hooks.path)}:"
            )
            for event, entry in hooks.old:
                say(f"         {event}: {command_of(entry)}")
    _show_doubtful(plan.hooks)
    for move in plan.moves:
        say_prose(f"home     {short(move.source)} will be moved to {short(move.target)}")
    for each in plan.elsewhere:
        say_prose(f"home     {short(str(each.folder))} will be read and not moved")
    for process in plan.processes():
        text = printable(process.text)
        say_prose(f"process  {process.pid} is still running and must be ended first: {text}")
    if not plan.is_registered:
        say_prose(f"install  hivepipe will be installed; its data will be in {short(plan.home)}")
    _show_queue(plan)
    if plan.files:
        named = [f"{plan.files.archives} archives", *plan.files.exports]
        say_prose(
            f"files    these will be copied from {short(plan.files.folder)}: {', '.join(named)}"
        )
    _show_hive(plan.project)


def _show_queue(plan: Plan) -> None:
    for each in plan.homes():
        if each.queue:
            counts = ", ".join(f"{number} {part}" for part, number in each.queued.items())
            say_prose(f"queue    {short(str(each.queue))} has {counts}")


def _show_hive(project: str) -> None:
    workers = Path(project, ".hive", "workers")
    if workers.is_dir():
        number = len(os.listdir(workers))
        say_prose(
            f"hive     .hive is unchanged ({number} workers); `hivepipe hive init --adopt` uses it"
        )


def _show_doubtful(found: list[OldHooks]) -> None:
    for hooks in found:
        if hooks.trouble:
            say_prose(
                f"hooks    {short(hooks.path)} {hooks.trouble}, so check it for old hooks yourself"
            )
        for event, entry in hooks.doubtful:
            command = printable(command_of(entry))
            say_prose(
                f"hooks    one in {short(hooks.path)} is not removed: it may be your own, and may "
                f"write to .hive-mind: {event}: {command}"
            )


def _show_rows(taken: ImportResult, verb: str) -> None:
    show_unimported(taken.imported, taken.left_out)
    totals = Counter(each.outcome for each in taken.imported.outcomes)
    rows = Counter(_kind(each) for each in taken.imported.outcomes if each.outcome == TAKEN)
    counts = ", ".join(f"{number} {kind}" for kind, number in rows.items())
    before = f"; {totals[BEFORE]} were imported before" if totals[BEFORE] else ""
    text = f"{counts} {verb} imported" if counts else "there is nothing new to import"
    say_prose(f"rows     {text}{before}")


def _kind(outcome: Outcome) -> str:
    """Return the kind of an outcome: the table of a row, or one kind for all queue entries."""
    return outcome.kind if outcome.kind in TABLES else "entries of the queue"


def _show_files(rows: list[Row]) -> None:
    totals = Counter(row.outcome for row in rows)
    for row in rows:
        if row.outcome not in (TAKEN, BEFORE):
            say_prose(f"not imported: {short(row.path)}: {row.reason}", 2)
        elif row.outcome == BEFORE and row.reason:
            say_prose(f"files    {short(row.path)}: {row.reason}")
    if rows:
        before = f"; {totals[BEFORE]} were copied before" if totals[BEFORE] else ""
        say_prose(f"files    {totals[TAKEN]} were copied{before}")


def old_home_location(record: Record) -> str:
    """Return a text that says where the old home is now."""
    kept = [short(each) for each in record.asides if os.path.isdir(each)]
    return f"the old home is kept in {', '.join(kept)}" if kept else "no old home was moved"


def _show_result(plan: Plan, result: Result) -> None:
    _show_rows(result.rows, "were")
    _show_files(result.files)
    record = records.read(plan.project)
    done = "complete" if result.rows.is_read else "not complete"
    say_prose(f"the migration is {done}; {old_home_location(record)}" if record else "done", 2)


def _show_end(probed: list[Probe] | None, result: Result) -> None:
    if probed is not None:
        show_probe(probed)
    say_prose("restart the open Claude Code sessions, because they still run the old hooks", 2)
    say_prose(
        "`hivepipe doctor` checks the installation; `hivepipe migrate --undo` reverts the "
        "migration",
        2,
    )
    if not result.rows.is_read:
        say_prose(_UNREAD, 2)
