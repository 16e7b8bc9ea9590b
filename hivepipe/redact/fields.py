"""Redact the fields of a row or a job, without the keys and times that other rows refer to.

A rule of the user such as `[0-9]{4}` also matches ids, hashes, names of models and times. Only the
built-in rules apply to them.
"""

from typing import Any

import orjson

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
_TRANSCRIPTS = ("transcript_path", "path", "agent_transcript_path")
_JSON_COLUMNS = {
    *("metadata", "checkpoint_data", "child_pids", "data", "days"),
    *("key_learnings", "files", "open_ends"),
}


def redact_column(name: str, text: str) -> str:
    """Return the text of a column or parameter without its secrets."""
    redacted = redact_text(text)
    if redacted == text:
        return text
    if name in _JSON_COLUMNS and text.startswith(("{", "[")):
        return _redact_json(text)
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


def _redact_json(text: str) -> str:
    """Redact JSON as a line of a transcript: the name of a password may be that of its field."""
    line, _ = redact_line(text.encode())
    try:
        fields = _with_keys(orjson.loads(text), orjson.loads(line))
    except orjson.JSONDecodeError:  # the text of another program
        return line.decode()
    return orjson.dumps(fields).decode()


def _with_keys(before: Any, after: Any, name: str = "") -> Any:
    """Return the redacted value with the keys and times of the value before."""
    if isinstance(before, dict) and isinstance(after, dict):
        pairs = zip(before, before.values(), after.values(), strict=True)
        return {field: _with_keys(old, new, field) for field, old, new in pairs}
    if isinstance(before, list) and isinstance(after, list):
        return [_with_keys(*pair, name) for pair in zip(before, after, strict=True)]
    return _kept(name, before, after) if isinstance(before, str) else after


def _kept(name: str, before: str, after: str) -> str:
    """Return the redacted text of a field, or the text before if it is a key or a time."""
    if before == after:
        return after
    if name in _TRANSCRIPTS and "/" in before:
        folder, _, file = before.rpartition("/")  # the file has the name of its session
        return f"{redact_text(folder)}/{_kept('id', file, redact_text(file))}"
    is_key = name in _KEYS or name.endswith(_ENDS_OF_KEYS)
    if not is_key or len(before.split()) > 2:
        return after
    return before if built_in().redact_text(before) == before else after
