"""Everything that is known about one session: row, events, files, cost, summary."""

from typing import Any, NamedTuple

from hivepipe.costs.bill import Bill
from hivepipe.costs.price_table import prices_in_force
from hivepipe.db.listings import Entry, Listings
from hivepipe.db.summaries import list_summaries
from hivepipe.errors import HivepipeError
from hivepipe.operations.archive import archives_of
from hivepipe.operations.liveness import with_activity
from hivepipe.reading.costs import bills
from hivepipe.reading.session_events import Event, events_of
from hivepipe.transcripts.lines import typed

MOST_FILES = 200
_HIDDEN = ("checkpoint_data",)


class Spent(NamedTuple):
    """The usage of a session's messages; `dollars` is None if no model has a price."""

    messages: int
    tokens: int
    dollars: float | None
    models_without_price: list[str]


class TimeLine(NamedTuple):
    """One session; `session` is None if its row and its archive were deleted."""

    session: Entry | None
    instances: list[Entry]
    events: list[Event]
    left_out: int
    files: list[str]
    cost: Spent
    summary: Entry | None


def time_line(home: str, store: Listings, session: str, limit: int) -> TimeLine:
    """Return a session's time line with its newest `limit` events. May raise PricesError."""
    events, left_out = events_of(store, session, limit)
    summaries = list_summaries(store, session)
    return TimeLine(
        session=_session(home, store, session),
        instances=store.instances(session),
        events=events,
        left_out=left_out,
        files=_files(home, session, events),
        cost=spent_of(home, bills(store, (), sessions=[session]).total),
        summary=summaries[0] if summaries else None,
    )


def _session(home: str, store: Listings, session: str) -> Entry | None:
    known = store.session(session)
    if known is None:
        return _of_archive(home, session)
    (found,) = with_activity(store, [known])
    return {name: value for name, value in found.items() if name not in _HIDDEN}


def _of_archive(home: str, session: str) -> Entry | None:
    """Return the metadata of a session that is only archived, in the form of a row, or None."""
    meta = _archived(home, session)
    if not meta:
        return None
    tools = [each for each in typed(meta, "tools", dict).values() if isinstance(each, dict)]
    models = typed(meta, "models", list)
    return {
        "id": session,
        "condition": "archived",
        "objective": meta.get("title"),
        "project": meta.get("cwd"),
        "model": ", ".join(map(str, models)) or None,
        "transcript_path": typed(meta, "source", dict).get("path"),
        "created_at": meta.get("started_at"),
        "last_active_at": meta.get("ended_at"),
        "end_reason": None,
        "task_id": None,
        "prompts": None,  # unknown, because messages include tool results
        "messages": typed(meta, "message_count", int),
        "calls": sum(typed(each, "calls", int) for each in tools),
        "failed": sum(typed(each, "failed", int) for each in tools),
        "agents": 0,
        "skill_uses": len(typed(meta, "skills_used", list)),
    }


def _files(home: str, session: str, events: list[Event]) -> list[str]:
    """Return at most MOST_FILES written files, according to checkpoints and the transcript."""
    found = dict.fromkeys(event.file_path for event in events if event.file_path)
    found |= dict.fromkeys(typed(_archived(home, session), "files_modified", list))
    return [str(path) for path in found][:MOST_FILES]


def _archived(home: str, session: str) -> dict[str, Any]:
    archives = archives_of(home)
    try:
        return archives.meta_of(archives.find(session)[1]) or {}
    except (HivepipeError, OSError):  # the session is not archived yet
        return {}


def spent_of(home: str, bill: Bill) -> Spent:
    """Return a bill's tokens and their cost at the prices of `home`, or raise PricesError."""
    cost = bill.cost(prices_in_force(home))
    tokens = bill.tokens()
    return Spent(bill.messages, tokens.prompt + tokens.output, cost.rounded, cost.without_price)
