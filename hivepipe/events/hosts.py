"""The programs (hosts) that run hivepipe's hooks, with a table of each host's field names.

hivepipe uses Claude Code's names. An event of another host is translated when it is read, and its
session stores the host's name. A host is recognised by its events only. The environment does not
identify the host, because a host can run inside another host and inherit its environment.

Hooks import this module for events of other hosts. Sources: events recorded from Codex CLI 0.169
and Copilot CLI 1.0.102 (docs/hosts.md names the versions tested); for Cursor its documentation,
https://cursor.com/docs/hooks, and public tests of other programs' hooks.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

Fields = dict[str, object]
_NOTHING: dict[str, str] = {}


class Host:
    """A program that runs hooks."""

    def __init__(
        self,
        name: str,
        is_host_of: "Callable[[Fields], bool]",
        *,
        fields: dict[str, str] = _NOTHING,
        events: dict[str, str] = _NOTHING,
        tools: dict[str, str] = _NOTHING,
        arguments: dict[str, str] = _NOTHING,
        has_transcripts: bool = False,
        folder_variable: str = "CLAUDE_CONFIG_DIR",
    ) -> None:
        """Set the facts about a host. The tables map the host's names to Claude Code's names.

        `arguments` has the names of tool arguments. `has_transcripts` is True if hivepipe can read
        the host's transcripts. `folder_variable` is the environment variable with the host's
        folder.
        """
        self.name = name
        self.is_host_of = is_host_of
        self.fields = fields
        self.events = events
        self.tools = tools
        self.arguments = arguments
        self.has_transcripts = has_transcripts
        self.folder_variable = folder_variable

    def translated(self, payload: Fields) -> Fields:
        """Return an event with Claude Code's names; unknown names stay.

        A path of a transcript that hivepipe cannot read is left out.
        """
        fields = {self.fields.get(key, key): value for key, value in payload.items()}
        for key, table in (("hook_event_name", self.events), ("tool_name", self.tools)):
            word = fields.get(key)
            if isinstance(word, str):
                fields[key] = table.get(word, word)
        arguments = fields.get("tool_input")
        if isinstance(arguments, dict):
            names = self.arguments
            fields["tool_input"] = {names.get(key, key): it for key, it in arguments.items()}
        if not self.has_transcripts:
            fields.pop("transcript_path", None)
        return fields


def _is_codex(fields: Fields) -> bool:
    """Tell whether Codex sent the event: it has a transcript named rollout-*, or a turn id."""
    path = fields.get("transcript_path")
    named = isinstance(path, str) and path.rpartition("/")[2].startswith("rollout-")
    return named or ("turn_id" in fields and "prompt_id" not in fields)


def _is_copilot(fields: Fields) -> bool:
    """Tell whether Copilot sent the event: it has camel case names, or a time and a transcript."""
    if "sessionId" in fields and "session_id" not in fields:
        return True
    path = fields.get("transcript_path", "/session-state/")
    return "timestamp" in fields and isinstance(path, str) and "/session-state/" in path


def _is_cursor(fields: Fields) -> bool:
    return "cursor_version" in fields


HOSTS = (
    Host(
        "codex",
        _is_codex,
        fields={"turn_id": "prompt_id"},
        tools={"apply_patch": "Edit"},
        has_transcripts=True,
        folder_variable="CODEX_HOME",
    ),
    Host(
        "copilot",
        _is_copilot,
        fields={
            "hookName": "hook_event_name",
            "sessionId": "session_id",
            "toolName": "tool_name",
            "toolInput": "tool_input",
            "tool_result": "tool_response",
        },
        events={"permissionRequest": "PermissionRequest"},
        tools={"bash": "Bash", "edit": "Edit"},  # the tools that have other names
        arguments={"path": "file_path"},
    ),
    Host(
        "cursor",
        _is_cursor,
        fields={
            "conversation_id": "session_id",
            "duration": "duration_ms",
            "error_message": "error",
            "generation_id": "prompt_id",
            "tool_output": "tool_response",
        },
        events={
            "beforeSubmitPrompt": "UserPromptSubmit",
            "postToolUse": "PostToolUse",
            "postToolUseFailure": "PostToolUseFailure",
            "preCompact": "PreCompact",
            "preToolUse": "PreToolUse",
            "sessionEnd": "SessionEnd",
            "sessionStart": "SessionStart",
            "stop": "Stop",
            "subagentStop": "SubagentStop",
        },
        tools={"Shell": "Bash"},
    ),
)


def host_of(fields: Fields) -> Host | None:
    """Return the host of an event, or None for Claude Code."""
    for host in HOSTS:
        if host.is_host_of(fields):
            return host
    return None
