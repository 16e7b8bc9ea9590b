"""Read the settings that `hivepipe.config.config_file` compiled for the hooks of a home.

    {"v": 1, "values": {"HIVEPIPE_...": "text"}, "context": [...],
     "asked": {"<project>": {"values": {...}, "context": [...]}}}

`asked` has the settings that a project's repository requests and the user trusted. These settings
apply where the user's own settings have no value. Hooks import this module if settings exist.
"""

import posix

from hivepipe.events.claude_code import parse_object
from hivepipe.home import read_small

LIMIT_BYTES = 1 << 20

Found = tuple[dict[str, str], list[object]]

# The last result, because most events of a process have the same settings.
_last: tuple[tuple[object, ...], Found] = ((), ({}, []))  # (what the result depends on, the result)


def compiled_settings(path: str, project: str) -> Found:
    """Return values and keyword rules for a project's sessions; both are empty without a file."""
    global _last
    try:
        status = posix.stat(path)
    except OSError:
        return {}, []
    of = project, path, status.st_ino, status.st_size, status.st_mtime_ns
    if _last[0] != of:
        _last = of, _read(read_small(path, LIMIT_BYTES), project)
    return _last[1]


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
