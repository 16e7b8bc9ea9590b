"""Notices from rarer events: questions, denials, refusals, task changes, model switches.

Hooks import this module for these events only.
"""

from hivepipe.events import claude_code, other_events
from hivepipe.events.claude_code import Event

MOST_TEXT = 200
MOST_REFUSED = 5  # refused calls kept of a batch
Payload = dict[str, object]


def noticed(event: Event) -> list[Payload]:
    """Return the notices in an event, each with its kind and text; of a batch MOST_REFUSED."""
    if isinstance(event, other_events.PermissionRequest):
        return [_notice("permission_asked", _called(event))]
    if isinstance(event, other_events.PermissionDenied):
        return [_notice("permission_denied", f"{_called(event)}: {event.reason}")]
    if event.calls:
        refused = [call for call in event.calls if call.was_not_run]
        return [_notice("call_refused", f"{call.tool}: {call.error}") for call in refused][
            :MOST_REFUSED
        ]
    if isinstance(event, other_events.Notification):
        text = event.message or event.kind
        return [_notice("notification", text)] if text else []
    if isinstance(event, other_events.PostModelSwitch) and event.to_model:
        text = f"{event.from_model} to {event.to_model}, by {event.source or 'nobody'}"
        return [_notice("model_switched", text)]
    if isinstance(event, claude_code.PostToolUse):
        return _task(event)
    return []


def _notice(kind: str, text: str) -> Payload:
    return {"kind": kind, "text": text[:MOST_TEXT]}


def _called(event: claude_code.ToolEvent) -> str:
    """Return a call's tool with its description or file.

    Other arguments are left out, because they may be long or secret.
    """
    what = event.description or event.file_path
    return f"{event.tool} ({what})" if what else event.tool or "a tool"


def _task(event: claude_code.PostToolUse) -> list[Payload]:
    """Return [notice] if a call creates or completes a task of Claude Code's list, else [].

    These notices replace hooks on TaskCreated and TaskCompleted.
    """
    if event.tool == claude_code.TASK_TOOLS[0]:
        return [_notice("task_created", str(event.tool_input.get("subject") or ""))]
    if event.tool_input.get("status") == "completed":
        return [_notice("task_completed", f"number {event.tool_input.get('taskId')}")]
    return []
