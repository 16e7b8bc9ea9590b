"""Commands of a team's archives: `team store`, `team archive-key`."""

from typing import Any

import click

from hivepipe.cli.tables import json_option, show_json
from hivepipe.cli.team.administrators import admin_option, administrator
from hivepipe.cli.terminal import (
    ask_secret,
    confirm_or_end,
    refuse_question,
    say,
    short,
    yes_option,
)
from hivepipe.errors import TeamError
from hivepipe.summaries.providers import credentials_path
from hivepipe.team.archives import place, stores
from hivepipe.team.archives.cipher import Cipher, keep_key, kept_key, new_key
from hivepipe.team.archives.leftovers import delete_due
from hivepipe.team.connection import one
from hivepipe.text.plurals import counted
from hivepipe.text.sizes import size

_SUMS = """
    SELECT count(*) AS segments, coalesce(sum(size), 0)::bigint AS bytes,
      (SELECT count(*) FROM hivepipe.archive_leftovers WHERE due_at <= now()) AS leftovers
    FROM hivepipe.archive_segments
"""


@click.command()
@click.argument("where", metavar="[PLACE]", required=False)
@yes_option
@admin_option
@json_option
def store(where: str | None) -> None:
    """Show or set where the team's archives are stored.

    PLACE is s3://BUCKET[/PREFIX][?endpoint=https://HOST][&region=REGION], `database` or `none`.
    Only archives of projects with the policy `everything` are sent. Objects that wait to be deleted
    are deleted now, if HIVEPIPE_TEAM_STORE is set.
    """
    if where:
        refuse_question()
        place.parse(where)
    with administrator() as connection:
        present = one(connection, "SELECT hivepipe.archive_store()")
        if where and where != present:
            _change(connection, present, where)
        deleted = _delete_leftovers(connection, present)
        found = connection.execute(_SUMS).fetchone() or {}
        present = where or present
    if show_json(store=present, deleted=deleted, **found):
        return
    say(f"store     {present}")
    say(f"archives  {counted(found['segments'], 'segment')}, {size(found['bytes'])}")
    if deleted:
        say(f"deleted   {counted(deleted, 'object')}")
    if found["leftovers"]:
        say(f"waiting   {counted(found['leftovers'], 'object')} to be deleted; {stores.KEYLESS}")


def _change(connection: Any, present: str, where: str) -> None:
    """Set another place. Archives in the old one are deleted, and machines send them again."""
    number = (connection.execute(_SUMS).fetchone() or {})["segments"]
    if number:
        if place.parse(present).bucket and not stores.has_key():
            raise TeamError(stores.KEYLESS)
        text = f"Delete {counted(number, 'segment')} in {present}? The machines send them again."
        confirm_or_end(text)
    if where == place.DATABASE:
        price = "price: backups, replicas and write-ahead log of the database grow by the archives"
        say(price, err=True)
    one(connection, "SELECT hivepipe.set_archive_store(%s)", where)


def _delete_leftovers(connection: Any, present: str) -> int:
    where = place.parse(present)
    if not where.bucket or not stores.has_key():
        return 0
    return delete_due(connection, stores.bucket_of(connection, where))


@click.command(name="archive-key")
@click.option("--new", "is_new", is_flag=True, help="Make a key for this user.")
@click.option("--set", "is_set", is_flag=True, help="Read a key of another machine from stdin.")
@click.option("--show", is_flag=True, help="Print the key, for another machine.")
@yes_option
def archive_key(is_new: bool, is_set: bool, show: bool) -> None:
    """Encrypt archives with a key that the servers never have.

    Every reader needs the key. If the key is lost, the archives cannot be read. Archives that were
    sent before are sent again, encrypted.
    """
    if is_new + is_set + show > 1:
        raise click.UsageError("--new, --set and --show exclude each other")
    known = kept_key()
    if (is_new or is_set) and known:
        confirm_or_end("Replace the key? What was sent with it is sent again with the new one.")
    if is_new:
        known = new_key()
        keep_key(known)
    elif is_set:
        known = ask_secret("key").strip()
        keep_key(known)
    _show(known, show)


def _show(key: str | None, is_plain: bool) -> None:
    if key is None:
        if is_plain:
            raise TeamError("there is no key: `hivepipe team archive-key --new`")
        say("archives are sent compressed, not encrypted: hivepipe team archive-key --new")
    elif is_plain:
        say(key)
    else:
        say(f"archives are encrypted with {Cipher(key).name}, in {short(str(credentials_path()))}")
