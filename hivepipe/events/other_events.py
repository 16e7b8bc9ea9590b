"""Rarer events: batches of calls, questions to a person, model switches.

Hooks import this module for these events only. `claude_code` says where the field names come from.
"""

from hivepipe.events.claude_code import CAP_ERROR, CAP_NAME, Event, Fields, ToolEvent, clean

MOST_CALLS = 100  # calls kept of a batch
NOT_RUN = "<tool_use_error>"  # start of the result of a call that Claude Code did not run
# Notifications that a turn waits for a person. The wait after a turn is reported by Stop.
ASKS_A_PERSON = (
    "permission_prompt",
    "elicitation_dialog",
    "elicitation_url_dialog",
    "agent_needs_input",
)


class PermissionRequest(ToolEvent):
    """A person is about to be asked to permit a call. The event does not have the call's id."""

    __slots__ = ()

    @property
    def waits_for(self) -> str:  # type: ignore[override]
        """Return the question that the person is asked."""
        return f"permission: {self.tool}"


class PermissionDenied(ToolEvent):
    """Claude Code itself denied a call, in auto mode."""

    __slots__ = ("reason",)

    def _read(self, fields: Fields) -> None:
        super()._read(fields)
        self.outcome = fields.get("reason")
        self.reason = self._text(fields, "reason", CAP_ERROR)


class BatchCall:
    """One call of a batch; `answer` is its result as Claude receives it."""

    __slots__ = ("answer", "id", "tool", "tool_input")

    def __init__(self, tool: str, tool_input: Fields, id: str, answer: object) -> None:
        """`id` is "" if it is missing."""
        self.tool = tool
        self.tool_input = tool_input
        self.id = id
        self.answer = answer

    @property
    def was_not_run(self) -> bool:
        """Tell whether Claude Code refused the call before the tool ran."""
        return isinstance(self.answer, str) and self.answer.startswith(NOT_RUN)

    @property
    def error(self) -> str:
        """Return why the call was not run, or ""."""
        text = self.answer if isinstance(self.answer, str) else ""
        return clean(text.removeprefix(NOT_RUN).partition("</tool_use_error>")[0][:CAP_ERROR])


class PostToolBatch(Event):
    """All calls of one answer have ended, including those that were not run."""

    __slots__ = ("calls",)
    is_activity = True

    def _read(self, fields: Fields) -> None:
        found = fields.get("tool_calls")
        if not isinstance(found, list):
            if found is not None:
                self.problems.append("tool_calls is not a list")
            found = []
        self.calls = [self._call(call) for call in found[:MOST_CALLS] if isinstance(call, dict)]

    def _call(self, call: Fields) -> BatchCall:
        tool = self._text(call, "tool_name", CAP_NAME)
        tool_input = self._object(call, "tool_input")
        return BatchCall(tool, tool_input, self._id(call, "tool_use_id"), call.get("tool_response"))


class Notification(Event):
    """Claude Code notifies a person that it waits or that something happened."""

    __slots__ = ("kind", "message")

    def _read(self, fields: Fields) -> None:
        self.kind = self._text(fields, "notification_type", CAP_NAME)
        self.message = self._text(fields, "message", CAP_ERROR)

    @property
    def is_activity(self) -> bool:  # type: ignore[override]
        """Tell whether Claude Code waits for a person during a turn."""
        return self.kind in ASKS_A_PERSON

    @property
    def waits_for(self) -> str:  # type: ignore[override]
        """Return the question that the person is asked, or ""."""
        return (self.message or self.kind) if self.is_activity else ""


class PostModelSwitch(Event):
    """The session continues with another model; `source` says who changed it."""

    __slots__ = ("from_model", "source", "to_model")

    def _read(self, fields: Fields) -> None:
        self.from_model = self._text(fields, "from_model", CAP_NAME)
        self.to_model = self._text(fields, "to_model", CAP_NAME)
        self.source = self._text(fields, "source", CAP_NAME)


OTHER_KINDS: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (PostToolBatch, PermissionRequest, PermissionDenied, Notification, PostModelSwitch)
}
