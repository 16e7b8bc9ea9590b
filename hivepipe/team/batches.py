"""Batches of changed rows: the next changes of a home, without values that are not shared.

One query per table reads all rows of a batch. The rows are sent column by column.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import orjson

from hivepipe.db.changes import CAPTURED, SEPARATOR, Change
from hivepipe.db.listings import Listings
from hivepipe.team.policy import includes
from hivepipe.team.shared_rows import SHARED, clean, cleaned, month_of

FORGOTTEN = "forgotten_sessions"
BATCH_BYTES = 500_000
KEYS_AT_ONCE, FEW_KEYS = 64, 8  # keys of one query

_CAPTURED = {each.table: each for each in CAPTURED}
_HEAD = 2  # leading columns that are not sent
_BY_MONTH = {each.table for each in CAPTURED if each.is_by_month}
# Tables whose keys begin with the id of a session.
_OF_SESSION = {FORGOTTEN, "sessions"} | {
    each.table for each in CAPTURED if each.parts[0] == "{row}.session_id"
}


class Sharing(NamedTuple):
    """How a session's rows are shared: the level, and the project's name (None if unknown).

    With `has_moved`, the server may have rows that are no longer shared, and deletes them.
    """

    level: str
    project: str | None
    has_moved: bool = False


SharingOf = Callable[[str], Sharing]  # session -> how its rows are shared


class Item(NamedTuple):
    """A changed row: values of `Shared.columns` (None if deleted), and the session's project."""

    change: Change
    values: tuple[Any, ...] | None = None
    project: str | None = None

    @property
    def is_by_month(self) -> bool:
        """Tell whether the table of the row has partitions by month."""
        return self.change.table in _BY_MONTH

    @property
    def month(self) -> str:
        """Return the first day of the month that the key begins with."""
        return month_of(self.change.key.partition(SEPARATOR)[0])

    def value(self, column: str) -> Any:
        """Return the value of a column, or None for a deleted row."""
        return self.values and self.values[SHARED[self.change.table].columns.index(column)]


class Batch(NamedTuple):
    """One batch: the shared part of the changes up to the version `upto`.

    With `is_followed`, another batch comes next, so the server need not sync this batch to disk.
    """

    upto: int
    items: tuple[Item, ...] = ()
    is_followed: bool = False

    def rows(self) -> str:
        """Return the rows as JSON: {table: {column: array literal with the value of each row}}.

        The server parses an array literal faster than a JSON array.
        """
        found: dict[str, Any] = {}
        for table, items in self._by_table(is_gone=False):
            columns = zip(*(each.values or () for each in items), strict=True)
            named = _heads(table, items) | dict(zip(SHARED[table].columns, columns, strict=True))
            if table == "sessions":
                named["project"] = [each.project for each in items]
            found[table] = {name: _array(values) for name, values in named.items()}
        forgotten = [each.change.key for each in self.items if each.change.table == FORGOTTEN]
        return _json(found | {FORGOTTEN: [{"key": key} for key in forgotten]})

    def gone(self) -> str:
        """Return the keys of deleted rows as JSON: {table: [{key, version, month}, ...]}."""
        found = {}
        for table, items in self._by_table(is_gone=True):
            heads = _heads(table, items)
            found[table] = [
                dict(zip(heads, each, strict=True)) for each in zip(*heads.values(), strict=True)
            ]
        return _json(found)

    def _by_table(self, *, is_gone: bool) -> Iterator[tuple[str, list[Item]]]:
        found = defaultdict(list)
        for item in self.items:
            if (item.values is None) is is_gone and item.change.table != FORGOTTEN:
                found[item.change.table].append(item)
        yield from found.items()

    def months(self) -> set[str]:
        """Return the months whose partitions the rows need."""
        return {each.month for each in self.items if each.is_by_month}

    def halves(self) -> tuple["Batch", "Batch"]:
        """Return two batches, each with half of the items."""
        middle = len(self.items) // 2
        first, second = self.items[:middle], self.items[middle:]
        return Batch(first[-1].change.version, first), Batch(self.upto, second)


def _heads(table: str, items: list[Item]) -> dict[str, list[Any]]:
    """Return column -> values of the columns that identify the rows: key, version, month."""
    found: dict[str, list[Any]] = {
        "key": [each.change.key for each in items],
        "version": [each.change.version for each in items],
    }
    return found | {"month": [each.month for each in items]} if table in _BY_MONTH else found


def _array(values: Sequence[Any]) -> str:
    """Return the values as an array literal of PostgreSQL.

    The literal is made from a JSON list unless a text needs an escape. The separator inside keys, a
    control character, is written raw, although JSON escapes it.
    """
    try:
        text = orjson.dumps(values).decode().replace("\\u001f", SEPARATOR)
    except TypeError:
        text = "\\"
    inner = ",".join(map(_element, values)) if "\\" in text else text[1:-1]
    return f"{{{inner}}}"


def _element(value: Any) -> str:
    if isinstance(value, str | bytes):
        text = clean(value).replace("\\", "\\\\").replace('"', '\\"')
        return f'"{text}"'
    return "NULL" if value is None else str(value)


def _json(content: dict[str, Any]) -> str:
    """Return JSON that PostgreSQL accepts; texts are cleaned only if a batch needs it."""
    try:
        text = orjson.dumps(content).decode()
    except TypeError:
        text = "\\u0000"
    return orjson.dumps(cleaned(content)).decode() if "\\u0000" in text else text


# ---- reading


def batch_of(store: Listings, changes: list[Change], sharing_of: SharingOf) -> Batch:
    """Return the shared columns of the changed rows; `changes` is not empty.

    A batch ends early when its texts exceed BATCH_BYTES.
    """
    whole = [each for each in changes if _has_whole_key(each)]
    tables = {each.table for each in whole if each.table != FORGOTTEN}
    found = {table: _Rows(store, table, whole) for table in tables}
    items: list[Item] = []
    size = 0
    for change in whole:
        item = _item(change, found.get(change.table), sharing_of)
        if item:
            items.append(item)
            size += _size(item)
        if size > BATCH_BYTES:
            return Batch(change.version, tuple(items))
    return Batch(changes[-1].version, tuple(items))


def _has_whole_key(change: Change) -> bool:
    """Tell whether a key has the right number of parts; a separator in an id adds parts."""
    known = _CAPTURED.get(change.table)
    return known is not None and change.key.count(SEPARATOR) == len(known.parts) - 1


def _size(item: Item) -> int:
    """Return the length of an item's `hidden` columns, the only ones with long texts."""
    hidden = len(SHARED[item.change.table].hidden) if item.values else 0
    return sum(len(text) for text in item.values[-hidden:] if text) if item.values and hidden else 0


def _item(change: Change, rows: "_Rows | None", sharing_of: SharingOf) -> Item | None:
    """Return the item for a change, or None if nothing is sent.

    The item of a row that is no longer shared is a deletion.
    """
    row = rows.of(change) if rows else None
    if rows is None or row is None:
        return None if _is_of_private_session(change, sharing_of) else Item(change)
    sharing = sharing_of(row[1] or "")
    if includes(sharing.level, rows.shared.level):
        return Item(change, rows.values(row, sharing.level), sharing.project)
    return Item(change) if sharing.has_moved else None


def _is_of_private_session(change: Change, sharing_of: SharingOf) -> bool:
    """Tell whether the key names an unshared session of which the server has no rows."""
    if change.table not in _OF_SESSION:
        return False
    sharing = sharing_of(change.key.partition(SEPARATOR)[0])
    return sharing.project is not None and sharing.level == "nothing" and not sharing.has_moved


class _Rows:
    """The changed rows of a table, read one by one to limit memory."""

    def __init__(self, store: Listings, table: str, changes: list[Change]) -> None:
        self.shared = SHARED[table]
        self._hidden = (None,) * len(self.shared.hidden)
        wanted = [
            (each.version, each.key, *each.key.split(SEPARATOR))
            for each in changes
            if each.table == table
        ]
        self._rows = _rows_of_keys(store, table, wanted)
        self._next = next(self._rows, None)

    def of(self, change: Change) -> Any:
        """Return the row of a change, or None if it is deleted; changes must come in order."""
        while self._next is not None and self._next[0] < change.version:
            self._next = next(self._rows, None)
        return self._next if self._next is not None and self._next[0] == change.version else None

    def values(self, row: Any, level: str) -> tuple[Any, ...]:
        """Return the values of the sent columns, with None for hidden columns."""
        found: tuple[Any, ...] = row[_HEAD:]
        if self._hidden and not includes(level, self.shared.hidden_at):
            found = found[: -len(self._hidden)] + self._hidden
        return found


def _rows_of_keys(
    store: Listings, table: str, wanted: list[tuple[Any, ...]]
) -> Iterator[sqlite3.Row]:
    """Yield changed rows, by queries of only two sizes: each cached statement takes memory."""
    for at in range(0, len(wanted), KEYS_AT_ONCE):
        some = wanted[at : at + KEYS_AT_ONCE]
        number = FEW_KEYS if len(some) <= FEW_KEYS else KEYS_AT_ONCE
        values = [value for each in some for value in each]
        values += [None] * (number * len(some[0]) - len(values))
        yield from store.each(_sql(table, number), values)


def _sql(table: str, number: int) -> str:
    """Return the query for `number` keys; CROSS JOIN keeps the order of the changes."""
    shared, captured = SHARED[table], _CAPTURED[table]
    parts = ", ".join(f"p{each}" for each in range(len(captured.parts)))
    places = ", ".join("?" * (len(captured.parts) + _HEAD))
    return f"""
        WITH wanted (version, key, {parts}) AS (VALUES {", ".join([f"({places})"] * number)})
        SELECT wanted.version, t.{shared.session}, {", ".join(shared.selected)}
        FROM wanted CROSS JOIN {table} AS t ON {shared.lookup} AND {captured.key("t")} = wanted.key
    """
