"""Commands `init` and `uninstall`: add hooks to Claude Code's settings and remove them."""

import difflib
import os
import shlex
import sys

import click

from hivepipe.cli.migrate import show_given_back
from hivepipe.cli.move_home import move_and_show
from hivepipe.cli.paths import short
from hivepipe.cli.probe import is_good, no_probe_option, probe_here, show_probe
from hivepipe.cli.terminal import confirm, confirm_or_end, say
from hivepipe.config.asking import in_a_line, waiting
from hivepipe.errors import NoRedisServerError
from hivepipe.home import Place, is_in_project, read_record, record_path
from hivepipe.install import edits, installation, removal
from hivepipe.install.claude_code import Scope, in_words
from hivepipe.install.hook_entries import EVENTS, Form, Version, events_of
from hivepipe.migration import record as records
from hivepipe.migration.hooks import find_hooks
from hivepipe.migration.record import Record
from hivepipe.migration.undo import undo as give_back
from hivepipe.stack.lock import Stack
from hivepipe.stack.redis_server import find_server
from hivepipe.stack.registration import refuse_predecessor
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
@click.option("--adopt", is_flag=True, help="Use the .hive-mind that came with this project.")
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
        raise click.UsageError("one of --local, --project, --user and --codex")
    if codex and statusline:
        raise click.UsageError("--statusline is for Claude Code")
    plan = installation.plan(scope, adopt=adopt, in_tree=in_tree, with_line=statusline)
    if dry_run:
        refuse_predecessor(plan.project, plan.home)
        _show_diffs(plan.changes)
        say(f"would record into {short(plan.home)}; nothing was changed")
        return
    was_in_tree = is_in_project(plan.home)
    plan = installation.carry_out(plan, adopt)
    _show_installed(plan, scope)
    if was_in_tree:
        _offer_to_move(plan)
    _show_old_hooks(plan)
    probed = [] if no_probe else probe_here()
    if not no_probe:
        show_probe(probed)
    _show_what_is_next(plan, scope)
    sys.exit(0 if is_good(probed) else 1)


@click.command()
@click.option("--user", is_flag=True, help="Undo `init --user`.")
@click.option("--purge", is_flag=True, help="Also delete the recorded data.")
@click.option("--yes", is_flag=True, help="Do not ask before deleting.")
@dry_run_option
def uninstall(user: bool, purge: bool, yes: bool, dry_run: bool) -> None:
    """Remove the hooks and stop the stack; the recorded data stays, unless --purge."""
    plan = removal.plan(user, purge=purge)
    purge = purge and not plan.is_shared
    migrated = None if user else records.read(plan.place.project)
    if plan.is_empty and not (purge and (plan.data or migrated)):
        say(_nothing_to_do(plan.place, user))
        _show_copies(plan)
        return
    if dry_run:
        _show_diffs([*plan.settings, *plan.excludes])
        _show_copies(plan)
        _say_all(_about_data(plan, purge, "would be "))
        if purge:
            _show_files(plan)
        if migrated:
            _show_migrated(migrated)
        say("nothing was changed")
        return
    if purge and plan.data and not yes:
        _show_data(plan)
        confirm_or_end("Delete all of it, for good?")
    refused = removal.carry_out(plan, purge)
    _show_removed(plan, purge)
    for path in refused:
        say(f"left     {short(path)} was edited since: its earlier text is saved beside it")
    if migrated and purge:
        show_given_back(give_back(plan.place.project))
    elif migrated:
        _show_migrated(migrated)


def _show_migrated(record: Record) -> None:
    kept = [short(each) for each in record.asides if os.path.isdir(each)]
    where = f"kept in {', '.join(kept)}" if kept else "out of the settings"
    say(
        f"old      what `hivepipe migrate` found is {where}: hivepipe migrate --undo, or "
        "uninstall --purge, puts it back"
    )


def _show_diffs(changes: list[edits.Edit]) -> None:
    for edit in changes:
        if edit.after == edit.before:
            continue
        before, after = ((text or "").splitlines() for text in (edit.before, edit.after))
        name = short(edit.path)
        for line in difflib.unified_diff(before, after, name, name, lineterm=""):
            say(line[:1] + line[1:].expandtabs(4))  # tabs begin behind the sign


def _show_installed(plan: installation.Plan, scope: Scope) -> None:
    kept = ", beside what was there" if plan.settings.before else ""
    if plan.plugin:
        say(f"hooks    run by the plugin {plan.plugin.id} {plan.plugin.version}")
        if plan.settings in plan.changes:
            say(f"         those in {short(plan.settings.path)} are taken out: one is enough")
    elif plan.settings in plan.changes:
        added = len(installation.events_for(scope, plan.claude))
        say(f"hooks    {added} added to {short(plan.settings.path)}{kept}")
    else:
        say(f"hooks    already in {short(plan.settings.path)}")
    if not plan.plugin and scope is not Scope.CODEX:
        _show_left_out(plan.claude)
    if plan.exclude in plan.changes:
        say(f"git      {short(plan.exclude.path)} ignores that file")
    if plan.is_committed:
        say("         git tracks this file, and its paths are those of this machine")
    say(f"data     {short(plan.home)}, for you alone")
    if plan.tree:
        where = "database, archives and exports are in the work tree, where git can delete them"
        say(f"         {where}: hivepipe move-home")
    say(f"record   {short(record_path(plan.project))}")
    if plan.form is Form.SHELL and scope is not Scope.CODEX:
        say("form     through a shell: the path of the hooks needs quotes")
    if scope is Scope.PROJECT:
        say("form     by name: these hooks do nothing on a machine without hivepipe")


def _show_left_out(claude: Version | None) -> None:
    """Name the events without a hook: another version of Claude Code may know them."""
    known = events_of(claude)
    names = ", ".join(event.name for event in EVENTS if event not in known)
    if names and claude:
        say(f"         Claude Code {in_words(claude)} does not know {names}")
        say("         after an upgrade of Claude Code, `hivepipe init` adds them")
    elif names:
        say(f"         without {names}:")
        say("         only newer versions of Claude Code know them, and `claude` is not on PATH")


def _offer_to_move(plan: installation.Plan) -> None:
    """Offer to move the data of a 1.0.0 home; its trusted files have left the work tree."""
    if sys.stdin.isatty() and confirm(f"Move them to {short(plan.home)} now?"):
        move_and_show(plan.project, Stack.prepared(plan.home), "")


def _show_old_hooks(plan: installation.Plan) -> None:
    for found in find_hooks(plan.project):
        if found.old:
            text = f"{len(found.old)} old bash hooks are still in {short(found.path)}"
            say(f"         {text}: hivepipe migrate takes them out")


def _show_what_is_next(plan: installation.Plan, scope: Scope) -> None:
    state = read_record(plan.project).get("state")
    say()
    say("Next")
    if state == "off":
        say("  hivepipe on        this project is switched off: hooks do nothing")
    if asking := waiting(plan.home, plan.project):
        say(f"  hivepipe trust     this repository asks for something: {in_a_line(asking)}")
    try:
        find_server()
    except NoRedisServerError as error:
        say(f"  {error}")
        say("  until then events wait on disk; `hivepipe drain` applies them without Redis")
    where = "in any project" if scope is Scope.USER else "in this folder"
    if scope is Scope.CODEX:
        say("  codex              in this folder: it asks whether you trust the hooks")
    else:
        say(f"  claude             {where}: its first event starts the stack")
        say("                     (it asks whether you trust a new folder, and names these hooks)")
    say("  hivepipe sessions  shows what was recorded; hivepipe doctor checks the installation")
    say()
    say("`hivepipe what` shows what is recorded, `hivepipe off` pauses recording,")
    say("`hivepipe uninstall` removes the hooks.")


def _show_removed(plan: removal.Removal, purge: bool) -> None:
    for edit in plan.settings:
        say(f"hooks    {short(edit.path)} {_became(edit)}")
    _show_copies(plan)
    if plan.plugin and plan.plugin.is_there:
        say(f"hooks    those of the plugin stay: claude plugin uninstall {plan.plugin.id}")
    for edit in plan.excludes:
        say(f"git      {short(edit.path)} is as it was")
    if plan.is_registered:
        say("record   removed")
    if plan.is_shared:
        say("stack    keeps running: other projects use it")
    elif plan.is_registered:
        say("stack    stopped")
    _say_all(_about_data(plan, purge, ""))


def _show_copies(plan: removal.Removal) -> None:
    """Name settings of worktrees' branches, whose hooks would fail from now on."""
    for path in plan.copies:
        folder = shlex.quote(os.path.dirname(os.path.dirname(path)))
        say(
            f"hooks    {short(path)} has a copy of them, and Claude Code would show an error on "
            f"each event there: cd {folder} && hivepipe uninstall"
        )


def _became(edit: edits.Edit) -> str:
    """Return what happened to a settings file."""
    if edit.before is None:
        return "was gone already"
    if edit.after is None:
        return "removed: it was not there before"
    return (
        "given back as it was" if edit.is_restored else "was edited since: only our hooks are gone"
    )


def _about_data(plan: removal.Removal, purge: bool, would_be: str) -> list[str]:
    if plan.is_shared:
        return ["data     kept: other projects use it"]
    if not plan.data:
        return ["data     there is none"]
    total = size(sum(entry.size_bytes for entry in plan.data))
    if purge:
        total = size(sum(each for _, each in plan.sizes))
        return [f"data     {would_be}deleted: {total}", *_left(plan)]
    if plan.holds_nothing:
        return [f"data     nothing was recorded: {would_be}removed"]
    shown = [entry.path for entry in plan.data if not entry.path.endswith("/.gitignore")]
    kept = [f"         {short(path)}" for path in shown]
    how = "hivepipe uninstall --purge deletes it"
    return [f"data     {would_be}kept, {total}; {how}", *kept]


def _say_all(lines: list[str]) -> None:
    for line in lines:
        say(line)


def _left(plan: removal.Removal) -> list[str]:
    """Return a line for each file that stays, with the reason."""
    return [f"left     {short(path)}: {why}" for path, why in plan.holdings.left]


def _show_files(plan: removal.Removal) -> None:
    """Show every file, and every hive worker's folder, that `--purge` deletes."""
    for path, size_bytes in plan.sizes:
        say(f"{size(size_bytes):>9}  {short(path)}")


def _show_data(plan: removal.Removal) -> None:
    for entry in plan.data:
        if not entry.path.endswith("/.gitignore"):
            say(f"{size(entry.size_bytes):>9}  {short(entry.path)}")
    for line in _left(plan):
        say(line)


def _nothing_to_do(place: Place, user: bool) -> str:
    if user:
        return "hivepipe init --user was never run here, or is undone: nothing to do"
    return (
        f"{short(place.project)} has no hooks of hivepipe and no record: nothing to do. "
        "For all your projects: hivepipe uninstall --user"
    )
