"""`status.json`, in which a worker reports its state: parsed leniently, written atomically.

A language model writes this file. Only `status` is required. Every valid field is used, errors are
listed as problems, and unknown fields are kept.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from hivepipe.errors import HiveError
from hivepipe.events.claude_code import storable
from hivepipe.home import write_small
from hivepipe.orchestrator.plain_file import changed_ns, open_regular

WORDS = ("working", "need_input", "done", "error", "context_full")
LARGEST = 1 << 20
DEEPEST = 50  # levels of lists and objects; limited, because readers recurse

UNCOMMITTED = "done without a commit"

_TEXTS = (
    *("progress", "question", "context", "result", "notes"),
    *("error", "attempted", "suggestion", "remaining", "timestamp"),
)
_LISTS = ("options", "files_changed")
_SWITCHES = ("committed", "parked")
_NEEDED = {"need_input": "question", "error": "error", "context_full": "remaining"}
_STATUS_WORD = re.compile(r'"status"\s*:\s*"([A-Za-z_-]+)"')
_FENCE = "```"


class Status(NamedTuple):
    """The last status of a worker; `word` is "" if the status cannot be read."""

    word: str
    fields: Mapping[str, Any]
    problems: tuple[str, ...]
    changed_ns: int  # modification time of the file, or 0 without a file
    digest: str  # SHA-256 of the file's bytes

    def text(self, name: str) -> str:
        """Return a text field of status.json, or "" without it."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""

    def texts(self, name: str) -> list[str]:
        """Return the texts of a list field of status.json, or [] without it."""
        value = self.fields.get(name)
        return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []

    @property
    def reported_ns(self) -> int:
        """Return the later of file time and timestamp in ns. A future timestamp is ignored."""
        try:
            at = datetime.fromisoformat(self.text("timestamp"))
        except ValueError:
            return self.changed_ns
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        now_ns = int(datetime.now(UTC).timestamp() * 1e9)
        written_ns = int(at.timestamp() * 1e9)
        return max(self.changed_ns, written_ns) if written_ns <= now_ns else self.changed_ns


NONE = Status("", {}, (), 0, "")


def read_status(path: Path) -> Status:
    """Return the last status of a worker. Errors of the file are listed in `problems`."""
    try:
        with open(path, "rb", opener=open_regular) as file:
            data = file.read(LARGEST + 1)
            at_ns = changed_ns(file.fileno())
    except FileNotFoundError:
        return NONE
    except OSError as error:
        return NONE._replace(problems=(f"status.json cannot be read: {error.strerror}",))
    return parse(data, at_ns)


def parse(data: bytes, changed_ns: int = 0) -> Status:
    digest = sha256(data).hexdigest()
    if len(data) > LARGEST:
        return Status("", {}, ("status.json is larger than a megabyte",), changed_ns, digest)
    text = data.decode("utf-8-sig", "replace")
    try:
        found = storable(json.loads(_without_fence(text)), DEEPEST)
    except (ValueError, RecursionError):
        return _of_incomplete(text, changed_ns, digest)
    if not isinstance(found, dict):
        return Status("", {}, ("status.json is not a JSON object",), changed_ns, digest)
    word = _word(found.get("status"))
    return Status(word, found, tuple(_problems(word, found)), changed_ns, digest)


def _without_fence(text: str) -> str:
    """Return the content of a Markdown code block, or the whole text if it is no code block."""
    block = text.strip()
    opening, _, inside = block.partition("\n")
    is_fenced = opening.startswith(_FENCE) and inside.endswith(_FENCE)
    return inside.removesuffix(_FENCE) if is_fenced else text


def _of_incomplete(text: str, changed_ns: int, digest: str) -> Status:
    """Return the status from a file that is not complete JSON, if its status word can be found."""
    found = _STATUS_WORD.search(text)
    word = _word(found[1]) if found else ""
    fields = {"status": word} if word else {}
    return Status(word, fields, ("status.json is half written, or not JSON",), changed_ns, digest)


def _word(value: object) -> str:
    plain = value.strip().lower().replace("-", "_") if isinstance(value, str) else ""
    return plain if plain in WORDS else ""


def _problems(word: str, found: Mapping[str, Any]) -> Iterator[str]:
    if "status" not in found:
        yield "status.json has no `status`"
    elif not word:
        yield f"`status` is {found['status']!r}, not one of {', '.join(WORDS)}"
    needed = _NEEDED.get(word)
    if needed and not found.get(needed):
        yield f"{word} without `{needed}`"
    if word == "done":
        if found.get("committed") is not True:
            yield UNCOMMITTED
        if found.get("parked") is not True:
            yield "done without having been parked"
    yield from _wrong_types(found)


def _wrong_types(found: Mapping[str, Any]) -> Iterator[str]:
    kinds: tuple[tuple[tuple[str, ...], type, str], ...] = (
        (_TEXTS, str, "a text"),
        (_LISTS, list, "a list"),
        (_SWITCHES, bool, "true or false"),
        (("turn_count",), int, "a number"),
    )
    for names, kind, called in kinds:
        for name in names:
            if found.get(name) is not None and not isinstance(found[name], kind):
                yield f"`{name}` is not {called}"


def write_status(path: Path, fields: Mapping[str, Any]) -> None:
    """Replace a status.json. Raise HiveError if a field is invalid."""
    word = _word(fields.get("status"))
    if not word:
        raise HiveError(f"`status` is {fields.get('status')!r}, not one of {', '.join(WORDS)}")
    wrong = next(_wrong_types(fields), "")
    if wrong:
        raise HiveError(wrong)
    write_small(str(path), json.dumps({**fields, "status": word}, indent=2) + "\n")
