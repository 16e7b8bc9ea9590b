"""Redact the fields of a row or a job. Keys and times, which other rows refer to, stay.

A rule of the user such as `[0-9]{4}` also matches ids, hashes, names of models, times, and paths of
folders and files that hivepipe opens later. Only the built-in rules apply to them.
"""

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from hivepipe.redact import built_in, redact_line, redact_text

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
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch
_PATHS = {
    *("transcript_path", "agent_transcript_path", "path"),
    *("project", "project_path", "cwd", "folder", "hive"),
}
_LIKE_A_PATH = re.compile(r"/[^\0-\x1f]{0,4095}").fullmatch
_JSON_COLUMNS = {
    *("metadata", "checkpoint_data", "child_pids", "data", "days"),
    *("key_learnings", "files", "open_ends"),
}
# The forms in which JSON is written
_FORMS: tuple[Callable[[Any], str], ...] = (
    partial(json.dumps, ensure_ascii=False, separators=(",", ":")),
    partial(json.dumps, ensure_ascii=False),
    json.dumps,
)


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
    """Redact the strings of JSON one by one, so that it stays JSON.

    Return `redacted`, the redacted text, if a secret is only known from the strings beside it, or
    if the JSON cannot be written again without a change.
    """
    try:
        result = _one_by_one(text)
        by_built_in = built_in().redact_line(text.encode())[0].decode()
    except (ValueError, RecursionError):
        return redacted
    is_clean = all(built_in().redact_text(each) == each for each in (by_built_in, result))
    return result if is_clean else redacted


def _one_by_one(text: str) -> str:
    """Redact JSON as a line of a transcript, except keys. ValueError: it cannot be written."""
    before = json.loads(text)
    form = next((form for form in _FORMS if form(before) == text), None)
    if form is None:  # a name that occurs twice, or the form of another program
        raise ValueError
    line, _ = redact_line(text.encode())
    return form(_with_keys(before, json.loads(line)))


def _with_keys(before: Any, after: Any, name: str = "") -> Any:
    """Return the redacted value with the keys and times of the value before."""
    if isinstance(before, dict) and isinstance(after, dict):
        pairs = zip(before.items(), after.items(), strict=True)
        return {
            field if _DAY(field) else new_field: _with_keys(old, new, field)
            for (field, old), (new_field, new) in pairs
        }
    if isinstance(before, list) and isinstance(after, list):
        return [_with_keys(*pair, name) for pair in zip(before, after, strict=True)]
    if not isinstance(before, str):
        return after
    # A line's shortest strings and its images were not searched
    redacted = redact_text(before) if before == after else after
    return redacted if name == "key" else _kept(name, before, redacted)


def _kept(name: str, before: str, after: str) -> str:
    """Return the redacted text of a field, or the text before if it is a key, time or path."""
    if before == after or built_in().redact_text(before) != before:
        return after
    if name in _PATHS and _LIKE_A_PATH(before):
        return before
    is_key = name in _KEYS or name.endswith(_ENDS_OF_KEYS)
    return before if is_key and _LIKE_A_KEY(before) else after
