"""The rows of a home as the server takes them: which columns at which level of sharing.

Texts lose what PostgreSQL does not take (NUL, halves of surrogate pairs), numbers that are none
become NULL: a row that cannot be sent would hold up all others.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from hivepipe.db.changes import CAPTURED, SEPARATOR, Captured, Change
from hivepipe.db.listings import Listings
from hivepipe.team.policy import Level, includes

Row = dict[str, Any]
LARGEST = 1 << 63
FAR_PAST = "1970-01-01"
BATCH_BYTES = 4_000_000


class Sharing(NamedTuple):
    """How the rows of a session are shared: the level, and the project's name.

    `has_moved`: what is not shared may have been, and is deleted at the server.
    """

    level: str
    project: str
    has_moved: bool = False


SharingOf = Callable[[str], Sharing]  # of a session


class Shared(NamedTuple):
    """A table: `texts` and `numbers` are sent as metadata, `hidden` texts at `hidden_at`."""

    lookup: str  # SQL that finds the row, by the parts of its key :p0, :p1, ...
    texts: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    hidden_at: Level = "prompts"
    level: Level = "metadata"  # below it no row is sent
    session: str = "session_id"


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_TOKENS = _words("input output cache_read cache_write_5m cache_write_1h web_searches")
_BY_JOB = "(job_id = :p1 OR (job_id IS NULL AND id = CAST(substr(:p1, 2) AS INTEGER)))"
SHARED = {
    "sessions": Shared(
        "id = :p0",
        _words(
            "id status model effort source client swarm_id created_at updated_at paused_at "
            "ended_at end_reason turn turn_ended_at"
        ),
        hidden=("objective",),
        session="id",
    ),
    "instance_sessions": Shared(
        "id = :p0",
        _words("id session_id instance_id status started_at last_seen"),
        _words("operation_count checkpoint_count"),
    ),
    "agents": Shared(
        "id = :p0",
        _words(
            "id session_id swarm_id type status model created_at began_at last_active "
            "completed_at deleted_at deleted_reason outcome tool_use_id"
        ),
        hidden=_words("name role error"),
    ),
    "activity": Shared(
        "session_id = :p0 AND since_ms = CAST(:p1 AS INTEGER)",
        _words("session_id last_active_at last_work_at waits_for"),
        _words("since_ms calls failed denied warned open_calls turn_is_open"),
    ),
    "cost_states": Shared(
        "session_id = :p0 AND started_ms = CAST(:p1 AS INTEGER)",
        _words("session_id model created_at"),
        (*_words("started_ms duration_ms"), *_TOKENS),
    ),
    "summaries": Shared(
        "session_id = :p0 AND state = :p1",
        _words("session_id state made_at kind provider model reason harness"),
        _words("requests input_tokens output_tokens cost_usd"),
        hidden=_words("summary key_learnings files open_ends"),
        level="prompts",
    ),
    "usage": Shared(
        "message_id = :p1 AND request_id = :p2",
        _words("message_id request_id session_id agent_id created_at model speed region"),
        (*_words("is_sidechain is_replay"), *_TOKENS),
    ),
    "prompts": Shared(
        _BY_JOB,
        _words("session_id prompt_id created_at job_id"),
        hidden=("prompt",),
        level="prompts",
    ),
    "skill_uses": Shared(
        _BY_JOB,
        _words("session_id skill kind created_at prompt_id job_id"),
        ("success",),
        hidden=("arguments",),
    ),
    "session_logs": Shared(
        _BY_JOB,
        _words("session_id log_level created_at job_id"),
        hidden=_words("message data"),
        level="everything",
        hidden_at="everything",
    ),
}
_CAPTURED = {each.table: each for each in CAPTURED}


class Item(NamedTuple):
    """A row state, or the key of a deleted row."""

    version: int
    table: str
    row: Row
    is_gone: bool = False


class Batch(NamedTuple):
    """What is sent at once: all that may be shared of the changes up to a version."""

    upto: int
    items: tuple[Item, ...] = ()

    def by_table(self, *, gone: bool) -> dict[str, list[Row]]:
        """Return table -> row states, or deleted keys."""
        found: dict[str, list[Row]] = {}
        for item in self.items:
            if item.is_gone == gone:
                found.setdefault(item.table, []).append(item.row)
        return found

    def months(self) -> set[str]:
        """Return the months whose partitions the rows need."""
        return {item.row["month"] for item in self.items if "month" in item.row}

    def halves(self) -> tuple["Batch", "Batch"]:
        """Return two batches with half of the items each."""
        middle = len(self.items) // 2
        first, second = self.items[:middle], self.items[middle:]
        return Batch(first[-1].version, first), Batch(self.upto, second)


def batch_of(store: Listings, changes: list[Change], sharing_of: SharingOf) -> Batch:
    """Return the states of the changed rows as they may be shared; `changes` is not empty.

    A batch ends early where its texts would grow beyond BATCH_BYTES.
    """
    items: list[Item] = []
    size = 0
    for change in changes:
        item = _item(store, change, sharing_of)
        if item:
            items.append(item)
            size += sum(len(value) for value in item.row.values() if isinstance(value, str))
        if size > BATCH_BYTES:
            return Batch(change.version, tuple(items))
    return Batch(changes[-1].version, tuple(items))


def _item(store: Listings, change: Change, sharing_of: SharingOf) -> Item | None:
    """Return what is sent of a change; None: nothing."""
    if change.table == "forgotten_sessions":
        return Item(change.version, change.table, {"key": clean(change.key)})
    if change.table not in SHARED:
        return None
    shared, captured = SHARED[change.table], _CAPTURED[change.table]
    parts = change.key.split(SEPARATOR)
    if len(parts) != len(captured.parts):  # an id with a control character: nobody's row
        return None
    head: Row = {"key": clean(change.key), "version": change.version}
    if captured.is_by_month:
        head["month"] = month_of(parts[0])
    row = _stored(store, change, shared, captured, parts)
    if row is None:
        return Item(change.version, change.table, head, is_gone=True)
    sharing = sharing_of(row[shared.session] or "")
    if not includes(sharing.level, shared.level):
        return Item(change.version, change.table, head, is_gone=True) if sharing.has_moved else None
    if change.table == "sessions":
        head["project"] = clean(sharing.project)
    columns = _columns(row, change.table, shared, sharing.level)
    return Item(change.version, change.table, head | columns)


def _stored(
    store: Listings, change: Change, shared: Shared, captured: Captured, parts: list[str]
) -> Row | None:
    key = captured.key(change.table)
    sql = f"SELECT * FROM {change.table} WHERE {shared.lookup} AND {key} = :key"
    values = {f"p{number}": part for number, part in enumerate(parts)}
    return next(iter(store.rows(sql, values | {"key": change.key})), None)


def _columns(row: Row, table: str, shared: Shared, level: str) -> Row:
    """Return the shared columns of a row; hidden ones are left out, which makes them NULL."""
    found: Row = {name: clean(row.get(name)) for name in shared.texts}
    found |= {name: whole(row.get(name)) for name in shared.numbers}
    if "cost_usd" in found:
        found["cost_usd"] = real(row["cost_usd"])
    if includes(level, shared.hidden_at):
        found |= {name: clean(row.get(name)) for name in shared.hidden}
    if table == "agents":
        found["metadata"] = _agents_usage(row.get("metadata"))
    return {name: value for name, value in found.items() if value is not None}


def _agents_usage(metadata: Any) -> str | None:
    """Return tokens and duration out of an agent's metadata, which may hold texts, too."""
    try:
        usage = json.loads(metadata or "{}")["usage"]
        return json.dumps(
            {"usage": {name: whole(usage[name]) for name in ("tokens", "duration_ms")}}
        )
    except (ValueError, LookupError, TypeError):
        return None


def clean(value: Any) -> str | None:
    """Return a value as text that PostgreSQL takes."""
    if value is None:
        return None
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def whole(value: Any) -> int | None:
    """Return a value if it is an integer that PostgreSQL takes."""
    return value if isinstance(value, int) and -LARGEST <= value < LARGEST else None


def real(value: Any) -> float | None:
    """Return a value if it is a finite number."""
    return float(value) if isinstance(value, int | float) and abs(value) < 1e300 else None


def month_of(text: str) -> str:
    """Return the first day of a month "2026-11"; the far past for a text that is no month."""
    year, _, month = text.partition("-")
    is_month = len(text) == 7 and text.isascii() and year.isdigit() and month.isdigit()
    return f"{text}-01" if is_month and int(year) > 0 and 1 <= int(month) <= 12 else FAR_PAST
