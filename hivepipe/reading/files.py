"""The changed files of several homes, and the sessions and subagents that changed them."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from hivepipe.archive.archive_files import Meta
from hivepipe.db.checkpoints import file_checkpoints
from hivepipe.errors import NothingRecordedError
from hivepipe.operations.archive import archives_of
from hivepipe.reading.homes import KnownHome


@dataclass(frozen=True)
class Change:
    """A file that a session changed; `agents` are the types of the subagents that changed it.

    `last_at` is the time of the file's last checkpoint, or else of the transcript's end.
    """

    path: str
    session: str
    project: str
    title: str = ""
    last_at: str = ""
    agents: list[str] = field(default_factory=list)


def changed_files(
    homes: Iterable[KnownHome],
    *,
    part: str = "",
    session: str = "",
    since: str = "",
    folder: str = "",
) -> list[Change]:
    """Return a change for each file and session, the newest first.

    The filters: a part of the path, a prefix of the session's id, a time (`since`, in the store's
    form), and a project folder.
    """
    return last_first(
        change
        for known in homes
        for change in _of_home(known, session)
        if part in change.path and change.last_at >= since and folder in ("", change.project)
    )


def last_first(changes: Iterable[Change]) -> list[Change]:
    return sorted(changes, key=lambda change: (change.last_at, change.path), reverse=True)


def _of_home(known: KnownHome, session: str) -> Iterator[Change]:
    found: dict[tuple[str, str], Change] = {}
    for change in _archived(known, session):
        key = (change.session, change.path)
        before = found.get(key, change)
        agents = list(dict.fromkeys([*before.agents, *change.agents]))
        found[key] = replace(before, title=before.title or change.title, agents=agents)
    with suppress(NothingRecordedError), known.store() as store:
        projects = store.project_of_sessions()
        for path, owner, last_at in file_checkpoints(store, session):
            project = projects.get(owner) or known.project or known.home
            before = found.get((owner, path), Change(path, owner, project))
            found[owner, path] = replace(before, last_at=last_at)
    yield from found.values()


def _archived(known: KnownHome, session: str) -> Iterator[Change]:
    """Yield the changes of the files that the metadata of archives name, main sessions first."""
    archives = archives_of(known.home)
    entries = archives.index.entries().values()
    for entry in sorted(entries, key=lambda entry: bool(entry["agent_id"])):
        if entry["session_id"].startswith(session):
            meta = archives.meta_of(entry) or {}
            agents = [entry["agent_type"] or "agent"] if entry["agent_id"] else []
            for path in _files(meta):
                yield Change(
                    path,
                    entry["session_id"],
                    str(meta.get("cwd") or known.project or known.home),
                    "" if agents else str(meta.get("title") or ""),
                    str(meta.get("ended_at") or entry["started_at"]),
                    agents,
                )


def _files(meta: Meta) -> list[str]:
    files = meta.get("files_modified")
    return [path for path in files if isinstance(path, str)] if isinstance(files, list) else []
