"""Events: the input of each host, and the jobs of each event."""

from hivepipe.events.claude_code import KINDS, Event, Fields, parse_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hivepipe.events.hosts import Host

_OTHER_HOST_FIELDS = {"cursor_version", "sessionId", "timestamp", "turn_id"}


def parse_event(name: str, data: bytes) -> Event | None:
    """Parse one event. `name`, the name of the hook, is used if the text names no event.

    Return None for an unknown event, or a text that is no JSON object. Other errors are listed in
    the event's `problems`.
    """
    problems: list[str] = []
    fields = parse_object(data, problems)
    if fields is None:
        return None
    host = _other_host(fields)
    if host:
        fields = host.translated(fields)
    given = fields.get("hook_event_name")
    if isinstance(given, str) and given:
        name = given
    elif given is not None:
        problems.append("hook_event_name is not a text")
    kind = KINDS.get(name)
    if kind is None:
        from hivepipe.events.other_events import OTHER_KINDS  # noqa: PLC0415  rare

        kind = OTHER_KINDS.get(name)
    if kind is None:
        return None
    event = kind(name, fields, data, problems)
    if host:
        event.host, event.folder_variable = host.name, host.folder_variable
    return event


def _other_host(fields: Fields) -> "Host | None":
    """Return the host of the event, or None for Claude Code."""
    if _OTHER_HOST_FIELDS.isdisjoint(fields) and "/rollout-" not in str(
        fields.get("transcript_path")
    ):
        return None
    from hivepipe.events.hosts import host_of  # noqa: PLC0415  rare

    return host_of(fields)
