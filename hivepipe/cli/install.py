"""Commands `init` and `uninstall`: add hooks to Claude Code's settings and remove them."""

import difflib
import os
import shlex
import sys

import click

from hivepipe.cli.migrate import old_home_location, show_undone
from hivepipe.cli.move_home import move_and_show
from hivepipe.cli.parameters import given, shared_option
from hivepipe.cli.probe import is_good, no_probe_option, probe_here, show_probe
from hivepipe.cli.terminal import confirm, confirm_or_end, say, say_prose, short, unbroken
from hivepipe.config.asking import in_a_line, waiting
from hivepipe.errors import NoRedisServerError
from hivepipe.files.owner import another_owner
from hivepipe.home import Place, is_in_project, read_record, record_path
from hivepipe.install import edits, installation, removal, settings_text
from hivepipe.install.claude_code import Scope, version_text
from hivepipe.install.git_exclude import missing_line
from hivepipe.install.hook_entries import EVENTS, Form, Version, events_of
from hivepipe.install.known_entries import EDITED
from hivepipe.install.status_line import has_ours
from hivepipe.migration import record as records
from hivepipe.migration.hooks import find_hooks
from hivepipe.migration.record import Record
from hivepipe.migration.undo import undo as undo_migration
from hivepipe.stack.redis_server import find_server
from hivepipe.stack.registration import refuse_predecessor
from hivepipe.stack.runtime_folder import Stack
from hivepipe.text.sizes import size

dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Show what would change, and change nothing."
)


@click.command()
@click.option("--local", is_flag=True, help="For you, in this project (the default).")
@click.option(
    "--project", is_flag=True, help="For everyone who works on this project, through git."
)
@click.option("--user", is_flag=True, help="For you, in all your projects.")
@click.option("--codex", is_flag=True, help="For you, in this project, in Codex CLI.")
@click.option("--adopt", is_flag=True, help="Use the data that this project contains already.")
@click.option("--in-tree", is_flag=True, help="Keep database, archives and exports in the project.")
@click.option("--statusline", is_flag=True, help="Also show costs and context in the status line.")
@no_probe_option
@dry_run_option
def init(
    local: bool,
    project: bool,
    user: bool,
    codex: bool,
    adopt: bool,
    in_tree: bool,
    statusline: bool,
    no_probe: bool,
    dry_run: bool,
) -> None:
    """Install hivepipe's hooks for this project, or for all of your projects."""
    chosen = {Scope.LOCAL: local, Scope.PROJECT: project, Scope.USER: user, Scope.CODEX: codex}
    scope, *others = [scope for scope, is_asked in chosen.items() if is_asked] or [Scope.LOCAL]
    if others:
        raise click.UsageError("--local, --project, --user and --codex exclude each other")
    if codex and statusline:
        raise click.UsageError("--statusline is for Claude Code")
    plan = installation.plan(scope, adopt=adopt, in_tree=in_tree, with_line=statusline)
    if dry_run:
        refuse_predecessor(plan.project, plan.home)
        _show_diffs(plan.changes)
        say_prose(f"the data would be stored in {short(plan.home)}; nothing was changed", 2)
        return
    was_in_tree = is_in_project(plan.home)
    plan = installation.carry_out(plan, adopt)
    _show_installed(plan, scope)
    if was_in_tree and sys.stdin.isatty() and confirm(f"Move them to {short(plan.home)} now?"):
        move_and_show(plan.project, Stack.prepared(plan.home), "")
    _show_old_hooks(plan)
    probed = [] if no_probe else probe_here()
    if not no_probe:
        show_probe(probed)
    _show_what_is_next(plan, scope)
    sys.exit(0 if is_good(probed) else 1)


@click.command()
@click.option("--user", is_flag=True, help="Undo `init --user`.")
@click.option("--purge", is_flag=True, help="Also delete the recorded data.")
@shared_option("--yes", is_flag=True, help="Do not ask before deleting.")
@dry_run_option
def uninstall(user: bool, purge: bool, dry_run: bool) -> None:
    """Remove the hooks and stop the stack; the recorded data stays, unless --purge."""
    plan = removal.plan(user, purge=purge)
    purge = purge and not plan.is_shared
    migrated = None if user else records.read(plan.place.project)
    if plan.is_empty and not (purge and (plan.data or migrated)):
        say_prose(_nothing_to_do(plan.place, user), 2)
        _show_kept_hooks(plan)
        return
    if dry_run:
        _show_diffs([*plan.settings, *plan.excludes])
        _show_kept_hooks(plan)
        _say_all(_about_data(plan, purge, is_dry=True))
        if purge:
            for path, size_bytes in plan.sizes:
                say(f"{size(size_bytes):>9}  {short(path)}")
        if migrated:
            _show_migrated(migrated)
        say("nothing was changed")
        return
    if purge and plan.data and not given("yes"):
        _show_data(plan)
        confirm_or_end("Delete all of this permanently?")
    refused = removal.carry_out(plan, purge)
    _show_removed(plan, purge)
    for path in refused:
        say_prose(
            f"left     {short(path)} stays: it was edited, and its earlier text is saved beside it"
        )
    if migrated and purge:
        show_undone(undo_migration(plan.place.project))
    elif migrated:
        _show_migrated(migrated)


def _show_migrated(record: Record) -> None:
    removed = "removed the old hooks" if record.settings else "found no old hooks"
    say_prose(f"old      `hivepipe migrate` {removed}; {old_home_location(record)}")
    if record.settings or record.is_moved:
        say_prose("         `hivepipe migrate --undo` or `hivepipe uninstall --purge` undoes that")


def _show_diffs(changes: list[edits.Edit]) -> None:
    for edit in changes:
        if edit.after == edit.before:
            continue
        before, after = ((text or "").splitlines() for text in (edit.before, edit.after))
        name = short(edit.path)
        for line in difflib.unified_diff(before, after, name, name, lineterm=""):
            say(line[:1] + line[1:].expandtabs(4))  # tabs begin after the sign


def _show_installed(plan: installation.Plan, scope: Scope) -> None:
    if plan.plugin:
        say_prose(f"hooks    are run by the plugin {plan.plugin.id} {plan.plugin.version}")
        if plan.settings in plan.changes:
            path = short(plan.settings.path)
            say_prose(f"         those in {path} were removed, or they would run twice")
    else:
        _show_settings(plan.settings)
    if not plan.plugin and scope is not Scope.CODEX:
        _show_left_out(plan.claude)
    if plan.exclude in plan.changes:
        say_prose(f"git      ignores that file, by a new line in {short(plan.exclude.path)}")
    if scope in (Scope.LOCAL, Scope.CODEX) and (missing := missing_line(plan.settings.path)):
        text = f"add {unbroken(missing[1])} to {short(missing[0])}"
        say_prose(f"git      does not ignore that file, and hivepipe does not change that: {text}")
    if plan.is_committed:
        say_prose("         git tracks this file, but its paths are valid on this machine only")
    say_prose(f"data     {short(plan.home)}")
    say_prose("         only you can read it")
    if plan.tree:
        say_prose(
            "         database, archives and exports are in the work tree; git can delete them; "
            "`hivepipe move-home` moves them out of it"
        )
    say_prose(f"record   of the project: {short(record_path(plan.project))}")
    if plan.form is Form.SHELL and scope is not Scope.CODEX:
        say_prose("form     the hooks run through a shell, because their path needs quotes")
    if scope is Scope.PROJECT:
        say_prose("form     the hooks run hivepipe by name; without hivepipe they do nothing")


def _show_settings(edit: edits.Edit) -> None:
    """Say what changed in the settings file: hooks, status line."""
    before, after, path = edit.before or "", edit.after or "", short(edit.path)
    kept = "; its other content is unchanged" if before else ""
    old, new = settings_text.entries(before), settings_text.entries(after)
    if new == old:
        say_prose(f"hooks    are already in {path}")
    elif old:
        say_prose(f"hooks    {len(new)} replace {len(old)} earlier ones in {path}{kept}")
    else:
        say_prose(f"hooks    {len(new)} were added to {path}{kept}")
    if has_ours(after) and not has_ours(before):
        say_prose(f"line     the status line was added to {path}")


def _show_left_out(claude: Version | None) -> None:
    """Print the events that get no hook: Claude Code's version lacks them or is unknown."""
    known = events_of(claude)
    names = ", ".join(event.name for event in EVENTS if event not in known)
    if names and claude:
        text = f"         Claude Code {version_text(claude)} does not know {names};"
        say_prose(f"{text} after its upgrade, `hivepipe init` adds these hooks")
    elif names:
        text = f"         `claude` is not on PATH, so {names} have no hooks:"
        say_prose(f"{text} only newer versions of Claude Code know these events")


def _show_old_hooks(plan: installation.Plan) -> None:
    for found in find_hooks(plan.project):
        if found.old:
            text = f"{len(found.old)} old bash hooks are still in {short(found.path)}"
            say_prose(f"         {text}; `hivepipe migrate` removes them")


def _show_what_is_next(plan: installation.Plan, scope: Scope) -> None:
    state = read_record(plan.project).get("state", "on")
    say()
    say("Next")
    if state == "off":
        say("  hivepipe on        this project is switched off: hooks do nothing")
    elif state == "down":
        say("  hivepipe up -d     the stack is stopped: hooks keep events on disk")
    if asking := waiting(plan.home, plan.project):
        say(f"  hivepipe trust     this repository asks for something: {in_a_line(asking)}")
    try:
        find_server()
    except NoRedisServerError as error:
        say(f"  {error}")
        say("  until then events wait on disk; `hivepipe drain` stores them without Redis")
    where = "in any project" if scope is Scope.USER else "in this folder"
    if scope is Scope.CODEX:
        say("  codex              in this folder: it asks whether you trust the hooks")
    else:
        starts = ": its first event starts the stack" if state == "on" else ""
        say(f"  claude             {where}{starts}")
        say("                     (in a new folder it first asks whether you trust its hooks)")
    say("  hivepipe sessions  shows what was recorded")
    say("  hivepipe doctor    checks the installation")
    say()
    say("`hivepipe what` shows what is recorded, `hivepipe off` pauses recording,")
    say("`hivepipe uninstall` removes the hooks.")


def _show_removed(plan: removal.Removal, purge: bool) -> None:
    for edit in plan.settings:
        if not another_owner(edit.path):
            say_prose(f"hooks    {short(edit.path)} {_became(edit)}")
    _show_kept_hooks(plan)
    if plan.plugin and plan.plugin.is_usable:
        say_prose(
            "hooks    the plugin's hooks stay; "
            f"`claude plugin uninstall {plan.plugin.id}` removes them"
        )
    for edit in plan.excludes:
        if edit.after is None:
            say_prose(f"git      {short(edit.path)} was deleted, because hivepipe made it")
        else:
            say_prose(f"git      hivepipe's line was removed from {short(edit.path)}")
    if plan.is_registered:
        say_prose("record   was removed")
    if plan.runs and plan.is_shared:
        say_prose("stack    keeps running, because other projects use it")
    elif plan.runs and plan.is_registered:
        say_prose("stack    was stopped")
    _say_all(_about_data(plan, purge))


def _show_kept_hooks(plan: removal.Removal) -> None:
    """Print the settings files whose hooks stay: files of other users, edited hooks, worktrees."""
    for path, why in plan.of_others:
        say_prose(f"left     {short(path)}: {why} (`hivepipe off` keeps it from recording you)")
    for path in plan.edited:
        say_prose(f"left     {short(path)}: {EDITED}; it stays until you delete it")
    for path in plan.copies:
        folder = shlex.quote(os.path.dirname(os.path.dirname(path)))
        say_prose(
            f"hooks    {short(path)} has a copy of them, and Claude Code would show an error on "
            f"each event: `cd {folder} && hivepipe uninstall` removes it"
        )


def _became(edit: edits.Edit) -> str:
    """Return what happened to a settings file."""
    if edit.before is None and removal.is_link_outside(edit.path):
        return "is a link out of the project now, and stays"
    if edit.before is None:
        return "did not exist any more"
    if edit.after is None:
        return "was deleted, because `hivepipe init` made it"
    if edit.is_restored:
        return "was restored to its earlier content"
    return "was edited since, so only hivepipe's hooks were removed"


def _about_data(plan: removal.Removal, purge: bool, *, is_dry: bool = False) -> list[str]:
    was, stays = ("would be", "would be") if is_dry else ("was", "is")
    if plan.is_shared:
        return ["data     is kept, because other projects use it"]
    if not plan.data:
        return ["data     there is none"]
    total = size(sum(entry.size_bytes for entry in plan.data))
    if purge:
        total = size(sum(each for _, each in plan.sizes))
        return [f"data     {total} {was} deleted", *_left(plan)]
    if plan.holds_nothing:
        return [f"data     nothing was recorded; the empty home {was} deleted"]
    shown = [entry.path for entry in plan.data if not entry.path.endswith("/.gitignore")]
    kept = [f"         {short(path)}" for path in shown]
    how = "`hivepipe uninstall --purge` deletes it"
    return [f"data     {total} {stays} kept; {how}", *kept]


def _say_all(lines: list[str]) -> None:
    for line in lines:
        say_prose(line)


def _left(plan: removal.Removal) -> list[str]:
    """Return a line for each file that stays, with the reason."""
    return [f"left     {short(path)}: {why}" for path, why in plan.holdings.left]


def _show_data(plan: removal.Removal) -> None:
    for entry in plan.data:
        if not entry.path.endswith("/.gitignore"):
            say(f"{size(entry.size_bytes):>9}  {short(entry.path)}")
    _say_all(_left(plan))


def _nothing_to_do(place: Place, user: bool) -> str:
    if user:
        return "`hivepipe init --user` was never run here, or is undone: nothing to do"
    return (
        f"{short(place.project)} has no hooks of yours and no record: nothing to do. "
        "For all your projects: `hivepipe uninstall --user`"
    )
