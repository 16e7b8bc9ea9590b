"""The content of a view, without the homes that cannot be read."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from hivepipe.errors import HivepipeError, TeamAwayError, TeamError, TeamRefusedError
from hivepipe.reading.homes import KnownHome
from hivepipe.web.view_query import Content, FilterError, ViewQuery

logger = logging.getLogger("hivepipe.web")

_STATUSES = {FilterError: 400, TeamRefusedError: 403, TeamAwayError: 503}


def content_of(view: Callable[[ViewQuery], Content], query: ViewQuery) -> Content:
    """Return the content of a view; its list `unreadable` has the omitted homes with reasons.

    Raise HivepipeError if no home can be read, FilterError for an invalid filter, or TeamError
    after an error of the team.
    """
    try:
        return {**_read(view, query), "unreadable": []}
    except (FilterError, TeamError):  # no home caused this error
        raise
    except HivepipeError:
        if len(query.homes) == 1:
            raise
    failed = {known.home: _failure(view, query, known) for known in query.homes}
    readable = [known for known in query.homes if not failed[known.home]]
    if not readable:
        raise HivepipeError("; ".join(dict.fromkeys(failed.values())))
    unreadable = [
        {"project": known.project or known.home, "reason": failed[known.home]}
        for known in query.homes
        if failed[known.home]
    ]
    return {**_read(view, replace(query, homes=readable)), "unreadable": unreadable}


def status_of(error: HivepipeError) -> int:
    """Return the HTTP status of the answer for an error of a view; the default is 404."""
    return next((code for kind, code in _STATUSES.items() if isinstance(error, kind)), 404)


def status_with(content: Content) -> int:
    """Return the HTTP status of a view: 400 if its content reports a bad query, else 200."""
    return 400 if content.get("error") else 200


def _failure(view: Callable[[ViewQuery], Content], query: ViewQuery, known: KnownHome) -> str:
    """Return why a view cannot show one home, or ""."""
    try:
        _read(view, replace(query, homes=[known]))
    except HivepipeError as error:
        return str(error)
    return ""


def _read(view: Callable[[ViewQuery], Content], query: ViewQuery) -> Content:
    """Return the content of a view; raise an error of damaged data as HivepipeError."""
    with damage_named():
        return view(query)


@contextmanager
def damage_named() -> Iterator[None]:
    """Log any error that damaged data causes, and raise it again as HivepipeError."""
    try:
        yield
    except HivepipeError:
        raise
    except Exception as error:
        logger.exception("a view failed")
        raise HivepipeError(f"this cannot be read: {type(error).__name__}: {error}") from error
