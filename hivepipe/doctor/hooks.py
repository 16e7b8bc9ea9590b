"""Are the hooks registered, and will they run?"""

import os
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version

from hivepipe.doctor.patient import Finding, Patient, SettingsFile
from hivepipe.home import read_record
from hivepipe.install import claude_code
from hivepipe.install.claude_code import Scope
from hivepipe.install.hook_entries import EVENTS, Entry, Form
from hivepipe.install.installation import wanted_entries
from hivepipe.stack.hook_bundle import MODULES, is_compiled, source_of
from hivepipe.stack.processes import hooks_folder

_START_SECS = 20
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def registered(patient: Patient) -> Iterator[Finding]:
    """No settings file and no plugin names our hooks."""
    if not patient.who_runs_hooks:
        yield Finding("Claude Code is not told of any hook here", "hivepipe init")


def plugged_in(patient: Patient) -> Iterator[Finding]:
    """The plugin is switched on and not there, or of another version than the package."""
    plugin = patient.plugin
    if plugin and not plugin.is_there:
        text = f"the plugin {plugin.id} is switched on and not installed"
        yield Finding(text, f"claude plugin install {shlex.quote(plugin.id)}")
    elif plugin and plugin.version != (installed := version("hivepipe")):
        text = f"the plugin is {plugin.version}, the package {installed}: they work together"
        yield Finding(f"{text}; still, bring the older one up to the newer", is_note=True)


def recorded(patient: Patient) -> Iterator[Finding]:
    """Hooks of this very project, but no record of it: its events go to the common home."""
    ours = [file for file in patient.with_hooks if file.scope is not Scope.USER]
    if ours and not read_record(patient.place.project):
        adopt = " --adopt" if os.path.isdir(f"{patient.place.project}/.hive-mind") else ""
        text = "this project has hooks but is not registered (was it moved?): events go to"
        yield Finding(f"{text} {patient.place.home}", f"hivepipe init{adopt}")


def programs(patient: Patient) -> Iterator[Finding]:
    """An interpreter or a hook is gone: a moved installation, an upgraded Python."""
    for file in patient.with_hooks:
        gone = {path for _, entry in file.entries for path in _paths(entry)}
        gone = {path for path in gone if not os.access(path, os.R_OK)}
        for path in sorted(gone)[:1]:
            text = f"{file.path} runs {path}, which is not there: nothing is recorded"
            yield Finding(text, _init(file))


def origin(patient: Patient) -> Iterator[Finding]:
    """The hooks are those of another installation than this command."""
    here = str(hooks_folder())
    for file in patient.with_hooks:
        folders = {os.path.dirname(path) for _, entry in file.entries for path in _scripts(entry)}
        for folder in sorted(folders - {here}):
            if os.path.isdir(folder):  # else `programs` says so
                yield Finding(f"{file.path} runs the hooks of {folder}, not of {here}", _init(file))


def complete(patient: Patient) -> Iterator[Finding]:
    """An event lost its hook, or an older hivepipe knew fewer events."""
    for file in patient.with_hooks:
        known = {event.name for event in EVENTS}
        missing = sorted(known - {event for event, _ in file.entries})
        if missing:
            yield Finding(f"{file.path} has no hook of {', '.join(missing)}", _init(file))


def outdated(patient: Patient) -> Iterator[Finding]:
    """Entries of an older hivepipe: over a script that was gone, one of them blocked every call."""
    here = str(hooks_folder())
    for file in patient.with_hooks:
        for event, entry in file.entries:
            folders = {os.path.dirname(path) for path in _scripts(entry)}
            wanted = wanted_entries(_form(entry)).get(event)
            if folders == {here} and wanted and _run(entry) != _run(wanted):
                yield Finding(f"{file.path} runs the hook of {event} in an older way", _init(file))
                break


def _form(entry: Entry) -> Form:
    return Form.EXEC if "args" in entry["hooks"][0] else Form.SHELL


def _run(entry: Entry) -> tuple[object, object]:
    return entry["hooks"][0]["command"], entry["hooks"][0].get("args")


def form(patient: Patient) -> Iterator[Finding]:
    """A Claude Code that is too old for hooks without a shell feeds the event to a bare Python."""
    in_exec_form = [
        file
        for file in patient.with_hooks
        if any("args" in handler for _, entry in file.entries for handler in entry["hooks"])
    ]
    if in_exec_form and not claude_code.takes_exec_form(claude_code.version()):
        text = "this Claude Code is older than 2.1.139 and ignores the arguments of a hook"
        yield Finding(text, _init(in_exec_form[0]))


def shared(patient: Patient) -> Iterator[Finding]:
    """Hooks by name, and the name leads nowhere."""
    is_shared = any(not _paths(entry) for file in patient.with_hooks for _, entry in file.entries)
    if is_shared and not shutil.which("hivepipe-hook"):
        program = os.path.join(os.path.dirname(sys.executable), "hivepipe-hook")
        link = f"ln -s {shlex.quote(program)} ~/.local/bin/"
        text = "the project's hooks run `hivepipe-hook`, which is not on PATH: they do nothing"
        yield Finding(text, f"mkdir -p ~/.local/bin && {link}")


def interpreter(patient: Patient) -> Iterator[Finding]:
    """The recorded interpreter, which starts the stack, is gone or has lost hivepipe."""
    python = patient.record.get("python")
    if python and not _has_hivepipe(python):
        yield Finding(f"the recorded Python, {python}, has no hivepipe", "hivepipe init")


def compiled(_patient: Patient) -> Iterator[Finding]:
    """Without its bundle a hook takes a third longer, without .pyc files twice as long."""
    if not is_compiled():
        yield Finding("the hooks are not compiled and take up to twice as long", "hivepipe init")


def writable(_patient: Patient) -> Iterator[Finding]:
    """Whoever can write a hook runs code as the user."""
    files = [*hooks_folder().glob("*.py"), *map(source_of, MODULES)]
    folders = {path.parent for path in files}
    for path in sorted({*files, *folders}):
        if path.stat().st_mode & _OTHERS_MAY_WRITE:
            text = f"others may write {path}, which runs as you on every event"
            yield Finding(text, f"chmod go-w {shlex.quote(str(path))}")


def doubled(patient: Patient) -> Iterator[Finding]:
    """The same event runs two hooks: it counts once, and costs twice."""
    plugin = patient.plugin
    files = patient.with_hooks
    if plugin and plugin.is_there and files:
        text = f"the plugin {plugin.id} and {files[0].path} both run the hooks: one is enough"
        yield Finding(text, _init(files[0]), is_note=files[0].scope is Scope.PROJECT)
    elif len({str(sorted(file.entries, key=str)) for file in files}) > 1:
        names = " and ".join(file.path for file in files)
        yield Finding(f"{names} run different hooks of ours: one is enough", _uninstall(files[-1]))


def _scripts(entry: Entry) -> list[str]:
    return [path for path in _paths(entry) if path.endswith(".py")]


def _paths(entry: Entry) -> list[str]:
    """Return the interpreter and the script that an entry names; none in the shared form."""
    handler = entry["hooks"][0]
    words = [handler["command"], *handler.get("args", [])]
    if "args" not in handler:
        words = shlex.split(handler["command"], comments=True)
    return [word for word in words if isinstance(word, str) and word.startswith("/")]


def _init(file: SettingsFile) -> str:
    return "hivepipe init" if file.scope is Scope.LOCAL else f"hivepipe init --{file.scope}"


def _uninstall(file: SettingsFile) -> str:
    return "hivepipe uninstall" + (" --user" if file.scope is Scope.USER else "")


def _has_hivepipe(python: str) -> bool:
    command = [python, "-I", "-c", "import hivepipe.stack.supervisor as s; print(s.__name__)"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=_START_SECS)
        return said.stdout.strip() == "hivepipe.stack.supervisor"
    except (OSError, ValueError, subprocess.SubprocessError):
        return False
