"""actions.log in the home: actions of users on failed jobs, or on the stack through the web page.

The log is a file, so that it can be written while the database is locked or damaged. The log has
one JSON object per line:

{"at": "2026-11-22T09:00:00.000Z", "user": "ana", "by": "page, 127.0.0.1", "action": "discard",
 "chosen": 3, "done": 3, "operations": {"insert_agent": 3}, "ids": ["..."]}
"""

import os
import pwd
from dataclasses import dataclass
from typing import Any

from hivepipe.errors import HivepipeError
from hivepipe.files.json_log import append, entries
from hivepipe.times import now

NAME = "actions.log"


@dataclass(frozen=True, slots=True)
class Action:
    """One logged action; `by` is the command or the page, `ids` are the ids of the first jobs."""

    at: str
    user: str
    by: str
    action: str
    chosen: int
    done: int
    operations: dict[str, int]
    ids: list[str]


def record(home: str, what: str, **fields: Any) -> Action:
    """Append an action of this user with the current time, and return it.

    Raise HivepipeError if the log cannot be written. The error says that the action `what` is done.
    """
    action = Action(at=now()[0], user=_user(), **fields)
    try:
        append(home, NAME, action)
    except OSError as error:
        raise HivepipeError(f"{what} is done, but {NAME} cannot be written: {error}") from error
    return action


def actions(home: str) -> list[Action]:
    """Return the logged actions, newest first; skip invalid lines. Raises OSError."""
    return [*entries(home, NAME, Action)][::-1]


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # in a container, a uid may have no name
        return str(os.geteuid())
