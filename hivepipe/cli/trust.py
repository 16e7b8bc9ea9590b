"""Command `trust`: review and trust the settings and texts of a repository."""

import os
import sys
from contextlib import suppress
from pathlib import Path

import click

from hivepipe.agents.memory.index import opened_index
from hivepipe.cli.parameters import given
from hivepipe.cli.tables import as_json, json_option, show_json
from hivepipe.cli.terminal import confirm_or_end, say, say_text, short, yes_option
from hivepipe.config import asking, request
from hivepipe.config import trust as kept
from hivepipe.config.asking import Asking, as_trusted, files_asking
from hivepipe.config.config_file import Config, compile_for_hooks
from hivepipe.db.location import database_path
from hivepipe.errors import SettingsError, StoreError
from hivepipe.home import Place, is_in_project, locate
from hivepipe.hook.greeting import part_path, project_part
from hivepipe.operations.briefing_files import BriefingFiles
from hivepipe.operations.memory import index_path
from hivepipe.operations.recall import prepare_recall, remove_parts
from hivepipe.settings import environment
from hivepipe.text.plurals import counted

_STATE_TEXTS = {
    asking.NEW: "not trusted: it has no effect",
    asking.CHANGED: "changed since you trusted it: the trusted copy stays in force",
    asking.TRUSTED: "trusted",
    asking.GONE: "deleted: the trusted copy stays in force",
    asking.UNUSABLE: "cannot be trusted",
}


@click.command()
@click.argument("names", metavar="[FILE]...", nargs=-1)
@yes_option
@click.option("--remove", is_flag=True, help="Revoke trust in all files or in FILEs.")
@json_option
def trust(names: tuple[str, ...], remove: bool) -> None:
    """Show the settings and texts that this repository asks for, and ask whether to trust them.

    When a trusted file changes, its trusted copy stays in force until the new one is trusted. Exits
    with 1 if a file cannot be trusted.
    """
    if as_json() and (given("yes") or remove):
        raise click.UsageError("--json only shows the files: it excludes --yes and --remove")
    place = locate(".")
    _refuse_home_in_tree(place)
    found = _named(files_asking(place.home, place.project), names)
    if as_json():
        show_json(project=place.project, files=[_as_json(place, file) for file in found])
        return
    if remove:
        _revoke(place, found)
        return
    for file in found:
        _show(place, file)
    wanted = [file for file in found if file.waits]
    if wanted:
        _ask(place, wanted)
        kept.change(place.home, place.project, add={file.name: as_trusted(file) for file in wanted})
        _say_and_apply(
            f"trusted {counted(len(wanted), 'file')}; `hivepipe trust --remove` revokes it", place
        )
    elif not found:
        say(f"nothing in {short(place.project)} asks for anything")
    else:
        say("nothing new to trust")
    sys.exit(1 if any(file.state == asking.UNUSABLE for file in found) else 0)


def _refuse_home_in_tree(place: Place) -> None:
    if is_in_project(place.home):
        reason = "is in the work tree, where a commit could bring its own answer"
        raise SettingsError(f"{place.home} {reason}: `hivepipe up -d` moves it out first")


def _named(found: list[Asking], names: tuple[str, ...]) -> list[Asking]:
    """Return the named files, or all. Raises SettingsError if a named file needs no trust."""
    wanted = {os.path.normpath(name) for name in names}
    if missing := wanted - {file.name for file in found}:
        raise SettingsError(
            f"{min(missing)} is not a file of this repository that asks for anything"
        )
    return [file for file in found if not wanted or file.name in wanted]


def _show(place: Place, file: Asking) -> None:
    known = kept.trusted_files(place.home, place.project).get(file.name)
    since = f" {known.at[:10]}" if known and file.state == asking.TRUSTED else ""
    trouble = f": {file.trouble}" if file.trouble else ""
    if known and file.state == asking.UNUSABLE:
        trouble += "; the trusted copy stays in force"
    say(f"{file.name}  {_STATE_TEXTS[file.state]}{since}{trouble}", bold=True)
    if file.sha256:
        say(f"  SHA-256 {file.sha256}")
    if file.waits:
        say_text(file.text)
    for line in _in_words(place, file) if file.state != asking.UNUSABLE else ():
        say(f"  {line}")


def _in_words(place: Place, file: Asking) -> list[str]:
    """Return lines that tell the user what changes if the file is trusted."""
    if file.name != request.NAME:
        when = "when a session starts" if asking.is_read_from_copy(file.name) else "where it fits"
        return [f"Claude would be given this {when}, as a quotation, not as your instruction"]
    found = request.Request(file.text, place.project, place.home)
    lines = [
        f"applies if you set nothing else: {name} = {text}" for name, text in found.values.items()
    ]
    if found.values.get("guard") == "off":
        lines.append("guard = off: loops of an agent would no longer be stopped")
    if found.keyword_rules:
        texts = counted(len(found.keyword_rules), "text")
        lines.append(
            f"Claude would be given {texts} with prompts that match its words, as a quotation"
        )
    return [*lines, *(f"ignored: {problem}" for problem in found.problems)]


def _as_json(place: Place, file: Asking) -> dict[str, object]:
    entry = {"name": file.name, "state": file.state, "sha256": file.sha256, "text": file.text}
    problems = [file.trouble] if file.trouble else []
    if file.name == request.NAME and not problems:
        problems = request.Request(file.text, place.project, place.home).problems
    return {**entry, "problems": problems}


def _ask(place: Place, wanted: list[Asking]) -> None:
    """Ask the user. Raises SettingsError inside a session of Claude Code."""
    if environment("CLAUDECODE"):
        reason = "a session of Claude Code cannot answer for you"
        raise SettingsError(f"{reason}: run `hivepipe trust` in a terminal of your own")
    them = "this file" if len(wanted) == 1 else f"these {len(wanted)} files"
    confirm_or_end(f"Trust {them} of {short(place.project)}?")


def _revoke(place: Place, found: list[Asking]) -> None:
    known = kept.trusted_files(place.home, place.project)
    removed = [file.name for file in found if file.name in known]
    if not removed:
        say("nothing was trusted")
        return
    kept.change(place.home, place.project, add={}, remove=removed)
    _say_and_apply(f"{counted(len(removed), 'file')} no longer trusted", place)


def _say_and_apply(answer: str, place: Place) -> None:
    """Print `answer`, compile the hooks' settings and renew the texts, even if a step fails."""
    try:
        say(answer)
    finally:
        try:
            compile_for_hooks(Config(place.home, place.project))
        finally:
            _renew_texts(place)


def _renew_texts(place: Place) -> None:
    Path(part_path(place.home, project_part(place.project))).unlink(missing_ok=True)
    remove_parts(place.home)
    try:
        with suppress(StoreError):  # nothing was recorded yet
            BriefingFiles(place.home).write(database_path(place.home))
    finally:
        memories = index_path(place.home)
        if memories.exists():
            with opened_index(memories) as index:
                prepare_recall(place.home, index)
