"""Command `profile`: long-lived agents and their identity files."""

from pathlib import Path

import click

from hivepipe.cli.here import store_here
from hivepipe.cli.parameters import Choice
from hivepipe.cli.tables import Column, json_option, output_options, show_entries, show_json
from hivepipe.cli.terminal import confirm_or_end, say, say_text, yes_option
from hivepipe.db import profiles
from hivepipe.db.database import opened
from hivepipe.db.listings import Entry, Listings
from hivepipe.errors import ProfileError, os_error_as
from hivepipe.events.claude_code import IDENTITY_FILES
from hivepipe.files.regular_file import read_given
from hivepipe.home import locate
from hivepipe.operations import profiles as changes
from hivepipe.text.plurals import counted

_file = Choice(IDENTITY_FILES)


@click.group()
def profile() -> None:
    """Manage long-lived agents and the versions of their identity files."""


@profile.command(name="list")
@output_options
def list_profiles() -> None:
    """List the profiles: role, online or offline, last activity."""
    with store_here() as store:
        found = profiles.list_profiles(store)
    columns: dict[str, Column] = {
        "profile": "id",
        "role": "role",
        "status": "status",
        "last": lambda entry: entry["last_active_at"] or entry["entered_at"],
        "writes CLAUDE.md": lambda entry: "yes" if entry["write_claude_md"] else "no",
    }
    show_entries("profiles", found, columns)


@profile.command()
@click.argument("profile_id", metavar="ID")
@click.option(
    "--role",
    type=Choice(("lead", "worker")),
    help="At its start, a lead is told what the others do.",
)
@click.option(
    "--write-claude-md/--no-write-claude-md",
    default=None,
    help="Write the profile's CLAUDE.md into its folder during its sessions.",
)
def add(profile_id: str, role: str | None, write_claude_md: bool | None) -> None:
    """Add a profile, or change one.

    A session that starts with HIVEPIPE_AGENT_ID=ID uses this profile.
    """
    with opened(locate(".").home) as db:
        say(changes.change(db, profile_id, role, write_claude_md))


@profile.command()
@click.argument("profile_id", metavar="ID")
@click.argument("name", metavar="[FILE]", type=_file, required=False)
@click.option(
    "--version",
    metavar="N",
    type=click.IntRange(1, 10**9),
    help="An earlier version (see `history`).",
)
@json_option
def show(profile_id: str, name: str | None, version: int | None) -> None:
    """Print the text of one identity file of a profile, or of all."""
    with store_here() as store:
        _require(store, profile_id)
        if version is not None:
            found = [_version(store, profile_id, name, version)]
            name = found[0]["name"]
        else:
            found = [
                entry
                for entry in profiles.current_texts(store)
                if entry["profile_id"] == profile_id and name in (None, entry["name"])
            ]
    if not found:
        raise ProfileError(f"profile {profile_id} has no {name or 'files'} yet")
    texts = {entry["name"]: entry["text"] for entry in found}
    if show_json(profile=profile_id, files=texts):
        return
    for entry in found:
        if name is None:
            say(f"---- {entry['name']}")
        say_text(entry["text"].removesuffix("\n"))


@profile.command()
@click.argument("profile_id", metavar="ID")
@click.argument("name", metavar="[FILE]", type=_file, required=False)
@output_options
def history(profile_id: str, name: str | None) -> None:
    """List the versions of the identity files of a profile, newest first."""
    with store_here() as store:
        _require(store, profile_id)
        found = profiles.versions(store, profile_id, name or "")
    columns = {
        "version": "id",
        "file": "name",
        "time": "created_at",
        "source": "change_source",
        "session": "session_id",
        "characters": "characters",
    }
    show_entries("versions", found, columns)


@profile.command()
@click.argument("profile_id", metavar="ID")
@click.argument("name", metavar="FILE", type=_file)
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--as-lead", is_flag=True, help="Record that a lead made this version.")
def put(profile_id: str, name: str, path: Path, as_lead: bool) -> None:
    """Store a new version of an identity file.

    PATH is the file with the text. The next session of the profile starts with it.
    """
    with os_error_as(ProfileError, f"cannot read {path}"):
        data = read_given(path)
    with opened(locate(".").home) as db:
        source = "lead" if as_lead else "cli"
        is_new = changes.put(db, changes.id_of(profile_id), name, data, source)
    say(f"{name} of {profile_id} {'is stored' if is_new else 'has this text already'}")


@profile.command()
@click.argument("profile_id", metavar="ID")
@yes_option
def remove(profile_id: str) -> None:
    """Remove a profile with all versions of its files.

    Its sessions and the files in its folder stay. A session that names the profile adds it again.
    """
    with opened(locate(".").home) as db:
        number = profiles.count_versions(db, profile_id)
        if number is None:
            raise ProfileError(f"no profile has the id {profile_id}: see `hivepipe profile list`")
        versions = counted(number, "version")
        confirm_or_end(f"{profile_id} has {versions} of files. Remove permanently?")
        changes.remove(db, profile_id)
    say(f"{profile_id} is removed")


def _version(store: Listings, profile_id: str, name: str | None, version: int) -> Entry:
    """Return one version of a file. Raise ProfileError if the file does not have this version."""
    found = profiles.version(store, profile_id, version)
    if found is None:
        raise ProfileError(f"profile {profile_id} has no version {version}: see its `history`")
    if name not in (None, found["name"]):
        raise ProfileError(f"version {version} is one of {found['name']}, not of {name}")
    return found


def _require(store: Listings, profile_id: str) -> None:
    if profile_id not in {entry["id"] for entry in profiles.list_profiles(store)}:
        raise ProfileError(f"no profile has the id {profile_id}: see `hivepipe profile list`")
