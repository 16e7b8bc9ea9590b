"""The predecessor's file queue: its entries, in the order in which it executed them.

<queue>/pending/<priority>_<seconds>N_<counter>.json    waiting
<queue>/processing/                                     claimed; perhaps executed already
<queue>/failed/                                         failed; the error is pasted into the JSON
<queue>/completed/                                      done
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from hivepipe.files.regular_file import regular

LIMIT_BYTES = 1 << 20
_NAME = re.compile(r"([0-9]{0,3})_([0-9]{1,20})N?(?:_([0-9]{1,20}))?\.json")
# The old queue's retries wrote `"retries":1 0`, its failures unescaped text after `"error":`.
_TORN_RETRIES = re.compile(r'("retries"\s*:\s*[0-9]+)\s+[0-9]+')
_PASTED_ERROR = re.compile(r',\s*"error"\s*:.*\Z', re.DOTALL)


class Entry(NamedTuple):
    """One entry of the queue. `problem` says why it has no `sql`, or is ""."""

    path: Path
    operation: str
    sql: str
    created_at: str
    problem: str = ""


def entries(queue: Path, folders: tuple[str, ...]) -> Iterator[Entry]:
    """Yield the entries of these folders, ordered by numeric priority, then time, then counter."""
    found = [path for name in folders for path in (queue / name).glob("*.json")]
    for path in sorted(found, key=_order):
        yield _read(path)


def count(queue: Path, folder: str) -> int:
    """Return the number of files in a folder."""
    return sum(1 for path in (queue / folder).glob("*") if path.is_file())


def _order(path: Path) -> tuple[int, int, int, str]:
    match = _NAME.fullmatch(path.name)
    priority, secs, counter = match.groups() if match else ("", "", "")
    return (int(priority or 5), int(secs or 0), int(counter or 0), path.name)


def _read(path: Path) -> Entry:
    if path.is_symlink() or not path.is_file():
        return Entry(path, "", "", "", "no regular file")
    try:
        with open(path, "rb", opener=regular) as file:
            data = file.read(LIMIT_BYTES + 1)
    except OSError as error:
        return Entry(path, "", "", "", f"it cannot be read: {error.strerror}")
    if len(data) > LIMIT_BYTES:
        return Entry(path, "", "", "", "larger than any entry")
    found = _parsed(data.decode("utf-8-sig", "replace"))
    if found is None:
        return Entry(path, "", "", "", "broken JSON")
    sql, operation = found.get("sql"), found.get("operation")
    name = operation if isinstance(operation, str) else ""
    if not isinstance(sql, str) or not sql.strip():
        return Entry(path, name, "", "", "no SQL in it")
    return Entry(path, name, sql.strip(), _created_at(found, path))


def _parsed(text: str) -> dict[str, Any] | None:
    mended = _TORN_RETRIES.sub(r"\1", text)
    for candidate in (text, mended, _PASTED_ERROR.sub("}", mended)):
        try:
            found = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        return found if isinstance(found, dict) else None
    return None


def _created_at(found: dict[str, Any], path: Path) -> str:
    """Return when the entry was created, from its content or else its name."""
    value = found.get("created_at")
    if isinstance(value, str) and value:
        return value
    match = _NAME.fullmatch(path.name)
    secs = int(match[2]) if match else 0
    if secs > 10**12:  # `date` gives nanoseconds on some systems
        secs //= 10**9
    return datetime.fromtimestamp(min(secs, 2**32), UTC).isoformat()
