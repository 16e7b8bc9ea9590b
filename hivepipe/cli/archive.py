"""Command `archive`: the kept transcripts."""

import os
import shutil
import sys
from typing import Any

import click

from hivepipe.archive import scope, upkeep
from hivepipe.archive.archives import Archives
from hivepipe.archive.index import Entry
from hivepipe.archive.kept import Meta
from hivepipe.cli.tables import (
    json_option,
    moment,
    printable,
    show_entry,
    show_json,
    show_table,
    size,
    utc_option,
)
from hivepipe.handlers.archive import archives_of
from hivepipe.handlers.slow import asked, at_once
from hivepipe.handlers.sweep import sweep as sweep_transcripts
from hivepipe.home import locate
from hivepipe.settings import variable


@click.group()
def archive() -> None:
    """Look at kept transcripts, take in more, and see that they are whole."""
    os.umask(0o077)


@archive.command("list")
@click.option("--agents", "with_agents", is_flag=True, help="Show those of subagents too.")
@json_option
@utc_option
def list_archives(with_agents: bool, as_json: bool, utc: bool) -> None:
    """List the archives of sessions, the newest first."""
    archives = _archives()
    entries = archives.index.entries()
    shown = sorted(
        (entry for entry in entries.values() if with_agents or not entry["agent_id"]),
        key=lambda entry: (entry["started_at"], entry["path"]),
        reverse=True,
    )
    rows = [(entry, archives.meta_of(entry) or {}) for entry in shown]
    if as_json:
        show_json(archives=[{**entry, "meta": meta or None} for entry, meta in rows])
        return
    show_table(
        ("id", "type", "start", "last", "messages", "size", "about"),
        [_row(entry, meta, utc) for entry, meta in rows],
    )


def _row(entry: Entry, meta: Meta, utc: bool) -> tuple[Any, ...]:
    return (
        entry["agent_id"] or entry["session_id"],
        entry["agent_type"] or "session",
        moment(entry["started_at"], utc),
        moment(meta.get("ended_at"), utc),
        meta.get("message_count"),
        size(meta.get("archive", {}).get("bytes", 0)),
        meta.get("title") or meta.get("cwd"),
    )


@archive.command()
@click.argument("archive_id", metavar="ID")
@click.option("--lines", "with_lines", is_flag=True, help="Print the kept lines instead.")
@json_option
@utc_option
def show(archive_id: str, with_lines: bool, as_json: bool, utc: bool) -> None:
    """Show what is known of one archive; ID is a session or subagent, or the beginning of one."""
    archives = _archives()
    _, entry = archives.find(archive_id)
    if with_lines:
        _print_lines(archives, entry)
        return
    meta = archives.meta_of(entry) or {}
    if as_json:
        show_json(**{**entry, "meta": meta or None})
        return
    plain = {name: value for name, value in meta.items() if not isinstance(value, dict)}
    show_entry({**plain, **{k: v for k, v in entry.items() if v}}, utc)
    for name, value in (meta.get("tokens") or {}).items():
        click.echo(f"{name + ' tokens':<16} {value}")
    for name, calls in (meta.get("tools") or {}).items():
        click.echo(
            f"{printable(name):<16} {calls.get('calls')} calls, {calls.get('failed')} failed"
        )


def _print_lines(archives: Archives, entry: Entry) -> None:
    with archives.opened(entry) as kept, kept.open_to_read() as lines:
        try:
            shutil.copyfileobj(lines, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        except BrokenPipeError:  # `| head` has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@archive.command()
def sweep() -> None:
    """Archive this project's transcripts whose hooks never ran.

    Looks into ~/.claude, CLAUDE_CONFIG_DIR, and wherever hooks of this home found transcripts.
    """
    home = locate(".").home
    os.makedirs(home, exist_ok=True)
    folders = scope.claude_folders(home, variable("CLAUDE_CONFIG_DIR") or "")
    with at_once(home) as workplace:
        swept = sweep_transcripts(workplace, asked("sweep_transcripts"), folders)
    click.echo(
        f"{swept.taken} had grown, by {swept.lines} lines; {swept.unchanged} had not; "
        f"{swept.foreign} are of other projects"
    )
    for path, reason in swept.failed.items():
        click.echo(f"not archived: {printable(path)}: {reason}", err=True)
    sys.exit(1 if swept.failed else 0)


@archive.command()
def verify() -> None:
    """Look whether every archive is whole, and as the index says; exit with 1 if one is not."""
    checked = wrong = 0
    for path, problems in upkeep.verify(_archives()):
        checked += 1
        wrong += bool(problems)
        for problem in problems:
            click.echo(f"{printable(path)}: {problem}")
    click.echo(f"{checked} archives, {wrong} with problems")
    sys.exit(1 if wrong else 0)


@archive.command("rebuild-index")
def rebuild_index() -> None:
    """Make archive-index.json anew from the archives."""
    archives = _archives()
    changed = upkeep.rebuild_index(archives)
    said = "was another" if changed else "was right"
    click.echo(f"{len(archives.index.entries())} archives; the index {said}")


@archive.command()
@click.argument("folder", metavar="[DIR]", required=False)
@click.option("--stop", is_flag=True, help="Follow DIR no more; what is archived stays.")
def follow(folder: str | None, stop: bool) -> None:
    """Let the sweep take sessions in DIR, a folder of no registered project; without DIR, list."""
    home = locate(".").home
    if folder and stop:
        scope.unfollow(home, folder)
    elif folder:
        scope.follow(home, folder)
    elif stop:
        raise click.UsageError("say which DIR")
    for each in scope.followed_folders(home):
        click.echo(printable(each))


def _archives() -> Archives:
    return archives_of(locate(".").home)
