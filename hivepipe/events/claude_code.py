"""Parse the events of Claude Code into typed values. Only this module knows its field names.

The protocol changes almost monthly. So unknown events and fields are accepted, and a field of the
wrong type counts as missing and is listed in `problems`. A text that is not one JSON object is read
key by key up to the error, so that the usable part is kept.

Hooks import this module, so it uses CPython's JSON scanner without importing `json`, which takes 7
ms. Source of the field names: https://code.claude.com/docs/en/hooks.
"""

import sys
from _blake2 import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hivepipe.events.other_events import BatchCall

_OF_UUIDS = "0123456789abcdef-"
ID_CHARS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
# Prefixes of tokens: an id that contains one is replaced by its hash.
_TOKEN_STARTS = (
    *("sk-", "sk_", "ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "xox"),
    *("AKIA", "ASIA", "AIza"),
)

CAP_ID = 128
CAP_NAME = 200
CAP_DESCRIPTION = 100
CAP_ARGUMENTS = 200
CAP_ERROR = 200
CAP_TEXT = 2000
CAP_PATH = 4096
CAP_COMMAND = 65536

EDIT_TOOLS = ("Write", "Edit", "MultiEdit", "NotebookEdit")
TASK_TOOLS = ("TaskCreate", "TaskUpdate")
AGENT_TOOLS = ("Agent", "Task")  # Task was the name before 2.1.63, and is still an alias
CLAUDE_MD = "CLAUDE.md"
PROBE = "hivepipe-probe-"  # prefix of a probe's session id
IDENTITY_FILES = ("SOUL.md", "IDENTITY.md", "TOOLS.md", "HEARTBEAT.md", CLAUDE_MD)
CHECKPOINT_TOOLS = EDIT_TOOLS + AGENT_TOOLS
USERS_SOURCES = ("", "user", "sdk")  # sources of prompts; before 2.1.330 prompts have no source
# Beginnings of prompts that Claude Code makes: a task has ended, or an agent of the team writes.
MACHINE_MADE = (
    "<task-notification>",
    "Another Claude session sent a message:\n<",
    "Another Claude session sent a message while you were working:\n<",
)
# Other messages have a sender and _SENT in the first line, and one of the sentences below it.
_SENDERS = ("Another Claude session", "A peer session", "The coordinator")
_SENT = (" sent a message:", " sent a message while you were working:")
_NOT_THE_USERS = (
    *("not typed by your user", "NOT from your user", "another Claude session, not your user"),
    *(
        "Address this before completing your current task",
        "a prompt a plugin submits between turns",
    ),
)
# Members of a Bash result that differ between equal calls: the files that the command changed, and
# the file with its long output.
EDIT_DIFF = "bashEditDiff"
VARYING = (EDIT_DIFF, "persistedOutputPath")
FAILED_OUTCOMES = ("failed", "failure", "error", "killed", "interrupted", "cancelled")


class _BadJsonError(ValueError):
    def __init__(self, message: str, _document: str, _position: int) -> None:
        super().__init__(message)


class _DecoderStandIn:
    """Replaces the module `json.decoder`, in which the C scanner looks up its error class.

    Without the replacement, an invalid text makes the scanner import `json` and `re` (3.12 and
    later: +7 ms) or raise SystemError (3.11).
    """

    JSONDecodeError = _BadJsonError


def scan_without_json() -> None:
    """Replace `json.decoder`. Call this only in the process of a hook, which never uses `json`."""
    sys.modules.setdefault("json", _DecoderStandIn)  # type: ignore[arg-type]
    sys.modules.setdefault("json.decoder", _DecoderStandIn)  # type: ignore[arg-type]


class _Scanning:
    """The attributes that the C scanner reads from its context."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = staticmethod(lambda _name: None)  # NaN, Infinity: not JSON


try:
    import _json

    _scan = _json.make_scanner(_Scanning)  # type: ignore[arg-type]
except (ImportError, AttributeError, TypeError):  # not CPython, or a later version
    import json

    _scan = json.JSONDecoder(strict=False).scan_once  # type: ignore[attr-defined]

# The scanner's exceptions for invalid JSON, in all versions.
_NOT_JSON = (ValueError, StopIteration, RecursionError, SystemError, OverflowError)


Fields = dict[str, object]


class Event:
    """The fields that all events have; missing texts are "".

    `host` is "" for Claude Code. `folder_variable` is the variable with the host's settings folder.
    """

    __slots__ = (
        *("_digest", "agent_id", "agent_type", "cwd", "data", "folder_variable", "host", "name"),
        *("problems", "prompt_id", "session_id", "transcript_path"),
    )
    is_activity = False  # True if the event begins or ends a call or a turn, or waits in one
    waits_for = ""  # the question that a person must answer, or ""
    calls: "tuple[BatchCall, ...] | list[BatchCall]" = ()  # the calls of a batch
    about: tuple[str, ...] = ()  # the event's fields that describe the session itself

    def __init__(self, name: str, fields: Fields, data: bytes, problems: list[str]) -> None:
        """Read the common fields; `data` is the original text of the event."""
        self.name = name
        self.host, self.folder_variable = "", "CLAUDE_CONFIG_DIR"
        self.data = data
        self._digest = b""
        self.problems = problems
        self.session_id = self._id(fields, "session_id")
        self.prompt_id = self._id(fields, "prompt_id")
        self.agent_id = self._id(fields, "agent_id")
        self.agent_type = self._text(fields, "agent_type", CAP_NAME)
        self.transcript_path = self._text(fields, "transcript_path", CAP_PATH)
        self.cwd = self._text(fields, "cwd", CAP_PATH)
        self._read(fields)

    def _read(self, fields: Fields) -> None:
        """Read the fields of this kind of event."""

    @property
    def digest(self) -> bytes:
        """Return a hash of the event's bytes, computed at the first use."""
        self._digest = self._digest or blake2b(self.data, digest_size=16).digest()
        return self._digest

    def about_session(self) -> dict[str, object]:
        """Return the fields that describe the session itself, for the payload."""
        said: dict[str, object] = {name: getattr(self, name) for name in self.about}
        return {"client": self.host, **said} if self.host else said

    def _text(self, fields: Fields, key: str, cap: int) -> str:
        value = fields.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            self.problems.append(f"{key} is not a text")
            return ""
        return clean(value[:cap])

    def _id(self, fields: Fields, key: str) -> str:
        value = self._text(fields, key, CAP_ID + 1)
        id = valid_id(value)
        if value and not id:
            self.problems.append(f"{key} is not a valid id")
        return id

    def _object(self, fields: Fields, key: str) -> Fields:
        value = fields.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.problems.append(f"{key} is not an object")
            return {}
        return value

    def _count(self, fields: Fields, key: str) -> int | None:
        value = fields.get(key)
        if value is None:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1 << 53:
            return int(value)
        self.problems.append(f"{key} is not a count")
        return None

    def _flag(self, fields: Fields, key: str) -> bool:
        value = fields.get(key)
        if value is not None and not isinstance(value, bool):
            self.problems.append(f"{key} is neither true nor false")
        return value is True


class SessionStart(Event):
    """A session starts or continues: startup, resume, clear, compact, fork."""

    __slots__ = about = ("model", "source", "title")

    def _read(self, fields: Fields) -> None:
        self.source = self._text(fields, "source", CAP_NAME)
        self.model = self._text(fields, "model", CAP_NAME)
        self.title = self._text(fields, "session_title", CAP_DESCRIPTION)


class UserPromptSubmit(Event):
    """A turn begins. `prompt` is the stored part of `whole_prompt`.

    `is_users` is False for a prompt made by Claude Code, for example when a background task ended.
    """

    about = ("title",)
    __slots__ = ("is_users", "prompt", "whole_prompt", *about)
    is_activity = True

    def _read(self, fields: Fields) -> None:
        self.title = self._text(fields, "session_title", CAP_DESCRIPTION)
        whole = fields.get("prompt")
        self.whole_prompt = whole if isinstance(whole, str) else ""
        if len(self.whole_prompt) > CAP_TEXT:
            from hivepipe.events.pastes import with_short_pastes  # noqa: PLC0415  rare

            fields = {"prompt": with_short_pastes(self.whole_prompt, CAP_TEXT)}
        self.prompt = self._text(fields, "prompt", CAP_TEXT)
        source = self._text(fields, "source", CAP_NAME)
        self.is_users = source in USERS_SOURCES and not is_machine_made(self.whole_prompt)


class UserPromptExpansion(Event):
    """A typed /skill, command or MCP prompt was expanded."""

    __slots__ = ("arguments", "command", "expansion", "source")

    def _read(self, fields: Fields) -> None:
        self.expansion = self._text(fields, "expansion_type", CAP_NAME)
        self.command = self._text(fields, "command_name", CAP_NAME)
        self.source = self._text(fields, "command_source", CAP_NAME)
        self.arguments = self._text(fields, "command_args", CAP_ARGUMENTS)


class _TextOf:
    """A property of a tool call: one text of its `tool_input` or `response`, read on access."""

    def __init__(self, part: str, key: str, cap: int = CAP_NAME) -> None:
        self._where = part, key, cap

    def __get__(self, event: "ToolEvent", _owner: object) -> str:
        part, key, cap = self._where
        return event._text(getattr(event, part), key, cap)


class ToolEvent(Event):
    """A tool call, before or after its execution.

    `outcome` is the tool's response or error, without parts that differ between equal calls.
    """

    __slots__ = ("duration_ms", "outcome", "response", "tool", "tool_input", "tool_use_id")
    is_activity = True

    def _read(self, fields: Fields) -> None:
        self.tool = self._tool(fields)
        self.tool_use_id = self._id(fields, "tool_use_id")
        self.tool_input = self._object(fields, "tool_input")
        self.outcome = outcome = fields.get("tool_response")
        self.response: Fields = outcome if isinstance(outcome, dict) else {}
        if not self.response.keys().isdisjoint(VARYING):
            self.outcome = {name: it for name, it in self.response.items() if name not in VARYING}
        self.duration_ms = self._count(fields, "duration_ms")

    def _tool(self, fields: Fields) -> str:
        name = self._text(fields, "tool_name", CAP_NAME + 1)
        if name and (len(name) > CAP_NAME or not name.isprintable() or " " in name):
            self.problems.append("tool_name is not valid")
            return "invalid"
        return name

    @property
    def file_path(self) -> str:
        """Return the path of the file that this call names, or ""."""
        key = "notebook_path" if self.tool == "NotebookEdit" else "file_path"
        return self._text(self.tool_input, key, CAP_PATH)

    # fields of the call
    command = _TextOf("tool_input", "command", CAP_COMMAND)
    description = _TextOf("tool_input", "description", CAP_DESCRIPTION)
    model = _TextOf("tool_input", "model")
    subagent_type = _TextOf("tool_input", "subagent_type")
    # model and type of the agent that the call spawned
    resolved_model = _TextOf("response", "resolvedModel")
    spawned_type = _TextOf("response", "agentType")

    @property
    def has_changed_files(self) -> bool:
        """Tell whether this call changed files, by the diff in the response to a Bash command."""
        diff = self._object(self.response, EDIT_DIFF)
        # Without `files`, an "unavailable" diff lists files that the command may have left alone.
        return bool(diff.get("files") or (diff.get("changedFiles") and not diff.get("unavailable")))

    @property
    def spawned_agent(self) -> str:
        """Return Claude Code's id of the spawned agent, or ""."""
        return self._id(self.response, "agentId")

    @property
    def launch(self) -> str:
        """Return how the agent was launched: completed (not async), async, remote, or ""."""
        status = self._text(self.response, "status", CAP_NAME)
        known = {"completed": "completed", "async_launched": "async", "remote_launched": "remote"}
        return known.get(status, "")

    @property
    def is_told_elsewhere(self) -> bool:
        """Tell whether the agent is one of a team and is recorded only from its own events.

        This is so if the agent runs as a session of its own (in a pane), or if Claude Code is
        2.1.197.
        """
        is_teams = self.response.get("status") == "teammate_spawned"
        return is_teams and "@" in str(self.response.get("agentId", "@"))

    @property
    def agent_tokens(self) -> int | None:
        """Return the tokens of the agent's last request, or None if they are unknown."""
        return self._count(self.response, "totalTokens")

    @property
    def agent_duration_ms(self) -> int | None:
        """Return how long the agent ran, in ms, or None if this is unknown."""
        return self._count(self.response, "totalDurationMs")

    @property
    def skill(self) -> str:
        """Return the skill's name, whose field depends on Claude Code's version, or ""."""
        return self._first_text(("skill", "skill_name", "name"), CAP_NAME)

    @property
    def skill_arguments(self) -> str:
        """Return the skill's arguments, which the predecessor's event calls `context`, or ""."""
        return self._first_text(("args", "context"), CAP_ARGUMENTS)

    def _first_text(self, keys: tuple[str, ...], cap: int) -> str:
        for key in keys:
            value = self._text(self.tool_input, key, cap)
            if value:
                return value
        return ""

    @property
    def reported_success(self) -> bool:
        """Return False if the tool's response reports a failure, else True."""
        return self.response.get("success") is not False


class PreToolUse(ToolEvent):
    """A tool call that has not been executed yet."""

    __slots__ = ()


class PostToolUse(ToolEvent):
    """A tool call succeeded."""

    __slots__ = ()


class PostToolUseFailure(ToolEvent):
    """A tool call failed, or the user interrupted it."""

    __slots__ = ("error", "is_interrupt")

    def _read(self, fields: Fields) -> None:
        super()._read(fields)
        self.outcome = fields.get("error")
        self.error = self._text(fields, "error", CAP_TEXT)
        self.is_interrupt = self._flag(fields, "is_interrupt")


class SubagentStart(Event):
    """A subagent was spawned or resumed. Internal subagents have no type."""

    __slots__ = ()


class SubagentStop(Event):
    """A subagent finished.

    The predecessor's event has task_id, parent_session_id and an outcome, and the agent's
    transcript in transcript_path.
    """

    __slots__ = ("agent_transcript_path", "error", "failed")

    def _read(self, fields: Fields) -> None:
        self.agent_transcript_path = self._text(fields, "agent_transcript_path", CAP_PATH)
        task = self._id(fields, "task_id")
        if task and not self.agent_id:
            self.agent_id = task
            self.session_id = self.session_id or self._id(fields, "parent_session_id")
            self.agent_transcript_path = self.agent_transcript_path or self.transcript_path
            self.transcript_path = ""
        outcome = self._text(fields, "outcome", CAP_NAME).lower()
        self.failed = outcome in FAILED_OUTCOMES
        self.error = self._text(fields, "error", CAP_TEXT) if self.failed else ""


class PreCompact(Event):
    """The conversation is about to be compacted."""

    __slots__ = ("trigger",)

    def _read(self, fields: Fields) -> None:
        self.trigger = self._text(fields, "trigger", CAP_NAME)


class Stop(Event):
    """A turn ended, normally (Stop) or by an API error (StopFailure)."""

    about = ("effort",)
    __slots__ = ("background_tasks", "error", "last_message", *about)
    is_activity = True

    def _read(self, fields: Fields) -> None:
        self.error = self._text(fields, "error", CAP_ERROR)
        self.last_message = ""  # Claude's text is kept for errors only
        self.effort = self._text(self._object(fields, "effort"), "level", CAP_NAME)
        tasks = fields.get("background_tasks")
        if not isinstance(tasks, list):
            if tasks is not None:
                self.problems.append("background_tasks is not a list")
            tasks = []
        tasks = [task for task in tasks if isinstance(task, dict)]
        # An agent of the team is reported as running even while it waits for a message.
        states = [task.get("status") for task in tasks if task.get("type") != "teammate"]
        self.background_tasks = states.count("running") + states.count("pending")


class StopFailure(Stop):
    """An API error has ended a turn or a subagent. The kind of the error is often "unknown"."""

    __slots__ = ()

    @property
    def is_activity(self) -> bool:  # type: ignore[override]
        """Tell whether the session's own turn ended, not the turn of a subagent."""
        return not self.agent_id

    def _read(self, fields: Fields) -> None:
        super()._read(fields)
        self.last_message = self._text(fields, "last_assistant_message", CAP_ERROR)


class SessionEnd(Event):
    """The session ends. After `clear` and `resume` the process continues."""

    about = ("transcript_path",)  # Claude Code moves the transcript when it leaves a worktree
    __slots__ = ("reason",)

    def _read(self, fields: Fields) -> None:
        self.reason = self._text(fields, "reason", CAP_NAME)


KINDS: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        *(SessionStart, UserPromptSubmit, UserPromptExpansion, PreToolUse, PostToolUse),
        *(PostToolUseFailure, SubagentStart, SubagentStop, PreCompact, Stop, StopFailure),
        SessionEnd,
    )
}


def parse_object(data: bytes, problems: list[str]) -> Fields | None:
    """Decode one JSON object as far as possible; return None if the text is not an object."""
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode()  # "utf-8-sig" would import a module
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
        problems.append("invalid UTF-8")
    start = len(text) - len(text.lstrip())
    if text[start : start + 1] != "{":
        return None
    try:
        fields: Fields = _scan(text, start)[0]
    except _NOT_JSON:
        problems.append("not valid JSON")
        return _usable_part(text, start + 1)
    return fields


def _usable_part(text: str, at: int) -> Fields:
    """Read the keys and values of an object one by one, up to the first invalid key or value."""
    found: Fields = {}
    try:
        while True:
            at = _skip_space(text, at)
            key, at = _scan(text, at)
            at = _skip_space(text, at)
            if not isinstance(key, str) or text[at : at + 1] != ":":
                return found
            value, at = _scan(text, _skip_space(text, at + 1))
            if at == len(text) and not isinstance(value, str | dict | list):
                return found  # left out, because a number may be truncated
            found[key] = value
            at = _skip_space(text, at)
            if text[at : at + 1] != ",":
                return found
            at += 1
    except _NOT_JSON:
        return found


def is_machine_made(prompt: str) -> bool:
    """Tell whether Claude Code itself made this prompt."""
    prompt = prompt.lstrip()
    if prompt.startswith(MACHINE_MADE):
        return True
    first, _, message = prompt.partition("\n")
    sender = next((first.removesuffix(sent) for sent in _SENT if first.endswith(sent)), "")
    is_plugin = sender.startswith("The ") and sender.endswith(" plugin")
    return (is_plugin or sender in _SENDERS) and any(
        sentence in message for sentence in _NOT_THE_USERS
    )


def valid_id(text: str) -> str:
    """Return an id, its hash if it looks like a token, or "" if it is invalid."""
    if not text.strip(_OF_UUIDS) and len(text) <= CAP_ID:
        return text  # most ids; no token has only these characters
    if len(text) > CAP_ID or not ID_CHARS.issuperset(text) or not text.strip("."):
        return ""
    for start in _TOKEN_STARTS:
        at = text.find(start)
        # "sk-" in "task-agent" is not a token
        if at == 0 or (at > 0 and not text[at - 1].isalnum()):
            return "id-" + blake2b(text.encode(), digest_size=16).hexdigest()
    return text


def _skip_space(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t", "\n", "\r"):
        at += 1
    return at


def clean(text: str) -> str:
    """Make a text storable: NUL and lone surrogates from JavaScript become U+FFFD."""
    if text.isascii():
        return text.replace("\0", "\ufffd") if "\0" in text else text
    return (
        text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "\ufffd")
    )


def storable(value: object, levels: int = 50) -> object:
    """Return a JSON value with storable texts; raise RecursionError beyond `levels` levels."""
    if isinstance(value, str):
        return clean(value)
    if not levels:
        raise RecursionError
    if isinstance(value, dict):
        return {clean(key): storable(inner, levels - 1) for key, inner in value.items()}
    return [storable(inner, levels - 1) for inner in value] if isinstance(value, list) else value
