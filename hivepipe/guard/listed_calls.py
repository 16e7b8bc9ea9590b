"""The last calls of each conversation as Redis last listed them, for the process `intake`.

With these lists the intake judges a call without a round trip, before Redis has counted the call. A
note is the script that records an event in Redis. Redis returns the conversation's list with each
note that the intake sends, so the list is current as of the last note. If another process
sends a note, it removes the file `calls-listed`. Then all lists are unknown until Redis returns
them again.

    <runtime folder>/calls-listed    empty; missing if the lists may be outdated
"""

import posix
import time

from hivepipe.guard.client import WINDOW, Note, WatchedEvent
from hivepipe.home import lua_text

MOST_KNOWN = 128  # conversations and sessions together
KNOWN_SECS = 3600
SEPARATOR = ";"
_UNTIL_RESULT = 33  # the length of a call without a result
LIST_SCRIPT = f"local SEPARATOR = '{SEPARATOR}'\n" + lua_text("guard/lua/list_calls.lua")


class ListedCalls:
    """The lists of calls of some conversations. If there are too many lists, all are dropped."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        # `WatchedEvent.calls_key` -> time of the list, and calls
        self._known: dict[str, tuple[float, list[str]]] = {}
        self._tasks: dict[str, str] = {}  # session -> its task in Redis

    def asked_for(self, note: Note) -> Note:
        """Return the note with a script whose result ends with the list of calls."""
        script, arguments = note
        return script + LIST_SCRIPT, arguments

    def remember(self, watch: WatchedEvent, result: str) -> str:
        """Store the task and the list of calls at the end of a note's result; return the rest.

        If Redis did not execute the note, the conversation's list is dropped.
        """
        rest, is_executed, listed = result.partition(SEPARATOR)
        if not is_executed:
            self._known.pop(watch.calls_key, None)
            return rest
        task, _, calls = listed.partition(SEPARATOR)
        is_same_task = self._tasks.setdefault(watch.session, task) == task
        if not is_same_task or len(self._tasks) + len(self._known) > MOST_KNOWN:
            self._known.clear()
            self._tasks = {watch.session: task}
        self._known[watch.calls_key] = time.monotonic(), calls.split()
        return rest

    def forget(self) -> None:
        """Drop all lists, because it is unknown which notes Redis executed."""
        self._known.clear()

    def up_to(self, watch: WatchedEvent) -> str:
        """Return the listed calls and, last, the event's new call, or "" if the list is unknown."""
        known = self._calls_of(watch)
        if known is None or f" {watch.id}" in " ".join(["", *known]):
            return ""
        return " ".join([*known[-WINDOW:], f"{watch.id}{watch.pattern}{watch.kind}"])

    def has_results_of_all(self, watch: WatchedEvent) -> bool:
        """Tell whether the list has a result for each call of a batch; refused calls need none."""
        known = self._calls_of(watch)
        if known is None:
            return False
        lengths = {call[:16]: len(call) for call in known}
        return all(
            lengths.get(id, 0 if was_not_run else _UNTIL_RESULT + 1) > _UNTIL_RESULT
            for id, was_not_run in watch.batch_ids()
        )

    def _calls_of(self, watch: WatchedEvent) -> list[str] | None:
        if not self._is_current():
            self.forget()
        since, calls = self._known.get(watch.calls_key, (0.0, None))
        has_its_task = self._tasks.get(watch.session) == watch.task  # another task resets the calls
        is_known = has_its_task and time.monotonic() - since < KNOWN_SECS
        return calls if is_known else None

    def _is_current(self) -> bool:
        if posix.access(self._mark, posix.F_OK):
            return True
        try:
            flags = posix.O_WRONLY | posix.O_CREAT | posix.O_CLOEXEC | posix.O_NOFOLLOW
            posix.close(posix.open(self._mark, flags, 0o600))
        except OSError:  # a full disk: without the file, calls count as unknown
            return False
        return False
