"""The answer of a hook for a verdict of the guard.

Hooks import this module when there is an answer.
"""

from hivepipe.events.claude_code import PreToolUse, ToolEvent
from hivepipe.guard import messages
from hivepipe.guard.check import denies, is_first_notice, limits, verdict_note
from hivepipe.guard.client import WatchedEvent, record_elsewhere
from hivepipe.guard.rules import Verdict
from hivepipe.home import Place
from hivepipe.hook.answers import context, denial, stop
from hivepipe.hook.hand_over import push_note
from hivepipe.text.visible import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hivepipe.guard.listed_calls import ListedCalls

_LEAVE_IT = "Do not go on with it."


def prompt_notice(watch: WatchedEvent, verdict: Verdict) -> str:
    """Return the text that tells Claude that the task is cancelled.

    Return "" if the session was already told of this cancellation.
    """
    if not is_first_notice(watch.home, watch.session, verdict.subject):
        return ""
    return messages.cancelled(verdict, watch.task) + _LEAVE_IT


def reply(watch: WatchedEvent, verdict: Verdict, place: Place) -> bytes:
    """Return the answer to calls with this verdict, or b"" if the warning was shown before.

    A denial is returned each time. `store_denial` records the denial in Redis.
    """
    event = watch.event
    if isinstance(event, ToolEvent) and not isinstance(event, PreToolUse):
        return context(event.name, printable(verdict.subject))
    if denies(watch, verdict):
        reason = messages.reason(verdict, _tool(watch), watch.task)
        watch.verdict_note = verdict_note(watch, verdict, True)
        return denial(reason) if isinstance(event, PreToolUse) else stop(reason)
    if push_note(place, verdict_note(watch, verdict, False)) == "0":
        return b""
    return context(event.name, messages.warning(verdict, _tool(watch), limits()))


def store_denial(watch: WatchedEvent, place: Place, listed: "ListedCalls | None") -> None:
    """Record the verdict of `reply` in Redis if it denies the call."""
    note = watch.verdict_note
    if note and listed:
        listed.remember(watch, push_note(place, listed.asked_for(note)))
    elif note:
        push_note(place, note)
        record_elsewhere(place.runtime)


def _tool(watch: WatchedEvent) -> str:
    """Return the tool's name, or ""; for a batch, the tool of the last call that was not run."""
    event = watch.event
    if event.calls:
        return next((call.tool for call in event.calls[::-1] if call.was_not_run), "a tool")
    return event.tool if isinstance(event, ToolEvent) else ""
