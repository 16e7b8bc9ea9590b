"""What a hook answers when it has something to say: one JSON object in Claude Code's contract.

Never "allow": it would answer for the user, who was asked.
On the hook path, when there is something to say.
"""

from hivepipe.events import PreToolUse, ToolEvent
from hivepipe.guard import words
from hivepipe.guard.check import denies, is_news, limits, verdict_note
from hivepipe.guard.client import Note, Watch
from hivepipe.guard.rules import Verdict
from hivepipe.home import Place
from hivepipe.intake.hand_over import push
from hivepipe.jobs import dumps
from hivepipe.queues.client import RefusedError

MOST_CHARS = 10_000  # Claude Code cuts what is longer
_LEAVE_IT = " Do not go on with it."


def reply(watch: Watch, verdict: Verdict, place: Place) -> bytes:
    """Return the answer to an event with a verdict; empty if it was said before."""
    event = watch.event
    if not isinstance(event, ToolEvent):  # a prompt passes, whatever was cancelled
        if not is_news(watch.home, watch.session, verdict.subject):
            return b""
        return context(event.name, words.cancelled(verdict, watch.task) + _LEAVE_IT)
    if not isinstance(event, PreToolUse):
        return context(event.name, verdict.subject)
    denied = denies(watch, verdict)
    was_spoken = _mark(place, verdict_note(watch, verdict, denied))
    if denied:
        return denial(words.reason(verdict, event.tool, watch.task))
    if was_spoken:
        return b""
    return context(event.name, words.warning(verdict, event.tool, limits()))


def _mark(place: Place, note: Note) -> bool:
    """Let Redis keep the verdict; was the same said before?"""
    try:
        return push(place, [], note) == "0"
    except RefusedError:
        return False


def denial(reason: str) -> bytes:
    """Return the answer that stops a tool call, PreToolUse alone."""
    said = {"permissionDecision": "deny", "permissionDecisionReason": reason[:MOST_CHARS]}
    return _answer("PreToolUse", said)


def context(event_name: str, text: str) -> bytes:
    """Return the answer that tells Claude something."""
    return _answer(event_name, {"additionalContext": text[:MOST_CHARS]})


def _answer(event_name: str, said: dict[str, str]) -> bytes:
    output = {"hookSpecificOutput": {"hookEventName": event_name, **said}}
    return f"{dumps(output)}\n".encode()
