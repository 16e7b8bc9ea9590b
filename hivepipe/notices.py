"""Notices from rarer events: questions, denials, refusals, task changes, model switches.

On the hook path, loaded for these events only.
"""

from hivepipe import events, events_beside
from hivepipe.events import Event

MOST_TEXT = 200
MOST_REFUSED = 5  # per batch
Payload = dict[str, object]


def noticed(event: Event) -> list[Payload]:
    """Return kind and text of each notice in an event; the text gives the reason."""
    if isinstance(event, events_beside.PermissionRequest):
        return [_notice("permission_asked", _called(event))]
    if isinstance(event, events_beside.PermissionDenied):
        return [_notice("permission_denied", f"{_called(event)}: {event.reason}")]
    if event.calls:
        refused = [call for call in event.calls if call.was_not_run]
        return [_notice("call_refused", f"{call.tool}: {call.error}") for call in refused][
            :MOST_REFUSED
        ]
    if isinstance(event, events_beside.Notification):
        said = event.message or event.kind
        return [_notice("notification", said)] if said else []
    if isinstance(event, events_beside.PostModelSwitch) and event.to_model:
        said = f"{event.from_model} to {event.to_model}, by {event.source or 'nobody'}"
        return [_notice("model_switched", said)]
    if isinstance(event, events.PostToolUse):
        return _task(event)
    return []


def _notice(kind: str, text: str) -> Payload:
    return {"kind": kind, "text": text[:MOST_TEXT]}


def _called(event: events.ToolEvent) -> str:
    """Describe a call by the caller's description; arguments may be long, and secret."""
    what = event.description or event.file_path
    return f"{event.tool} ({what})" if what else event.tool or "a tool"


def _task(event: events.PostToolUse) -> list[Payload]:
    """Return the notices of task tools, which replace the events TaskCreated and TaskCompleted."""
    if event.tool == events.TASK_TOOLS[0]:
        return [_notice("task_created", str(event.tool_input.get("subject") or ""))]
    if event.tool_input.get("status") == "completed":
        return [_notice("task_completed", f"number {event.tool_input.get('taskId')}")]
    return []
