"""Read the settings that `hivepipe.config.config_file` compiled for the hooks of a home.

    {"v": 1, "values": {"HIVEPIPE_...": "text"}, "context": [...],
     "asked": {"<project>": {"values": {...}, "context": [...]}}}

`asked` holds the settings that a project's repository asks for and its user trusted; they apply
where the user's own settings have no value. On the hook path, loaded if settings exist.
"""

import posix

from hivepipe.events.claude_code import parse_object
from hivepipe.home import read_small

LIMIT_BYTES = 1 << 20

Found = tuple[dict[str, str], list[object]]

# Cached, because most events of a process have the same settings.
_file: tuple[tuple[int, int, int], str] = ((0, 0, 0), "")  # identity of the file, and its text
_last: tuple[str, str, Found] = ("", "", ({}, []))  # text, project, result


def text_of(path: str) -> str:
    """Return the text of the file, or "" if it is missing; a replaced file is read again."""
    global _file
    try:
        status = posix.stat(path)
    except OSError:
        return ""
    identity = status.st_ino, status.st_size, status.st_mtime_ns
    if _file[0] != identity:
        _file = identity, read_small(path, LIMIT_BYTES)
    return _file[1]


def compiled_settings(text: str, project: str) -> Found:
    """Return the values for the sessions of a project, and its keyword rules."""
    global _last
    if _last[:2] != (text, project):
        _last = (text, project, _read(text, project))
    return _last[2]


def _read(text: str, project: str) -> Found:
    found = parse_object(text.encode("utf-8", "surrogateescape"), []) or {}
    requests = found.get("asked")
    own = requests.get(project) if isinstance(requests, dict) else None
    parts = [part for part in (own, found) if isinstance(part, dict)]
    values = {name: value for part in parts for name, value in _values(part)}
    rules = [rule for part in parts[::-1] for rule in _list(part.get("context"))]
    return values, rules


def _values(part: dict[str, object]) -> list[tuple[str, str]]:
    values = part.get("values")
    items = values.items() if isinstance(values, dict) else ()
    return [(name, value) for name, value in items if isinstance(value, str)]


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
