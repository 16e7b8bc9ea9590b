"""Record each tool call in Redis, and return the last calls, by which the guard judges it.

A Lua script, run in the same step as the enqueue, stores the last calls of each conversation and
the totals of each session. Parallel calls are counted exactly, because Redis runs one script at a
time. A call is judged by the list as it is when the call arrives.

    hivepipe:calls:<session>[:<subagent>]   list   the last calls, oldest first; expires in a week
        <id><pattern><kind>[<result>]       16 + 16 + 1 (+ 16, or "-" if it was denied) characters
        |                                   a prompt or another task: earlier calls do not count
    hivepipe:activity:<session>             hash   totals, last activity: hivepipe.queue.activity
    hivepipe:active                         set    sessions with activity that is not yet stored

A duplicate event has a known id, and changes nothing. Ids, arguments and results are kept as
hashes. Hooks import this module.
"""

import posix
from _blake2 import blake2b

from hivepipe import settings
from hivepipe.events import claude_code
from hivepipe.events.claude_code import (
    AGENT_TOOLS,
    Event,
    Fields,
    PostToolUse,
    PreToolUse,
    ToolEvent,
    UserPromptSubmit,
    parse_object,
    valid_id,
)
from hivepipe.events.job_plan import Context, sorted_dumps
from hivepipe.home import lua_text, read_small

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hivepipe.events.other_events import BatchCall

Note = tuple[str, list[str]]  # a script and its arguments

WINDOW = 40  # calls that are judged
KEPT_CALLS = 2 * WINDOW  # the result of a call may come after many parallel calls
KEPT_SECS = 7 * 86_400  # a clock that jumps by a day or two must not expire the calls
AHEAD_SECS = 60
QUIET_CALLS = 500
_HASH_BYTES = 8
PROMPT = "|"

# Tools whose calls contain a description that varies between equal calls.
_DESCRIBED = ("Bash", *AGENT_TOOLS)

# The kind of a call: an edit tool, a command that changed files, ...; the result of a denied call.
EDIT, CHANGE, WAITING, POLL, OTHER = "e", "f", "w", "p", "c"
DENIED = "-"
LISTED = "calls-listed"
INTERNAL = "internal-"  # before the id of an agent without a type, in the key of its calls
WAITING_SUBJECT = "waiting"  # subject of all warnings about waiting; one is shown per session

# Arguments of the scripts, in their order; the header of each script says what they hold.
NOTE_FIELDS = (
    *("calls", "activity", "session", "verb", "id", "pattern", "kind", "result", "failed"),
    *("at", "turn", "task", "profile", "waits", "batch"),
)
VERDICT_FIELDS = ("calls", "activity", "session", "id", "denied", "subject")
_CONSTANTS = f"""local AHEAD_SECS, KEPT_SECS = {AHEAD_SECS}, {KEPT_SECS}
local WINDOW, KEPT_CALLS = {WINDOW}, {KEPT_CALLS}
local PROMPT, EDIT, OTHER, INTERNAL = '{PROMPT}', '{EDIT}', '{OTHER}', '{INTERNAL}'
local QUIET_CALLS, WAITING_SUBJECT = {QUIET_CALLS}, '{WAITING_SUBJECT}'
"""
SCRIPT = _CONSTANTS + lua_text("guard/lua/note.lua")
VERDICT_SCRIPT = _CONSTANTS + lua_text("guard/lua/verdict.lua")


class WatchedEvent:
    """One event of a session, as the guard records it."""

    __slots__ = (
        *("event", "home", "id", "kind", "mode", "pattern", "profile", "session", "task"),
        *("time_ms", "verdict_note"),
    )

    def __init__(self, event: Event, context: Context, home: str, kind: str = OTHER) -> None:
        """`context.own_session` must be set. `kind` is the kind of a call that is about to run."""
        self.event = event
        self.home = home
        self.session = context.own_session
        self.time_ms = context.event_time_ns // 1_000_000
        self.task = task_of(home, self.session)
        self.profile = context.profile
        self.kind = kind
        self.mode = ""  # the guard's mode, once hivepipe.guard.check has read it
        self.verdict_note: Note | None = None  # the note for a denied call
        self.id = self.pattern = ""
        if event.calls:
            self.id = event.digest.hex()[: 2 * _HASH_BYTES]
        elif isinstance(event, ToolEvent):
            self.pattern = _pattern(event.tool, event.tool_input, event)
            self.id = _hash(event.tool_use_id) if event.tool_use_id else ""
            if isinstance(event, PreToolUse):
                self.id = self.id or _hash(f"{event.digest.hex()} {context.event_time_ns}")
            elif isinstance(event, PostToolUse):
                self.kind = _kind_of_result(event)

    def may_be_answered(self, note_result: str = "") -> bool:
        """Tell whether this event can get an answer; `hivepipe.guard.check` decides.

        `note_result` is the result of the script of `note`.
        """
        if self.event.calls:
            return bool(note_result)  # true if Claude Code refused a call of the batch
        if isinstance(self.event, ToolEvent):
            has_disk = self.profile and settings.variable("HIVEPIPE_SHARED_ROOT")
            return isinstance(self.event, PreToolUse) or bool(has_disk)
        return bool(self.task) and self.event.name == "UserPromptSubmit"

    @property
    def calls_key(self) -> str:
        agent = self.event.agent_id
        if agent and not self.event.agent_type:
            agent = f"{INTERNAL}{agent}"
        return f"hivepipe:calls:{self.session}:{agent}".rstrip(":")

    @property
    def keys(self) -> list[str]:
        return [self.calls_key, f"hivepipe:activity:{self.session}", self.session]

    def batch_ids(self) -> "list[tuple[str, bool]]":
        """Return (id, was not run) for each call of a batch that has an id.

        The ids are hashed, as in the list of calls in Redis.
        """
        return [(_hash(call.id), call.was_not_run) for call in self.event.calls if call.id]

    def note(self) -> Note:
        """Return the Lua script that records this event, and its arguments."""
        event = self.event
        result = failed = waits = batch = ""
        if event.waits_for:
            verb, waits = "wait", event.waits_for
        elif event.name == "PostToolBatch":
            verb = "batch"
            batch = " ".join([_outcome(call, event) for call in event.calls if call.id])
        elif isinstance(event, ToolEvent):
            if isinstance(event, PreToolUse):
                verb = "call"
            else:
                verb = "result"
                result = _hash_of(event.outcome, event)
                failed = "0" if isinstance(event, PostToolUse) else "1"
        elif isinstance(event, UserPromptSubmit):
            verb = "prompt" if event.is_users else "notice"
        else:
            verb = "stop"
        # Activity of a subagent says nothing about the turn that started it.
        is_silent = event.agent_id or event.name == "Notification"
        turn = "0" if verb == "stop" else "" if is_silent else "1"
        call = [self.id, self.pattern, self.kind, result, failed, str(self.time_ms), turn]
        return SCRIPT, [*self.keys, verb, *call, self.task, self.profile, waits, batch]


def record_elsewhere(runtime: str) -> None:
    """Tell the process `intake` that its lists are outdated, because this process sent a note."""
    try:
        posix.unlink(f"{runtime}/{LISTED}")
    except OSError:  # usually the file does not exist
        return


def _kind_of_result(event: PostToolUse) -> str:
    if event.tool in claude_code.EDIT_TOOLS:
        return EDIT
    return CHANGE if event.has_changed_files else OTHER


def _pattern(tool: str, arguments: Fields, event: Event) -> str:
    """Return a hash of the tool and the arguments of a call, without its description."""
    if tool in _DESCRIBED:
        arguments = {name: value for name, value in arguments.items() if name != "description"}
    return _hash_of([tool, arguments], event)


def _outcome(call: "BatchCall", event: Event) -> str:
    """Return the result of a call of a batch, in the form that the guard's script reads."""
    pattern = _pattern(call.tool, call.tool_input, event) if call.was_not_run else "0"
    result = _hash_of(call.answer, event)
    return f"{_hash(call.id)} {pattern} {result} {int(call.was_not_run)}"


def _hash_of(value: object, event: Event) -> str:
    """Return a hash of a value, equal for any order of keys; if it is no JSON, of the event."""
    try:
        return _hash(sorted_dumps(value))
    except (ValueError, RecursionError):  # 1e999, a thousand brackets: such a call equals no other
        return event.digest.hex()[: 2 * _HASH_BYTES]


def _hash(text: str) -> str:
    return blake2b(text.encode(), digest_size=_HASH_BYTES).hexdigest()


# ---- tasks


def task_of(home: str, session: str) -> str:
    """Return the id in HIVEPIPE_TASK_ID, else in the task file, else the assigned task, or ""."""
    named = valid_id(settings.variable("HIVEPIPE_TASK_ID") or "")
    if named:
        return named
    path = settings.variable("HIVEPIPE_TASK_FILE") or ""
    if path:
        named = _task_in(read_small(path))
        if named:
            return named
    return valid_id(read_small(assignment_path(home, session)).strip()) if session else ""


def _task_in(text: str) -> str:
    """Return the id in a task file, JSON or a text with the id in its first line, or ""."""
    found = parse_object(text.encode("utf-8", "replace"), [])
    if found is None:
        return valid_id(text.strip().partition("\n")[0].strip())
    for key in ("taskId", "task_id", "id"):
        value = found.get(key)
        if isinstance(value, str) and valid_id(value):
            return valid_id(value)
    return ""


def assignment_path(home: str, session: str) -> str:
    return f"{home}/tasks/sessions/{session}"


def cancellation_path(home: str, task: str) -> str:
    return f"{home}/tasks/cancelled/{task}"
