"""Apply the guard's rules to recorded events of a session, without Redis.

`Memory` replaces the guard's two Lua scripts. A test compares both with the same events.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hivepipe.events import parse_event
from hivepipe.events.claude_code import PreToolUse
from hivepipe.events.job_plan import Context
from hivepipe.guard.check import kind_of_call, last_calls, limits, verdict_note
from hivepipe.guard.client import (
    EDIT,
    KEPT_CALLS,
    NOTE_FIELDS,
    OTHER,
    PROMPT,
    QUIET_CALLS,
    VERDICT_FIELDS,
    VERDICT_SCRIPT,
    WAITING_SUBJECT,
    WINDOW,
    Note,
    WatchedEvent,
)
from hivepipe.guard.rules import judge
from hivepipe.transcripts.lines import Fields, blocks, message_text, part, read_line
from hivepipe.transcripts.users_words import is_prompt

Event = tuple[int, Fields]  # line number, and the event as a hook would receive it


@dataclass(frozen=True, slots=True)
class Finding:
    line: int
    tool: str
    denied: bool
    rule: str
    count: int


@dataclass(slots=True)
class Report:
    events: int = 0
    calls: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def denied(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.denied]


def replay(events: Iterable[Event], home: str) -> Report:
    """Replay events with the home's settings, but judge every call, as in the mode `all`."""
    memory = Memory()
    report = Report()
    for time_ms, (line, fields) in enumerate(events, 1):
        event = parse_event("", json.dumps(fields).encode())
        if event is None or not event.session_id:
            continue
        report.events += 1
        context = Context(event_time_ns=time_ms * 1_000_000, own_session=event.session_id)
        watch = WatchedEvent(event, context, home, kind_of_call(event))
        watch.task = ""
        note_result = memory.run(watch.note())
        if not isinstance(event, PreToolUse):
            continue
        report.calls += 1
        verdict = judge(last_calls(note_result.split(" ")), limits())
        if verdict and (
            memory.run(verdict_note(watch, verdict, verdict.deny)) == "1" or verdict.deny
        ):
            finding = Finding(line, event.tool, verdict.deny, verdict.rule, verdict.count)
            report.findings.append(finding)
    return report


class Memory:
    """An in-memory implementation of the guard's two scripts."""

    def __init__(self) -> None:
        self.calls: dict[str, list[str]] = {}
        self.activity: dict[str, dict[str, Any]] = {}

    def run(self, note: Note) -> str:
        script, arguments = note
        if script == VERDICT_SCRIPT:
            return self._judged(dict(zip(VERDICT_FIELDS, arguments, strict=True)))
        return self._noted(dict(zip(NOTE_FIELDS, arguments, strict=True)))

    def _noted(self, of: dict[str, str]) -> str:
        calls = self.calls.setdefault(of["calls"], [])
        new = {"calls": 0, "failed": 0, "denied": 0, "warned": 0, "task": of["task"]}
        activity = self.activity.setdefault(of["activity"], new)
        if of["verb"] == "prompt" or activity["task"] != of["task"]:
            calls.append(PROMPT)
        activity["task"] = of["task"]
        result = ""
        if of["verb"] in ("call", "result"):
            place = self._place(calls, of["id"], of["pattern"])
            before = "" if place is None else calls[place]
            if place is None:
                place = len(calls)
                id = of["id"] or 16 * "0"
                calls.append(f"{id}{of['pattern']}{of['kind']}{of['result']}")
                activity["calls"] += 1
            elif of["verb"] == "result" and len(before) == 33:
                kind = before[32] if before[32] != OTHER else of["kind"]
                if of["failed"] == "1" and kind == EDIT:
                    kind = OTHER
                calls[place] = f"{before[:32]}{kind}{of['result']}"
            if of["failed"] == "1" and len(before) <= 33:
                activity["failed"] += 1
            if of["verb"] == "call":
                result = " ".join(calls[max(0, place - WINDOW) : place + 1])
        if of["verb"] == "batch":
            result = self._refused(calls, activity, of["batch"].split())
        del calls[:-KEPT_CALLS]
        return result

    def _refused(self, calls: list[str], activity: dict[str, Any], batch: list[str]) -> str:
        last = ""
        for id, pattern, result, was_not_run in zip(*[iter(batch)] * 4, strict=True):
            place = self._place(calls, id, "")
            if place is None and was_not_run == "1":
                place = len(calls)
                calls.append(f"{id}{pattern}{OTHER}{result}")
                activity["calls"] += 1
            elif place is not None and len(calls[place]) == 33:
                kind = OTHER if calls[place][32] == EDIT else calls[place][32]
                calls[place] = f"{calls[place][:32]}{kind}{result}"
            else:
                continue
            activity["failed"] += 1
            last = " ".join(calls[max(0, place - WINDOW) : place + 1])
        return last

    def _place(self, calls: list[str], id: str, pattern: str) -> int | None:
        for place in range(len(calls) - 1, -1, -1):
            entry = calls[place]
            is_open = not id and len(entry) == 33 and entry[16:32] == pattern
            if is_open or (id and entry[:16] == id):
                return place
        return None

    def _judged(self, of: dict[str, str]) -> str:
        activity = self.activity[of["activity"]]
        if activity.get("judged") == of["id"]:
            return "0"
        subject = f"told:{of['subject']}"
        if of["subject"]:
            warned_at = activity.get(subject)
            if warned_at is not None and (
                of["subject"] == WAITING_SUBJECT or activity["calls"] - warned_at < QUIET_CALLS
            ):
                return "0"
            activity[subject] = activity["calls"]
        activity["judged"] = of["id"]
        activity["denied" if of["denied"] == "1" else "warned"] += 1
        if of["denied"] == "1":
            calls = self.calls[of["calls"]]
            calls[:] = [f"{call[:33]}-" if call[:16] == of["id"] else call for call in calls]
        return "1"


# ---- sources of events


def read_events(lines: Iterable[bytes]) -> Iterator[Event]:
    """Yield (line number, hook input) of each event of a file.

    The file has one hook input per line, or is a transcript.
    """
    called: dict[str, Fields] = {}
    for number, raw in enumerate(lines, 1):
        fields = read_line(raw)
        if fields is None:
            continue
        if isinstance(fields.get("hook_event_name"), str):
            yield number, fields
            continue
        for event in _events_of(fields, called):
            yield number, event


def _events_of(line: Fields, called: dict[str, Fields]) -> Iterator[Fields]:
    """Yield the hook events that correspond to a line of a transcript."""
    ids = {
        "session_id": line.get("sessionId") or "transcript",
        "agent_id": line.get("agentId") or ("sidechain" if line.get("isSidechain") else None),
    }
    message = part(line, "message")
    if line.get("type") == "assistant":
        for block in blocks(message, "tool_use"):
            call = {
                "tool_name": block.get("name"),
                "tool_input": block.get("input"),
                "tool_use_id": block.get("id"),
            }
            called[str(block.get("id"))] = call
            yield {"hook_event_name": PreToolUse.__name__, **ids, **call}
    elif line.get("type") == "user":
        results = list(blocks(message, "tool_result"))
        for block in results:
            call = called.get(str(block.get("tool_use_id")), {})
            yield {**ids, **call, **_outcome(line, block, len(results) == 1)}
        words = message_text(message)
        if not results and words and is_prompt(line, words):
            yield {"hook_event_name": "UserPromptSubmit", **ids, "prompt": words}


def _outcome(line: Fields, block: Fields, alone: bool) -> dict[str, Any]:
    if block.get("is_error") is True:
        return {"hook_event_name": "PostToolUseFailure", "error": json.dumps(block.get("content"))}
    structured = line.get("toolUseResult") if alone else None
    response = block.get("content") if structured is None else structured
    return {"hook_event_name": "PostToolUse", "tool_response": response}
