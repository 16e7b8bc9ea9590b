"""Adds hivepipe's hooks to the text of a settings file, after other hooks, and removes them.

A function `IsWanted` selects hook handlers, by default those of hivepipe.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from operator import getitem, itemgetter
from typing import Any

from hivepipe.errors import SettingsError
from hivepipe.files.regular_file import BYTE_ORDER_MARK, read_text
from hivepipe.install import json_text
from hivepipe.install.hook_entries import Entry
from hivepipe.install.known_entries import is_ours

IsWanted = Callable[[object], bool]


def with_entries(text: str, wanted: dict[str, Entry]) -> str:
    """Return the text with exactly these entries of hivepipe, or raise SettingsError if invalid."""
    if has_entries(text, wanted):
        return text
    return with_added(without_entries(text), wanted.items())


def with_added(text: str, pairs: Iterable[tuple[str, Entry]]) -> str:
    """Return the text with these entries added after the existing entries."""
    if not text.removeprefix(BYTE_ORDER_MARK).strip():
        text += "{}\n"
    if "hooks" not in json_text.parse(text):
        text = json_text.append(text, (), {}, "hooks")
    for event, entry in pairs:
        if event not in json_text.parse(text)["hooks"]:
            text = json_text.append(text, ("hooks",), [], event)
        text = json_text.append(text, ("hooks", event), entry)
    return text


def has_entries(text: str, wanted: dict[str, Entry]) -> bool:
    """Tell whether the text has exactly these entries of hivepipe."""
    event = itemgetter(0)
    return sorted(entries(text), key=event) == sorted(wanted.items(), key=event)


def entries(text: str, is_wanted: IsWanted = is_ours) -> list[tuple[str, Entry]]:
    """Return (event, entry) for each selected hook handler. An entry has only that handler.

    Raise SettingsError if the hooks are invalid.
    """
    return [(event, entry) for event, entry, _ in _entries(_hooks(text), is_wanted)]


def file_has_entries(path: str, is_wanted: IsWanted = is_ours) -> bool:
    """Tell whether a settings file has selected entries; an unreadable file has none."""
    try:
        return bool(entries(read_text(path, errors="surrogateescape"), is_wanted))
    except (OSError, SettingsError):
        return False


def without_entries(text: str, is_wanted: IsWanted = is_ours) -> str:
    """Return the text without the selected entries, and without containers that become empty."""
    while path := next((path for _, _, path in _entries(_hooks(text), is_wanted)), ()):
        text = json_text.remove(text, path)
        group, event, hooks = path[:-2], path[:-3], path[:-4]
        for emptied, container in ((path[:-1], group), (event, event), (hooks, hooks)):
            if reduce(getitem, emptied, json_text.parse(text)):
                break
            text = json_text.remove(text, container)
    return text


def _hooks(text: str) -> dict[str, list[Any]]:
    """Return the hooks of a settings file. Raises SettingsError if their structure is invalid."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise SettingsError("is not UTF-8") from None
    settings = json_text.parse(text)
    if not isinstance(settings, dict):
        raise SettingsError("is not a JSON object")
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict):
        raise SettingsError('has "hooks" that are not an object')
    for event, groups in hooks.items():
        if not isinstance(groups, list):
            raise SettingsError(f'has hooks of "{event}" that are not a list')
    return hooks


def _entries(
    hooks: dict[str, list[Any]], is_wanted: IsWanted
) -> Iterator[tuple[str, Entry, json_text.Path]]:
    """Yield event, entry and path in the JSON of each selected hook.

    The entry is a copy in which the hook is the only one.
    """
    for event, groups in hooks.items():
        for at, group in enumerate(groups):
            handlers = group.get("hooks") if isinstance(group, dict) else None
            for number, handler in enumerate(handlers if isinstance(handlers, list) else []):
                if is_wanted(handler):
                    path = ("hooks", event, at, "hooks", number)
                    yield event, {**group, "hooks": [handler]}, path
