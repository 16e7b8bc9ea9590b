"""A view of the homes that can be read, when one of several cannot."""

from collections.abc import Callable
from dataclasses import replace

from hivepipe.errors import HivepipeError
from hivepipe.reading.homes import KnownHome
from hivepipe.web.asked import Asked, Content, FilterError


def content_of(view: Callable[[Asked], Content], asked: Asked) -> Content:
    """Return what a view shows, with `unreadable`: the homes left out, and why.

    HivepipeError: none of the homes can be read. FilterError: a filter cannot be used.
    """
    try:
        return {**view(asked), "unreadable": []}
    except FilterError:
        raise
    except HivepipeError as error:
        failed = {known.home: str(error) for known in asked.homes}
    if len(asked.homes) > 1:
        failed = {known.home: _failure(view, asked, known) for known in asked.homes}
    readable = [known for known in asked.homes if not failed[known.home]]
    if not readable:
        raise HivepipeError("; ".join(dict.fromkeys(failed.values())))
    unreadable = [
        {"project": known.project or known.home, "reason": failed[known.home]}
        for known in asked.homes
        if failed[known.home]
    ]
    return {**view(replace(asked, homes=readable)), "unreadable": unreadable}


def _failure(view: Callable[[Asked], Content], asked: Asked, known: KnownHome) -> str:
    """Return why a view cannot show one home, or ""."""
    try:
        view(replace(asked, homes=[known]))
    except HivepipeError as error:
        return str(error)
    return ""
