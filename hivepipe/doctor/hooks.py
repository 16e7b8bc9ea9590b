"""Checks whether the hooks are registered and will run."""

import os
import shlex
import stat
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from hivepipe.doctor.facts import Facts, Finding, SettingsFile
from hivepipe.errors import RegistrationError
from hivepipe.files.owner import another_owner
from hivepipe.home import IN_PROJECT, default_home, read_record
from hivepipe.install import claude_code, settings_text
from hivepipe.install.claude_code import Scope
from hivepipe.install.hook_entries import Entry, Form
from hivepipe.install.installation import events_for
from hivepipe.install.known_entries import (
    EDITED,
    form_of,
    is_edited,
    is_old,
    launcher_of,
    old_paths,
)
from hivepipe.install.renamed import why_renamed
from hivepipe.programs import find_program, run_to_end
from hivepipe.stack import hook_copy
from hivepipe.stack.home_marks import is_whole
from hivepipe.stack.hook_bundle import MODULES, source_of
from hivepipe.stack.registration import own_home, refuse_broken_line

_START_SECS = 20
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def registered(facts: Facts) -> Iterator[Finding]:
    """Find a project without hooks of settings or plugin, or whose path has a line break."""
    try:
        project, home = facts.place.project, facts.place.home
        refuse_broken_line(project, home, own_home(project))
    except RegistrationError as error:
        yield Finding(str(error))
        return
    if facts.who_runs_hooks:
        return
    if facts.is_in_containers and not facts.claude:  # a container of the stack
        text = "no hook is registered here, nor Claude Code installed: run `hivepipe init` where it"
        yield Finding(f"{text} runs", is_note=True)
    else:
        is_users = facts.place.home == default_home() and read_record(default_home())
        of_user = " --user" if is_users else ""
        yield Finding("no hook is registered with Claude Code here", f"hivepipe init{of_user}")


def plugged_in(facts: Facts) -> Iterator[Finding]:
    """Find a plugin that is enabled but not installed, or differs from the package's version."""
    plugin = facts.plugin
    if plugin and not plugin.is_usable:
        text = f"the plugin {plugin.id} is switched on but not installed"
        yield Finding(text, f"claude plugin install {shlex.quote(plugin.id)}")
    elif plugin and plugin.version != (installed := version("hivepipe")):
        text = f"the plugin has version {plugin.version}, the package {installed}: both work"
        yield Finding(f"{text}, but the older one should be upgraded", is_note=True)


def recorded(facts: Facts) -> Iterator[Finding]:
    """Find hooks without a record, so that events wait on disk or go to the default home."""
    ours = [file for file in facts.with_hooks if file.scope is not Scope.USER]
    if ours and (renamed := why_renamed(facts.place.project)):
        yield Finding(renamed)
    elif ours and not read_record(facts.place.project):
        text = f"this project has hooks but is not registered: events go to {facts.place.home}"
        old = f"{facts.place.project}{IN_PROJECT}"
        if not is_whole(old):  # a home of 1.0.0 has moved with the folder
            text += "; if the folder was renamed, run `hivepipe move-home --from OLD` instead"
        yield Finding(text, f"hivepipe init{' --adopt' if os.path.isdir(old) else ''}")
    elif facts.who_runs_hooks and not facts.place.python and not facts.is_alive:
        text = f"hivepipe is not set up for these hooks: events wait in {facts.place.home}"
        is_users = facts.place.home == default_home()
        yield Finding(text, "hivepipe init --user" if is_users else facts.up)


def programs(facts: Facts) -> Iterator[Finding]:
    """Find a missing hook program or interpreter, for example after an upgrade of Python."""
    for file in facts.with_hooks:
        gone = _gone(file)
        owner = another_owner(file.path)
        end = f"these hooks of {owner} fail in your sessions" if owner else "nothing is recorded"
        for path in sorted(gone)[:1]:
            yield Finding(f"{file.path} runs {path}, which {_why_gone(path)}: {end}", _init(file))
        for path in sorted(_launchers(file) - gone):
            if not os.access(path, os.X_OK):
                yield Finding(f"{path} cannot be executed: nothing is recorded", _init(file))


def origin(facts: Facts) -> Iterator[Finding]:
    """Find hooks that run another installation of hivepipe than that of this command."""
    here = hook_copy.launcher()
    for file in facts.with_own_hooks:
        for path in sorted(_launchers(file) - {here}):
            if os.path.exists(path):  # the check `programs` reports a missing one
                text = f"{file.path} runs the hooks of another installation, {path}, not {here}"
                yield Finding(text, _init(file))


def complete(facts: Facts) -> Iterator[Finding]:
    """Find events whose hook was deleted, or which an older hivepipe did not know."""
    for file in facts.with_own_hooks:
        known = {event.name for event in events_for(file.scope, facts.claude)}
        missing = sorted(known - {event for event, _ in file.entries})
        if missing:
            yield Finding(f"{file.path} has no hook for {', '.join(missing)}", _init(file))


def unknown(facts: Facts) -> Iterator[Finding]:
    """Find hooks of events that this version of Claude Code lacks, as after a downgrade."""
    claude = facts.claude
    if not claude:
        return
    ignores_file = claude < claude_code.SKIPS_UNKNOWN_EVENTS_SINCE
    for file in facts.with_own_hooks:
        known = {event.name for event in events_for(file.scope, claude)}
        names = sorted({event for event, _ in file.entries} - known)
        if names:
            text = f"{file.path} has hooks for {', '.join(names)}"
            text = f"{text}, which Claude Code {claude_code.version_text(claude)} does not know"
            end = ": it ignores the whole file" if ignores_file else ""
            yield Finding(text + end, _init(file), is_note=not ignores_file)


def outdated(facts: Facts) -> Iterator[Finding]:
    """Find hooks of an older hivepipe: they run files of the package, which upgrades replace."""
    for file in facts.with_own_hooks:
        for event, entry in file.entries:
            if is_old(entry["hooks"][0]):
                text = f"{file.path} runs the hook for {event} as an older version did"
                yield Finding(f"{text}: events get lost while the package is upgraded", _init(file))
                break


def edited(facts: Facts) -> Iterator[Finding]:
    """Find hooks that were edited by hand, which `init` and `uninstall` leave unchanged."""
    for file in facts.settings_files:
        if settings_text.file_has_entries(file.path, is_edited):
            text = f"{file.path}: {EDITED}: delete it, and run `hivepipe init` again"
            yield Finding(text, is_note=True)


def stale(facts: Facts) -> Iterator[Finding]:
    """Find a hook copy of another version, after an upgrade without a restart."""
    here = hook_copy.launcher()
    uses = [file for file in facts.with_hooks if here in _launchers(file)]
    if uses and os.path.exists(here) and not hook_copy.is_fresh():
        text = f"{here} has another version than the installed package"
        yield Finding(text, _init(uses[0]))


def shared(facts: Facts) -> Iterator[Finding]:
    """Find hooks that look up the hook program by name although no such program exists."""
    forms = {form_of(entry["hooks"][0]) for file in facts.with_hooks for _, entry in file.entries}
    known = os.access(hook_copy.default_launcher(), os.X_OK) or find_program("hivepipe-hook")
    if Form.SHARED in forms and not known:
        text = "the project's hooks run your hook program, which does not exist: they do nothing"
        yield Finding(text, "hivepipe init --project")


def interpreter(facts: Facts) -> Iterator[Finding]:
    """Find a recorded interpreter that cannot import hivepipe.

    Hooks start the stack with the recorded interpreter. If it is the interpreter of this process,
    it is not checked.
    """
    python = facts.record.get("python")
    if python and python != sys.executable and not _has_hivepipe(python):
        yield Finding(f"the recorded Python, {python}, has no hivepipe", "hivepipe init")


def writable(_facts: Facts) -> Iterator[Finding]:
    """Find hook files that others can write to, which lets them run code as this user."""
    copy = Path(hook_copy.launcher())
    copies = [path for path in (copy, copy.with_name("hook_path")) if path.exists()]
    files = [*copies, *map(source_of, MODULES)]
    folders = {path.parent for path in files}
    for path in sorted({*files, *folders}):
        if path.stat().st_mode & _OTHERS_MAY_WRITE:
            text = f"other users can write {path}, which runs as you on every event"
            yield Finding(text, f"chmod go-w {shlex.quote(str(path))}")


def doubled(facts: Facts) -> Iterator[Finding]:
    """Find hooks that run twice per event. The event is stored once, but costs twice the time."""
    plugin = facts.plugin
    files = [
        file for file in facts.with_own_hooks if file.scope is not Scope.CODEX and not _gone(file)
    ]
    if plugin and plugin.is_usable and files:
        is_of_team = files[0].scope is Scope.PROJECT  # other members may lack the plugin
        text = f"the plugin {plugin.id} and {files[0].path} both run the hooks: one is enough"
        yield Finding(text, "" if is_of_team else _init(files[0]), is_note=is_of_team)
    elif len({str(sorted(file.entries, key=str)) for file in files}) > 1:
        names = " and ".join(file.path for file in files)
        text = f"{names} run different copies of hivepipe's hooks: one is enough"
        of_user = " --user" if files[-1].scope is Scope.USER else ""
        yield Finding(text, f"hivepipe uninstall{of_user}")


def _launchers(file: SettingsFile) -> set[str]:
    """Return the programs of the hooks in a settings file."""
    return {launcher_of(entry["hooks"][0]) for _, entry in file.entries} - {""}


def _gone(file: SettingsFile) -> set[str]:
    """Return the unreadable files that the hooks in a settings file need."""
    paths = {path for _, entry in file.entries for path in _needed(entry)}
    return {path for path in paths if not os.access(path, os.R_OK)}


def _why_gone(path: str) -> str:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return "does not exist"
    except OSError:
        pass
    return "you may not read"


def _needed(entry: Entry) -> list[str]:
    """Return the files that an entry needs. A program that is looked up by name is left out."""
    handler = entry["hooks"][0]
    if is_old(handler):
        return old_paths(handler)
    path = launcher_of(handler)
    interpreter = hook_copy.interpreter_of(path or hook_copy.default_launcher())
    return [path, *interpreter] if path else interpreter


def _init(file: SettingsFile) -> str:
    """Return the command that renews the hooks of a file, or "" if another user owns it."""
    if another_owner(file.path):
        return ""
    return "hivepipe init" if file.scope is Scope.LOCAL else f"hivepipe init --{file.scope}"


def _has_hivepipe(python: str) -> bool:
    command = [python, "-I", "-c", "import hivepipe.stack.supervisor as s; print(s.__name__)"]
    done = run_to_end(command, _START_SECS)
    return done is not None and done.stdout.strip() == b"hivepipe.stack.supervisor"
