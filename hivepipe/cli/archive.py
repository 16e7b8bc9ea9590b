"""Command `archive`: the archived transcripts."""

import os
import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import click

from hivepipe.archive import scope, upkeep
from hivepipe.archive.archive_files import Meta
from hivepipe.archive.archives import Archives
from hivepipe.archive.index import Entry
from hivepipe.cli.parameters import CheckedCommand
from hivepipe.cli.progress import Progress
from hivepipe.cli.tables import (
    Column,
    json_option,
    output_options,
    printable,
    show_entries,
    show_entry,
    show_json,
)
from hivepipe.cli.terminal import document, say, say_archived_line
from hivepipe.home import kept_folder, locate
from hivepipe.operations.archive import archives_of
from hivepipe.operations.found_archives import import_found, unimported_archives
from hivepipe.operations.found_exports import KNOWN, REFUSED, TAKEN, Row
from hivepipe.operations.slow import at_once, manual_origin
from hivepipe.operations.sweep import SweepResult
from hivepipe.operations.sweep import sweep as sweep_transcripts
from hivepipe.settings import variable
from hivepipe.text.plurals import counted
from hivepipe.text.sizes import size


@click.group()
def archive() -> None:
    """List, show, verify and extend the archived transcripts."""


@archive.command("list")
@click.option("--agents", "with_agents", is_flag=True, help="Include archives of subagents.")
@output_options
def list_archives(with_agents: bool) -> None:
    """List the session archives, newest first."""
    archives = _archives()
    entries = archives.index.entries()
    shown = sorted(
        (entry for entry in entries.values() if with_agents or not entry["agent_id"]),
        key=lambda entry: (entry["started_at"], entry["path"]),
        reverse=True,
    )
    found = [{**entry, "meta": archives.meta_of(entry) or None} for entry in shown]
    show_entries("archives", found, _COLUMNS)


def _meta(entry: dict[str, Any]) -> Meta:
    return entry["meta"] or {}


_COLUMNS: dict[str, Column] = {
    "id": lambda entry: entry["agent_id"] or entry["session_id"],
    "type": lambda entry: entry["agent_type"] or "session",
    "start": "started_at",
    "last": lambda entry: _meta(entry).get("ended_at"),
    "messages": lambda entry: _meta(entry).get("message_count"),
    "size": lambda entry: size(_meta(entry).get("archive", {}).get("bytes", 0)),
    "about": lambda entry: _meta(entry).get("title") or _meta(entry).get("cwd"),
}


@archive.command()
@click.argument("archive_id", metavar="ID")
@click.option("--lines", "with_lines", is_flag=True, help="Print the archived lines instead.")
@output_options
def show(archive_id: str, with_lines: bool) -> None:
    """Show one archive: its metadata or its lines.

    ID is the id of a session or subagent, or a prefix of one.
    """
    archives = _archives()
    _, entry = archives.find(archive_id)
    if with_lines:
        _print_lines(archives, entry)
        return
    meta = archives.meta_of(entry) or {}
    if show_json(**{**entry, "meta": meta or None}):
        return
    plain = {name: value for name, value in meta.items() if not isinstance(value, dict)}
    show_entry({**plain, **{k: v for k, v in entry.items() if v}})
    for name, value in _counts(meta, "tokens"):
        say(f"{printable(name) + ' tokens':<16} {value}")
    for name, calls in _counts(meta, "tools"):
        if not isinstance(calls, dict):  # hivepipe did not write this file
            continue
        say(
            f"{printable(name):<16} {counted(_number(calls.get('calls')), 'call')}, "
            f"{calls.get('failed')} failed"
        )


def _counts(meta: Meta, name: str) -> Iterable[tuple[str, Any]]:
    found = meta.get(name)
    return found.items() if isinstance(found, dict) else ()


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _print_lines(archives: Archives, entry: Entry) -> None:
    with archives.opened(entry) as kept, kept.open_to_read() as lines, document():
        for line in lines:
            say_archived_line(line)


@archive.command()
@json_option
def sweep() -> None:
    """Archive this project's transcripts that no hook reported.

    Searches ~/.claude, CLAUDE_CONFIG_DIR, and the folders in which hooks of this home saw
    transcripts. Exits with 1 if a transcript could not be archived.
    """
    home = locate(".").home
    os.makedirs(home, exist_ok=True)
    folders = scope.claude_folders(home, variable("CLAUDE_CONFIG_DIR") or "")
    progress = Progress()
    with at_once(home) as context:
        job = manual_origin("sweep_transcripts")
        result = sweep_transcripts(
            context, job, folders, lambda so_far: progress.tell(lambda: _so_far(so_far))
        )
        found = import_found(context, job, kept_folder(home))
    if not show_json(**asdict(result), found=[row._asdict() for row in found]):
        _show_result(result, found)
    sys.exit(1 if result.failed else 0)


def _so_far(result: SweepResult) -> str:
    seen = result.taken + result.unchanged + result.foreign + result.expired
    return f"{result.taken:,} of {counted(seen, 'transcript')} archived so far"


def _show_result(result: SweepResult, found: list[Row]) -> None:
    say(
        f"{counted(result.taken, 'transcript')} archived ({counted(result.lines, 'new line')}), "
        f"{result.unchanged} unchanged, {result.foreign} of other projects"
    )
    if result.expired:
        old = counted(result.expired, "transcript", "are")
        say(f"{old} older than the retention of archives: not archived")
    taken = sum(row.outcome == TAKEN for row in found)
    if taken:
        say(f"{counted(taken, 'file')} of another program copied into the archive")
    for row in found:
        if row.outcome == REFUSED:
            say(f"not imported: {row.path}: {row.reason}", err=True)
        elif row.outcome == KNOWN and row.reason:
            say(f"{row.path}: {row.reason}")
    for path, reason in result.failed.items():
        say(f"not archived: {path}: {reason}", err=True)


@archive.command()
@json_option
def verify() -> None:
    """Check that every archive is intact and matches the index.

    Exits with 1 if an archive has a problem.
    """
    checks = (*upkeep.verify(_archives()), *unimported_archives(locate(".").home))
    wrong = [(path, problems) for path, problems in checks if problems]
    entries = [{"path": path, "problems": list(problems)} for path, problems in wrong]
    if not show_json(checked=len(checks), archives=entries):
        for path, problems in wrong:
            for problem in problems:
                say(f"{path}: {problem}")
        say(f"{counted(len(checks), 'archive')}, {len(wrong)} with problems")
    sys.exit(1 if wrong else 0)


@archive.command("rebuild-index")
def rebuild_index() -> None:
    """Rebuild archive-index.json from the archives."""
    archives = _archives()
    changed = upkeep.rebuild_index(archives)
    result = "was rebuilt" if changed else "was correct"
    say(f"{counted(len(archives.index.entries()), 'archive')}; the index {result}")


def _check(*, folder: str | None, stop: bool, **_: Any) -> None:
    if stop and not folder:
        raise click.UsageError("--stop needs DIR")


@archive.command(cls=CheckedCommand, check=_check)
@click.argument("folder", metavar="[DIR]", required=False)
@click.option("--stop", is_flag=True, help="Stop following DIR; its archives are kept.")
@json_option
def follow(folder: str | None, stop: bool) -> None:
    """Archive the sessions of DIR, too.

    DIR must not belong to a registered project. The sweep archives its sessions. Without DIR, list
    these folders.
    """
    home = locate(".").home
    if folder and stop:
        scope.unfollow(home, folder)
    elif folder:
        scope.follow(home, folder)
        if not os.path.exists(folder):
            say(f"{folder} does not exist; transcripts of sessions in it are archived", err=True)
    found = scope.followed_folders(home)
    if show_json(folders=found):
        return
    for each in found or ["none"]:
        say(each)


def _archives() -> Archives:
    return archives_of(locate(".").home)
