"""Record each tool call in Redis, and return the list of calls to judge it by.

One script, run in the same step as the enqueue, keeps the last calls of each conversation and the
totals of each session. Parallel calls are counted exactly: Redis runs one script at a time, and
each call is judged by the list at its arrival.

    hivepipe:calls:<session>[:<subagent>]   list   the last calls, oldest first; expires in a week
        <id><pattern><kind>[<result>]       16 + 16 + 1 (+ 16, or "-" if it was denied) characters
        |                                   a prompt or another task: earlier calls do not count
    hivepipe:activity:<session>             hash   totals, last activity: hivepipe.queue.activity
    hivepipe:active                         set    sessions with activity that is not yet stored

A duplicate event changes nothing: its id is known. Ids, arguments and results are kept as hashes.
On the hook path; the rules are imported before a call only.
"""
# ruff: noqa: PLC0415

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
from hivepipe.home import read_small

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

# Tools whose calls carry a description that varies between equal calls.
_DESCRIBED = ("Bash", *AGENT_TOOLS)

# The kind of a call, and the result of a denied one.
EDIT, WAITING, POLL, OTHER = "e", "w", "p", "c"
DENIED = "-"
WAITING_SUBJECT = "waiting"  # subject of all warnings about waiting: one per session

# Of a note: verb is call, result, batch, wait, prompt (of the user), notice (of Claude Code) or
# stop; id "" means the latest call of that pattern; failed "1", "0" or ""; at in ms; turn "1" open,
# "0" closed, "" unknown; waits: what a person is asked for, until the next activity; batch: of each
# call id, pattern, result and "1" if it was not run, separated by blanks.
NOTE_FIELDS = (
    *("calls", "activity", "session", "verb", "id", "pattern", "kind", "result", "failed"),
    *("at", "turn", "task", "profile", "waits", "batch"),
)
SCRIPT = f"""
local {", ".join(NOTE_FIELDS)} = unpack(ARGV, 2, {len(NOTE_FIELDS) + 1})
local last_ms, last_task = unpack(redis.call('HMGET', activity, 'last_ms', 'task'))
if not last_ms then redis.call('HSET', activity, 'since_ms', at) end
-- A note that was kept on disk comes late; a time in the future is of a clock that was set back.
local last, ahead = tonumber(last_ms or 0), (tonumber(redis.call('TIME')[1]) + {AHEAD_SECS}) * 1000
local is_newest = last <= tonumber(at) or last > ahead
if is_newest then
  redis.call('HSET', activity, 'last_ms', at, 'task', task, 'profile', profile)
  redis.call('HSET', activity, 'waits', waits)
  if turn ~= '' then redis.call('HSET', activity, 'turn', turn) end
  if verb ~= 'stop' then redis.call('HSET', activity, 'work_ms', at) end
end
redis.call('SADD', 'hivepipe:active', session)
if verb == 'prompt' or (is_newest and last_task and last_task ~= task) then
  redis.call('RPUSH', calls, '{PROMPT}')
end
said = ''
if verb == 'call' or verb == 'result' then
  local known = redis.call('LRANGE', calls, 0, -1)
  local place
  for i = #known, 1, -1 do
    local open = id == '' and #known[i] == 33 and string.sub(known[i], 17, 32) == pattern
    if open or string.sub(known[i], 1, 16) == id then place = i break end
  end
  local before = place and known[place] or ''
  if not place then
    place = #known + 1
    known[place] = (id == '' and string.rep('0', 16) or id) .. pattern .. kind .. result
    redis.call('RPUSH', calls, known[place])
    redis.call('HINCRBY', activity, 'calls', 1)
  elseif verb == 'result' and #before == 33 then
    -- A failed edit changed no file.
    local was = string.sub(before, 33)
    if failed == '1' and was == '{EDIT}' then was = '{OTHER}' end
    redis.call('LSET', calls, place - 1, string.sub(before, 1, 32) .. was .. result)
  end
  if failed == '1' and #before <= 33 then redis.call('HINCRBY', activity, 'failed', 1) end
  if verb == 'call' then
    said = table.concat(known, ' ', math.max(1, place - {WINDOW}), place)
  end
end
if verb == 'batch' then
  -- What no other event told of was refused: before its own PreToolUse, or after it.
  local known, last = redis.call('LRANGE', calls, 0, -1), nil
  for one, of, came, unheard in string.gmatch(batch, '(%x+) (%x+) (%x+) (%d)') do
    local place
    for i = #known, 1, -1 do
      if string.sub(known[i], 1, 16) == one then place = i break end
    end
    local entry
    if not place and unheard == '1' then
      place = #known + 1
      entry = one .. of .. '{OTHER}' .. came
      redis.call('RPUSH', calls, entry)
      redis.call('HINCRBY', activity, 'calls', 1)
    elseif place and #known[place] == 33 then
      local was = string.sub(known[place], 33)
      if was == '{EDIT}' then was = '{OTHER}' end
      entry = string.sub(known[place], 1, 32) .. was .. came
      redis.call('LSET', calls, place - 1, entry)
    end
    if entry then
      known[place], last = entry, place
      redis.call('HINCRBY', activity, 'failed', 1)
    end
  end
  if last then said = table.concat(known, ' ', math.max(1, last - {WINDOW}), last) end
end
redis.call('LTRIM', calls, -{KEPT_CALLS}, -1)
redis.call('EXPIRE', calls, {KEPT_SECS})
"""

# Run before a verdict is shown. The result is 1, or 0 if it was shown before. An empty subject is
# shown each time, waiting once per session, any other subject once per QUIET_CALLS calls.
VERDICT_FIELDS = ("calls", "activity", "session", "id", "denied", "subject")
VERDICT_SCRIPT = f"""
local {", ".join(VERDICT_FIELDS)} = unpack(ARGV, 2, {len(VERDICT_FIELDS) + 1})
said = '0'
if redis.call('HGET', activity, 'judged') == id then return redis.status_reply(said) end
if subject ~= '' then
  local now = tonumber(redis.call('HGET', activity, 'calls') or 0)
  local told = tonumber(redis.call('HGET', activity, 'told:' .. subject) or '')
  local enough = subject == '{WAITING_SUBJECT}' or (told and now - told < {QUIET_CALLS})
  if told and enough then return redis.status_reply(said) end
  redis.call('HSET', activity, 'told:' .. subject, now)
end
said = '1'
redis.call('HSET', activity, 'judged', id)
redis.call('HINCRBY', activity, denied == '1' and 'denied' or 'warned', 1)
redis.call('SADD', 'hivepipe:active', session)
if denied == '1' then
  for i, call in ipairs(redis.call('LRANGE', calls, 0, -1)) do
    if string.sub(call, 1, 16) == id then
      redis.call('LSET', calls, i - 1, string.sub(call, 1, 33) .. '-')
    end
  end
end
"""


class Watch:
    """One event of a session, as the guard records it."""

    __slots__ = (
        "event",
        "home",
        "id",
        "kind",
        "profile",
        "session",
        "task",
        "time_ms",
    )

    def __init__(self, event: Event, context: Context, home: str) -> None:
        """`context.own_session` must be known."""
        self.event = event
        self.home = home
        self.session = context.own_session
        self.time_ms = context.event_time_ns // 1_000_000
        self.task = task_of(home, self.session)
        self.profile = valid_id(settings.variable("HIVEPIPE_AGENT_ID") or "")
        self.kind = OTHER
        self.id = ""
        if event.calls:
            self.id = event.digest.hex()[: 2 * _HASH_BYTES]
        elif isinstance(event, ToolEvent):
            self.id = _hash(event.tool_use_id) if event.tool_use_id else ""
            is_edit = event.tool in claude_code.EDIT_TOOLS
            if isinstance(event, PreToolUse):
                from hivepipe.guard.check import kind_of_call

                self.id = self.id or _hash(f"{event.digest.hex()} {context.event_time_ns}")
                self.kind = kind_of_call(event)
            elif is_edit and isinstance(event, PostToolUse):
                self.kind = EDIT

    def may_be_answered(self, said: str = "") -> bool:
        """Tell whether this event may get an answer; `hivepipe.guard.check` decides.

        `said`: the result of the note's script.
        """
        if self.event.calls:
            return bool(said)  # a call of the batch was refused
        if isinstance(self.event, ToolEvent):
            has_disk = self.profile and settings.variable("HIVEPIPE_SHARED_ROOT")
            return isinstance(self.event, PreToolUse) or bool(has_disk)
        return bool(self.task) and self.event.name == "UserPromptSubmit"

    @property
    def keys(self) -> list[str]:
        conversation = f"{self.session}:{self.event.agent_id}".rstrip(":")
        return [f"hivepipe:calls:{conversation}", f"hivepipe:activity:{self.session}", self.session]

    def note(self) -> Note:
        """Return the script and its arguments for this event."""
        event = self.event
        pattern = result = failed = waits = batch = ""
        if event.waits_for:
            verb, waits = "wait", event.waits_for
        elif event.name == "PostToolBatch":
            verb = "batch"
            batch = " ".join([_outcome(call, event) for call in event.calls if call.id])
        elif isinstance(event, ToolEvent):
            pattern = _pattern(event.tool, event.tool_input, event)
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
        call = [self.id, pattern, self.kind, result, failed, str(self.time_ms), turn]
        return SCRIPT, [*self.keys, verb, *call, self.task, self.profile, waits, batch]


def _pattern(tool: str, arguments: Fields, event: Event) -> str:
    """Hash tool and arguments of a call; its description does not count."""
    if tool in _DESCRIBED:
        arguments = {name: value for name, value in arguments.items() if name != "description"}
    return _hash_of([tool, arguments], event)


def _outcome(call: "BatchCall", event: Event) -> str:
    """Return a call of a batch in the format of the script."""
    pattern = _pattern(call.tool, call.tool_input, event) if call.was_not_run else "0"
    result = _hash_of(call.answer, event)
    return f"{_hash(call.id)} {pattern} {result} {int(call.was_not_run)}"


def _hash_of(value: object, event: Event) -> str:
    """Hash a JSON value independently of the order of its keys."""
    try:
        return _hash(sorted_dumps(value))
    except (ValueError, RecursionError):  # 1e999; a thousand brackets: equal to no other
        return event.digest.hex()[: 2 * _HASH_BYTES]


def _hash(text: str) -> str:
    return blake2b(text.encode(), digest_size=_HASH_BYTES).hexdigest()


# ---- tasks


def task_of(home: str, session: str) -> str:
    """Return the task: HIVEPIPE_TASK_ID, the task file, the assigned one, or ""."""
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
    """Return the id in a task file: a JSON object, or a text with the id in its first line."""
    found = parse_object(text.encode("utf-8", "replace"), [])
    if found is None:
        return valid_id(text.strip().partition("\n")[0].strip())
    for key in ("taskId", "task_id", "id"):
        value = found.get(key)
        if isinstance(value, str) and valid_id(value):
            return valid_id(value)
    return ""


def assignment_path(home: str, session: str) -> str:
    """Return the path of the file that names a session's task."""
    return f"{home}/tasks/sessions/{session}"


def cancellation_path(home: str, task: str) -> str:
    """Return the path of the file that records a task's cancellation."""
    return f"{home}/tasks/cancelled/{task}"
