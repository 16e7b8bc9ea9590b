"""Totals of the lines of one transcript, updated line by line.

`feed` is called once for each line, in order. Totals can be saved as JSON between two turns, so
that a long session is not read again. The totals contain parts of the lines, so the lines must be
redacted. Every message counts once, even if its lines are repeated (Claude Code has appended whole
conversations to their own files). Lines that a fork copied from another session do not count.

    feed        add a line
    dump, load  save, restore
    take_usages the usage of the messages, for the store
    take_facts  titles, counts, scheduled prompts and interruptions of the session
"""

from dataclasses import dataclass, field, fields, replace

import orjson

from hivepipe.transcripts.answers import outcome_of, skill_at_work
from hivepipe.transcripts.compaction import CAP_SUMMARY, without_frame
from hivepipe.transcripts.counted_messages import MessageCounts, mark_of
from hivepipe.transcripts.lines import (
    CAP_NAME,
    CAP_PATH,
    CAP_TEXT,
    Fields,
    blocks,
    count,
    id_of,
    message_text,
    moment,
    part,
    read_line,
    text,
)
from hivepipe.transcripts.session_facts import CUSTOM_TITLE, SessionFacts, counted_by
from hivepipe.transcripts.usage import (
    Usage,
    is_api_error,
    is_by_claude,
    merged,
    message_key,
    usage_of,
)
from hivepipe.transcripts.users_words import is_aside, is_prompt
from hivepipe.transcripts.written_files import path_in_call, path_written

VERSION = 7
OPEN_CALLS = 200
MOST_AGENTS = 1000
RECENT_LINES = 500  # a summary may name one of these lines
WAITING_SUMMARIES = 50
_NAMES = ("skills", "files", "models")

_HANDBACK = "SubagentHandback"
_TITLES = {CUSTOM_TITLE: "customTitle", "ai-title": "aiTitle"}
_SPAWNS = ("Agent", "Task")
_OF_THE_HARNESS = "api-request"  # lines about Claude Code's own requests: system prompt, tools
_QUEUED, _MESSAGES = "queue-operation", ("user", "assistant")
_INTERRUPTED = "[Request interrupted by user"
_BY_THE_USER = "User rejected tool use"  # the user denied or interrupted the call
_STOP = "hook_stopped_continuation"  # type of an attachment
_DURING_CALLS = ("PreToolUse", "PostToolUse", "PostToolUseFailure")


@dataclass(slots=True)
class Totals:
    """Totals of a transcript's lines. Fields in `_NAMES` have each name once, in order of use."""

    lines: int = 0
    broken_lines: int = 0
    first: str = ""
    last: str = ""
    opened: str = ""  # time when a run without a terminal started the file; older lines are copies
    session: str = ""
    cwd: str = ""
    git_branch: str = ""
    claude_version: str = ""
    model: str = ""  # the current model, if only the start of a turn names it
    thread_tokens: int = 0  # sum of a thread of Codex CLI
    has_answer_ids: bool = False  # Codex CLI reported an answer of the current turn with its id
    is_copy: bool = False  # the current lines are copies with which a fork of Codex CLI begins
    messages: int = 0
    compactions: int = 0
    outcome: str = "unknown"
    titles: dict[str, str] = field(default_factory=dict)
    compact_summary: str = ""
    answer: str = ""  # text of the last answer
    answer_of: str = ""  # mark of that answer's message
    tools: dict[str, list[int]] = field(default_factory=dict)  # name -> calls, ok, failed
    # Calls without a result: tool, path, type
    calls: dict[str, list[str]] = field(default_factory=dict)
    batch: str = ""  # mark of the last message with calls
    denied: list[str] = field(default_factory=list)  # tools of its denied calls that have failed
    is_stopped: bool = False  # a hook ended the turn during these calls
    agents: dict[str, str] = field(default_factory=dict)  # subagent -> its type
    recent: list[str] = field(default_factory=list)  # marks (`mark_of`) of the last lines
    summaries: dict[str, str] = field(default_factory=dict)  # mark of an expected line -> title
    skills: dict[str, None] = field(default_factory=dict)
    files: dict[str, None] = field(default_factory=dict)
    models: dict[str, None] = field(default_factory=dict)
    message_counts: MessageCounts = field(default_factory=MessageCounts)
    _usages: dict[tuple[str, str], Usage] = field(default_factory=dict, compare=False)
    _facts: SessionFacts = field(default_factory=SessionFacts, compare=False)

    @classmethod
    def load(cls, dumped: str | bytes) -> "Totals | None":
        """Restore totals, or return None if they are not JSON or another version saved them."""
        try:
            version, state = orjson.loads(dumped)
        except ValueError:
            return None
        if version != VERSION:
            return None
        counts = MessageCounts.of_state(state.pop("ledger"))
        state |= {name: dict.fromkeys(state[name]) for name in _NAMES}
        return cls(**state, message_counts=counts)

    def dump(self) -> bytes:
        """Return the totals as JSON: a few thousand bytes, and eight for each older message.

        The totals of a subagent take some 150 bytes per message.
        """
        state = {it.name: getattr(self, it.name) for it in fields(self) if it.name[0] != "_"}
        state["ledger"] = state.pop("message_counts").state()
        state |= {name: list(state[name]) for name in _NAMES}
        return orjson.dumps([VERSION, state])

    def feed(self, raw: bytes) -> None:
        if not raw.strip():
            return
        line = read_line(raw)
        if line is not None and text(line, "type").startswith(_OF_THE_HARNESS):
            return
        self.lines += 1
        if line is None:
            self.broken_lines += 1
            return
        self._note_line(_mark_of_line(line))
        self._note_turn(line)
        if self._is_counted_again(line) or self._is_of_parent(line):
            return
        usage = usage_of(line)
        if usage:
            known = self._usages.get(usage.key)
            self._usages[usage.key] = merged(known, usage) if known else usage
        if self._is_repeated(line):
            return
        self._note_surroundings(line)
        kind = text(line, "type")
        if kind == "assistant":
            self._feed_answer(line, usage)
        elif kind == "user":
            self._feed_user(line)
        elif kind == "system" and line.get("subtype") == "compact_boundary":
            self.compactions += 1
        else:
            self._feed_other(kind, line)

    def take_usages(self) -> list[Usage]:
        """Return the usage that `feed` added since the last call. `dump` does not save it."""
        usages = list(self._usages.values())
        self._usages.clear()
        return usages

    def take_facts(self) -> SessionFacts:
        """Return the session facts that `feed` added since the last call. `dump` saves no facts."""
        facts, self._facts = self._facts, SessionFacts()
        return replace(facts, session=self.session)

    def _is_repeated(self, line: Fields) -> bool:
        """Tell whether the line repeats a line that was counted in this or another session."""
        of_line, of_message = _mark_of_line(line), _mark_of_message(line)
        if part(line, "forkedFrom") or self._is_copied(line):
            self.message_counts.close(of_line)  # the line may be repeated without this label
            return True
        if self.message_counts.is_closed(of_line) or self.message_counts.is_closed(of_message):
            return True
        results = list(blocks(part(line, "message"), "tool_result"))
        return bool(results) and not any(
            text(result, "tool_use_id") in self.calls for result in results
        )

    def _is_copied(self, line: Fields) -> bool:
        """Tell whether a line is a copy. A copied line is older than its file.

        A run without a terminal first writes its prompt into the file. If the run is a fork, it
        then copies the lines of its parent without their origin. The copied lines end at the first
        message of the fork itself.
        """
        written, kind = moment(line), text(line, "type")
        if not self.first and kind == _QUEUED:
            self.opened = written
        if written and written < self.opened:
            return True
        if kind in _MESSAGES:
            self.opened = ""
        return False

    def _note_line(self, mark: str) -> None:
        """Remember the mark of a line, so that the line is not counted again.

        If an earlier summary named the `uuid` of this line, the summary becomes the title.
        """
        if not mark:
            return
        self.recent.append(mark)
        del self.recent[:-RECENT_LINES]
        if mark in self.summaries:
            self.titles["summary"] = self.summaries.pop(mark)

    def _note_turn(self, line: Fields) -> None:
        """Add the model to a line. Codex CLI names the model only at the start of a turn."""
        if text(line, "type") == "turn_context":
            self.model, self.has_answer_ids = text(line, "model"), False
        elif self.model:
            part(line, "message").setdefault("model", self.model)

    def _is_counted_again(self, line: Fields) -> bool:
        """Tell whether Codex CLI reports an answer's tokens a second time; fill in a missing id.

        Each answer raises the token sum of its thread, so a report with an equal sum is a
        repetition. Reports before 0.154 have no id. Once a turn has a report with an id, its
        reports without an id do not count.
        """
        if "threadTokens" not in line:
            return False
        message, tokens = part(line, "message"), count(line, "threadTokens")
        is_known = 0 < tokens == self.thread_tokens
        self.thread_tokens = tokens or self.thread_tokens
        line.setdefault("sessionId", self.session)
        if text(message, "id"):
            self.has_answer_ids = True
            return is_known
        message["id"] = f"{moment(line)} {tokens}"
        return is_known or self.has_answer_ids or not tokens

    def _is_of_parent(self, line: Fields) -> bool:
        """Tell whether a fork of Codex CLI copied the line from its parent, with a new time.

        The copied lines end at the first turn of the fork itself. The ids of sessions and turns
        ascend with time, so the turns of the parent have lower ids than the fork. Without ids of
        turns, no line is taken for a copy.
        """
        if "threadParent" in line and not self.session:
            self.is_copy = bool(text(line, "threadParent"))
            return False
        if "threadTurn" in line:
            self.is_copy &= "" < text(line, "threadTurn") < self.session
        return self.is_copy

    def _feed_other(self, kind: str, line: Fields) -> None:
        if kind in _TITLES and text(line, _TITLES[kind]):
            self.titles[kind] = text(line, _TITLES[kind])
            self._facts.titles[kind] = (self.titles[kind], self.lines)
        elif kind == "cost-state":
            self._facts.counts.append(counted_by(line, self.last))
        elif kind == "summary" and text(line, "summary"):
            self._feed_summary(line)
        elif kind == "attachment":
            self._feed_stop(line)

    def _feed_summary(self, line: Fields) -> None:
        """Take a summary as the title, if it belongs to this transcript.

        Claude Code 1 started a file with the summaries of other sessions. The `leafUuid` of a
        summary is the `uuid` of a line in the session that it summarises.
        """
        mark = mark_of("line", text(line, "leafUuid"))
        if mark in self.recent:
            self.titles["summary"] = text(line, "summary")
        elif len(self.summaries) < WAITING_SUMMARIES:
            self.summaries[mark] = text(line, "summary")

    def _note_surroundings(self, line: Fields) -> None:
        at = moment(line)
        if at:
            self.first = min(self.first or at, at)
            self.last = max(self.last, at)
        self.session = self.session or id_of(line, "sessionId")
        self.cwd = self.cwd or text(line, "cwd", CAP_PATH)
        self.git_branch = text(line, "gitBranch") or self.git_branch
        self.claude_version = text(line, "version") or self.claude_version

    # ---- messages of Claude

    def _feed_answer(self, line: Fields, usage: Usage | None) -> None:
        if is_api_error(line):
            self.outcome = "error"
        message = part(line, "message")
        if not message or not is_by_claude(line):
            return
        mark = _mark_of_message(line) or mark_of("number", str(self.lines))
        if "content" not in message:  # Codex CLI reports the usage of an answer in a separate line
            self.message_counts.enter(mark, usage)
            return
        if self.message_counts.enter(mark, usage):
            self.messages += 1
        _add(self.models, text(message, "model"))
        _add(self.skills, skill_at_work(line))
        calls = list(blocks(message, "tool_use"))
        if calls and mark != self.batch:
            self.batch, self.denied, self.is_stopped = mark, [], False
        for call in calls:
            self._feed_call(call, mark)
        answer = message_text(message)
        if answer:
            before = f"{self.answer}\n\n" if self.answer_of == mark else ""
            self.answer = f"{before}{answer}"[:CAP_TEXT]
            self.answer_of = mark
        self.outcome = outcome_of(message.get("stop_reason"), bool(answer), bool(calls))

    def _feed_call(self, call: Fields, mark: str) -> None:
        name, id = text(call, "name"), text(call, "id")
        if not name or not self.message_counts.enter_call(mark, id):
            return
        arguments = part(call, "input")
        path = path_in_call(name, arguments)
        self.tools.setdefault(name, [0, 0, 0])[0] += 1
        kind = text(arguments, "subagent_type") if name in _SPAWNS else ""
        self.calls[id] = [name, path, kind]
        if len(self.calls) > OPEN_CALLS:
            del self.calls[next(iter(self.calls))]
        if name == "Skill":
            _add(self.skills, text(arguments, "skill") or text(arguments, "skill_name"))
        elif name == _HANDBACK:
            self.answer, self.answer_of = text(arguments, "message", CAP_TEXT), ""

    # ---- messages to Claude

    def _feed_user(self, line: Fields) -> None:
        message = part(line, "message")
        results = list(blocks(message, "tool_result"))
        for result in results:
            self._feed_result(line, result)
        words = message_text(message)
        if results or not words:
            return
        is_users = is_prompt(line, words)
        if line.get("isCompactSummary") is True:
            self.compact_summary = without_frame(message_text(message, CAP_SUMMARY))[:CAP_TEXT]
        elif words.startswith(_INTERRUPTED):
            self.outcome = "interrupted"
            self._facts.interrupted.append(text(line, "timestamp"))
        elif is_users or line.get("isMeta") is not True:
            self.messages += is_users
            if not is_aside(words):
                self.outcome = "unknown"
            self.message_counts.close(_mark_of_line(line))
        elif line.get("promptSource") == "system":
            self._facts.scheduled.append((id_of(line, "promptId"), words[:CAP_NAME]))

    def _feed_result(self, line: Fields, result: Fields) -> None:
        name, path, kind = self.calls.pop(text(result, "tool_use_id"), ("", "", ""))
        if not name:
            return
        response = part(line, "toolUseResult")
        agent = id_of(response, "agentId")
        if kind and agent and len(self.agents) < MOST_AGENTS:
            self.agents[agent] = kind
        is_denied = bool(text(line, "toolDenialKind"))
        failed = is_denied or result.get("is_error") is True or response.get("success") is False
        is_by_user = line.get("toolUseResult") == _BY_THE_USER
        if not is_by_user and not (is_denied and self.is_stopped):  # else no hook reports the end
            self.tools[name][2 if failed else 1] += 1
            self.denied += [name] * is_denied
        self.outcome = "success" if name == _HANDBACK and not failed else "unknown"
        if path and not failed:
            _add(self.files, path_written(line, path))

    def _feed_stop(self, line: Fields) -> None:
        """Uncount the failures of denied calls if a hook ended the turn during the calls' batch.

        Claude Code then sends no PostToolBatch, so no hook reports these calls as failed.
        """
        stop = part(line, "attachment")
        if stop.get("type") == _STOP and stop.get("hookEvent") in _DURING_CALLS:
            for name in self.denied:
                self.tools[name][2] -= 1
            self.denied, self.is_stopped = [], True
            self.message_counts.close(_mark_of_line(line))


def _mark_of_line(line: Fields) -> str:
    uuid = text(line, "uuid")
    return mark_of("line", uuid) if uuid else ""


def _mark_of_message(line: Fields) -> str:
    """Return the mark of a message's id, or "". Replays may have other request ids."""
    id, _ = message_key(line)
    return mark_of("message", id) if line.get("type") == "assistant" and id else ""


def _add(names: dict[str, None], name: str) -> None:
    if name:
        names[name] = None
