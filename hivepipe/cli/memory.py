"""Command `memory`: the index of agents' memory files."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import click

from hivepipe import settings
from hivepipe.agents.memory.index import AGENT, SWARM, Folder, Hit, MemoryIndex, opened_index
from hivepipe.archive.search.query import fts_query, query_of
from hivepipe.cli.here import own_profile, own_swarm, refuse_missing
from hivepipe.cli.parameters import Choice
from hivepipe.cli.tables import Column, json_option, limit_option, show_entries, show_json
from hivepipe.cli.terminal import say, short
from hivepipe.db.briefing import memory_folders
from hivepipe.db.database import opened
from hivepipe.db.listings import listings
from hivepipe.db.location import database_path
from hivepipe.db.memory_ratings import forget_retrievals, record_retrieval
from hivepipe.errors import MemoryIndexError, SearchError
from hivepipe.events.claude_code import valid_id
from hivepipe.home import Place, locate
from hivepipe.operations import memory as memories
from hivepipe.operations.recall import prepare_recall
from hivepipe.times import now

_SHOWN_CHARS = 400
_MOST_LOOKED_AT = 500


@click.group()
def memory() -> None:
    """Search and list the memory files of agents, or remove one from the index."""


@memory.command()
@click.argument("words", nargs=-1, required=True)
@limit_option(5, "Maximum number of results.", most=50)
@click.option("--scope", type=Choice((AGENT, SWARM)), help="Only own or only shared memories.")
@click.option("--all", "of_all", is_flag=True, help="Include other swarms and profiles.")
@json_option
def search(words: tuple[str, ...], limit: int, scope: str | None, of_all: bool) -> None:
    """Search memories for WORDS, best match first.

    With a provider of embeddings, the search also finds memories of similar meaning.
    """
    place = locate(".")
    text = query_of(words)
    with _updated_index(place) as index:
        memories.embed_missing(index)
        try:
            query = fts_query(text)
        except SearchError as error:
            raise MemoryIndexError(str(error)) from error
        found = memories.search(place.home, index, text, query, _MOST_LOOKED_AT)
    found = [hit for hit in found if scope in (None, hit.scope)]
    found = [hit for hit in found if of_all or _is_for_us(hit, place)][:limit]
    _record(place, found)
    if show_json(memories=[_entry(hit) for hit in found]):
        return
    for hit in found:
        say(f"{short(hit.path)}  ({hit.scope})", bold=True)
        say(" ".join(hit.text.split())[:_SHOWN_CHARS])
    say(f"{len(found)} found")


@memory.command(name="list")
@json_option
def list_files() -> None:
    """List the memory files that are indexed."""
    with _updated_index(locate(".")) as index:
        found = [dict(row) for row in index.files()]
    columns: dict[str, Column] = {
        "file": lambda row: short(row["path"]),
        "scope": "scope",
        "chunks": "chunks",
        "vectors": "vectors",
        "state": lambda row: "forgotten" if row["forgotten"] else "indexed",
    }
    show_entries("files", found, columns)


@memory.command()
@click.argument("path", type=click.Path())
def forget(path: str) -> None:
    """Remove a file from the index until it changes.

    The file itself is not changed.
    """
    place = locate(".")
    full = os.path.abspath(os.path.expanduser(path))
    with _updated_index(place) as index:
        if full not in {row["path"] for row in index.files()}:
            raise MemoryIndexError(f"{short(full)} is not indexed: see `hivepipe memory list`")
        index.forget(full)
        index.clean()
        prepare_recall(place.home, index)
    if database_path(place.home).exists():
        with opened(place.home) as db, db.transaction():
            forget_retrievals(db, os.path.basename(full))
    say(f"{short(full)} is removed from the index; the file is unchanged")


@contextmanager
def _updated_index(place: Place) -> Iterator[MemoryIndex]:
    """Update the index from the memory folders, and open it for a block."""
    refuse_missing(place.home)
    with opened_index(memories.index_path(place.home)) as index:
        if database_path(place.home).exists():
            with listings(database_path(place.home)) as store:
                for path in memory_folders(store, place.project):
                    if os.path.isdir(path):
                        index.remember_folder(Folder(path, SWARM, own_swarm(place)))
        memories.update_index(place.home, index)
        yield index


def _is_for_us(hit: Hit, place: Place) -> bool:
    """Tell whether this shell's profile and this folder's swarm may see a hit.

    A home may have the memories of several profiles and swarms. Without a profile, the memories of
    all profiles may be seen.
    """
    if hit.scope == AGENT:
        return own_profile() in ("", hit.owner)
    return hit.owner in ("", own_swarm(place))


def _record(place: Place, found: list[Hit]) -> None:
    """Record which memories were shown to this shell's session.

    The session's summary may rate these memories later.
    """
    session = valid_id(settings.variable("HIVEPIPE_SESSION_ID") or "")
    if not session or not found or not database_path(place.home).exists():
        return
    at, _ = now()
    with opened(place.home) as db, db.transaction():
        for hit in found:
            record_retrieval(db, session, os.path.basename(hit.path), hit.text, at)


def _entry(hit: Hit) -> dict[str, object]:
    return {
        "path": hit.path,
        "scope": hit.scope,
        "owner": hit.owner,
        "score": round(hit.score, 4),
        "text": hit.text,
    }
