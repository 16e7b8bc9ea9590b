"""Redact the fields of a row or a job.

The user's rules do not apply to keys, times and paths; only the built-in rules do. Other rows refer
to keys and times, and hivepipe opens the paths later. A rule of the user such as `[0-9]{4}` would
also match ids, hashes, names of models, times and paths.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from hivepipe.redact import built_in, redact_line, redact_text
from hivepipe.text.printable_json import is_json

_ENDS_OF_KEYS = ("_id", "_at", "_by")
# Columns, parameters of statements, and fields of jobs and of the JSON columns
_KEYS = {
    *("id", "job", "session", "instance", "agent", "profile", "worker", "swarm", "key", "state"),
    *("sha256", "snapshot", "respawn_of", "operation", "periodic", "seq", "model"),
    *("host", "machine", "boot", "pid_space", "pid_started"),
    *("at", "time", "before", "ahead", "last_seen", "last_active", "last_used", "timestamp"),
    *("sessionId", "savedBy", "spawnedAt"),
}
_LIKE_A_KEY = re.compile(r"[\w.:+@/\[\]-]{1,128}(?: [\w.:+-]{1,32})?", re.ASCII).fullmatch
_LIKE_A_NAME = re.compile(r"[a-z][A-Za-z_]{0,31}|[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch
_PATHS = {
    *("transcript_path", "agent_transcript_path", "path"),
    *("project", "project_path", "cwd", "folder", "hive"),
}
_LIKE_A_PATH = re.compile(r"/[^\0-\x1f]{0,4095}").fullmatch
_JSON_COLUMNS = {
    *("metadata", "checkpoint_data", "child_pids", "data", "days"),
    *("key_learnings", "files", "open_ends"),
}
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?|[][{}]', re.DOTALL)


def redact_column(name: str, text: str) -> str:
    """Return the text of a column or parameter without its secrets."""
    redacted = redact_text(text)
    if redacted == text:
        return text
    if name in _JSON_COLUMNS and text.startswith(("{", "[")):
        return _redact_json(text, redacted)
    return _kept(name, text, redacted)


def redact_fields(value: Any, name: str = "") -> Any:
    """Return a JSON value with every text in it redacted; the names of fields stay."""
    if isinstance(value, str):
        return _kept(name, value, redact_text(value))
    if isinstance(value, dict):
        return {key: redact_fields(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [redact_fields(item, name) for item in value]
    return value


def _redact_json(text: str, redacted: str) -> str:
    """Redact the strings of JSON one by one, so that the result is still JSON.

    `redacted` is the text redacted as a whole. Return `redacted` unchanged if some secret is
    recognised only in the whole text. If `redacted` is not JSON, because a rule has replaced a
    number, redact the whole text by the built-in rules first, and then its strings.
    """
    result = _string_by_string(text)
    by_built_in = built_in().redact_line(text.encode("utf-8", "surrogatepass"))[0]
    if result and all(map(_is_clean, (by_built_in.decode("utf-8", "surrogatepass"), result))):
        return result
    return redacted if is_json(redacted) else _string_by_string(_without_secrets(text)) or redacted


def _without_secrets(text: str) -> str:
    return built_in().redact_text(text)


def _is_clean(text: str) -> bool:
    return _without_secrets(text) == text


def _string_by_string(text: str) -> str:
    """Redact the string values of JSON. Return "" for other text, or if all of it was replaced."""
    if not is_json(text):
        return ""
    line, _ = redact_line(text.encode("utf-8", "surrogatepass"))
    after = [literal for _, _, literal in _strings(line.decode("utf-8", "surrogatepass"))]
    before = [*_strings(text)]
    if len(after) != len(before):  # the whole line was replaced
        return ""
    parts, end = [], 0
    for (start, name, old), new in zip(before, after, strict=True):
        parts += [text[end:start], _literal(name, old, new)]
        end = start + len(old)
    return "".join([*parts, text[end:]])


def _strings(text: str) -> Iterator[tuple[int, str | None, str]]:
    """Yield start, field name and literal of each string of JSON; keys have the field name None."""
    name, outer = "", []
    for token in _TOKEN.finditer(text):
        if token[0] in "[{":
            outer.append(name)
        elif token[0] in "]}":
            name = outer.pop()
        elif token[1]:
            literal = token[0][: -len(token[1])]
            yield token.start(), None, literal
            name = json.loads(literal, strict=False)
        else:
            yield token.start(), name, token[0]


def _literal(name: str | None, old: str, new: str) -> str:
    """Return the redacted literal of a string; keys, times and names are returned unchanged.

    hivepipe looks up the fields of JSON by their names, such as `protected` or a day.
    """
    before, after = json.loads(old), json.loads(new)
    if before == after:  # perhaps not searched yet, as a very short string or an image
        after = redact_text(before)
    if name is None:
        after = before if _LIKE_A_NAME(before) and _is_clean(before) else after
    elif name != "key":
        after = _kept(name, before, after)
    return old if after == before else json.dumps(after, ensure_ascii="\\u" in old)


def _kept(name: str, before: str, after: str) -> str:
    """Return `before` for a key, time or path, else `after`, the redacted text.

    Also return `after` for a key, time or path in which a built-in rule finds a secret.
    """
    if before == after or built_in().redact_text(before) != before:
        return after
    if name in _PATHS and _LIKE_A_PATH(before):
        return before
    is_key = name in _KEYS or name.endswith(_ENDS_OF_KEYS)
    return before if is_key and _LIKE_A_KEY(before) else after
