"""An archived session of a team as a conversation, like the conversations of this machine."""

from collections.abc import Iterator
from itertools import chain, islice

from hivepipe.archive.archives import MAIN, SUBAGENT
from hivepipe.archive.index import Entry, key_of
from hivepipe.db.listings import Entry as Row
from hivepipe.errors import ArchiveError, DamagedArchiveError, TeamError
from hivepipe.reading.conversation_reader import Conversation, Line, Reader
from hivepipe.reading.team.session import Found
from hivepipe.reading.team.source import Source
from hivepipe.redact.configured import load_redactor
from hivepipe.redact.redactor import Redactor
from hivepipe.team.archives.place import NONE
from hivepipe.team.archives.reading import TeamArchive

_ROW = "SELECT * FROM hivepipe.session_rows(%(home)s, %(session)s, 'sessions') AS row"
_WHY = """
    SELECT hivepipe.archive_store() AS store,
      hivepipe.level_of_session(%(home)s, %(session)s) AS level
"""


def team_conversation(
    source: Source, found: Found, home: str, around: int | None = None
) -> Conversation:
    """Return the conversation of a session, redacted again with the rules of the local `home`.

    Raise ArchiveError if the team has no archive of the session, TeamError if the bucket's key is
    missing, and DamagedArchiveError if a segment is damaged or encrypted with another key.
    """
    redactor = load_redactor(home).of_session([])
    archived = _Shared(source, source.archives(found.home, found.id), redactor)
    key = f"{found.id}/{found.agent}" if found.agent else found.id
    entry = archived.entry(key)
    if entry is None:
        raise ArchiveError(_why_none(source, found))
    reader = Reader(archived)
    pieces = reader.all(key, entry) if around is None else iter([*reader.around(entry, around)])
    first = [*islice(pieces, 1)]  # a missing key is reported before any output
    meta = _meta(source, found, entry)
    return Conversation(found.id, found.agent, entry["agent_type"], meta, chain(first, pieces))


def _values(found: Found) -> Row:
    return {"home": found.home, "session": found.id}


def _meta(source: Source, found: Found, entry: Entry) -> Row:
    rows = source.rows(_ROW, _values(found))
    row = rows[0]["row"] if rows else {}
    return {
        "of": f"{found.person}, machine {found.machine}",
        "title": row.get("objective"),
        "started_at": entry["started_at"],
        "ended_at": row.get("ended_at"),
        "models": [row["model"]] if row.get("model") else [],
    }


def _why_none(source: Source, found: Found) -> str:
    (policy,) = source.rows(_WHY, _values(found))
    if policy["store"] == NONE:
        return (
            "the team keeps no archives: its administrator chooses a store by `hivepipe team store`"
        )
    if policy["level"] != "everything":
        return (
            f"the team shares no archives of this project: its policy is {policy['level']}, "
            "and only everything includes them"
        )
    what = f"subagent {found.agent}" if found.agent else f"session {found.id}"
    return (
        f"the team has no archive of {what}: machine {found.machine} of "
        f"{found.person} did not send it yet, or shares less of the project"
    )


class _Shared:
    """The archives of a session on the team's server; implements `Archived`."""

    def __init__(self, source: Source, archives: list[TeamArchive], redactor: Redactor) -> None:
        self._source = source
        self._redactor = redactor
        self._archives = {each.name: each for each in archives}
        self._entries = {key_of(each): each for each in map(_entry, archives)}

    def entry(self, key: str) -> Entry | None:
        return self._entries.get(key)

    def of_subagents(self, session: str) -> dict[str, Entry]:
        return {key: each for key, each in self._entries.items() if key != session}

    def lines(self, entry: Entry, begin: int) -> Iterator[Line]:
        """Yield an archive's redacted lines.

        An error of one archive is raised as DamagedArchiveError. The caller can then continue with
        the other archives. Errors of the server or bucket (no answer, a refusal, a rejected value)
        are raised unchanged.
        """
        try:
            for offset, raw in self._source.lines(self._archives[entry["path"]], begin):
                yield Line(offset, offset + len(raw), self._redactor.redact_line(raw)[0])
        except TeamError as error:
            if type(error) is not TeamError:  # the server does not answer, or refuses
                raise
            of = entry["agent_id"] or entry["session_id"]
            raise DamagedArchiveError(f"archive of {of}: {error}") from error

    def missing(self, _entry: Entry) -> str:
        return ""


def _entry(archive: TeamArchive) -> Entry:
    return Entry(
        kind=SUBAGENT if archive.agent_id else MAIN,
        session_id=archive.segments[0]["session_id"],
        agent_id=archive.agent_id,
        agent_type=archive.agent_type,
        started_at=archive.started_at,
        path=archive.name,
    )
