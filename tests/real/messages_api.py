"""A fake of the Messages API on loopback that plays scripts and keeps every request.

Its protocol follows the requests that the client sends and the events that the client accepts.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tests.loopback import QuietHandler, served
from tests.real.script import AGENT_ID, CWD, Call, Cut, Refuse, Say, Script, Slow, Turn

USAGE = {
    "input_tokens": 1000,
    "cache_creation_input_tokens": 2000,
    "cache_read_input_tokens": 3000,
    "output_tokens": 100,
    "cache_creation": {"ephemeral_5m_input_tokens": 2000, "ephemeral_1h_input_tokens": 0},
}
_NAMED = re.compile(r"<<([\w-]+)>>")
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_FOLDER = re.compile(r"[Ww]orking directory: (/[^\\\n\"<]+)")
_AGENT = re.compile(r"agentId: (\w+)")
TITLE = "A title by the fake"
COMPACTION = "compaction"  # the script name under which the request for a summary is kept
SUMMARY = "1. Primary Request: a numbat was wanted.\n2. Files: note.txt"


@dataclass(frozen=True, slots=True)
class Request:
    """A request for a message with the name of its script; an error or a cut answer refuses it."""

    script: str
    body: dict[str, Any]
    is_refused: bool


@dataclass
class MessagesApi:
    """The fake API: its scripts and the requests that it received."""

    scripts: Mapping[str, Script]
    requests: list[Request] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    address: str = ""
    begun: set[tuple[str, int]] = field(default_factory=set)

    def is_first(self, name: str, turn: Turn) -> bool:
        """Return whether a turn of a script is requested for the first time."""
        key = (name, id(turn))
        is_first = key not in self.begun
        self.begun.add(key)
        return is_first

    def turn(self, body: dict[str, Any]) -> tuple[str, Turn]:
        """Return the script name and the turn that answer a request."""
        if "title" in _text(body.get("system")) and not body.get("tools"):
            return "title", [Say(json.dumps({"title": TITLE}))]
        messages = body.get("messages", [])
        if messages and "create a detailed summary" in _text(messages[-1].get("content")):
            return COMPACTION, [Say(f"<analysis>Hm.</analysis>\n<summary>\n{SUMMARY}\n</summary>")]
        for at in range(len(messages) - 1, -1, -1):
            named = _NAMED.findall(_said_by_user(messages[at]))
            if named and (script := self.scripts.get(named[-1])):
                number = sum(each["role"] == "assistant" for each in messages[at:])
                over: Turn = [Say(f"The script {script.name} is over.")]
                return script.name, script.turns[number] if number < len(script.turns) else over
        return "", [Say("No script is named.")]

    @contextmanager
    def serving(self) -> Iterator["MessagesApi"]:
        """Serve on loopback while the context lasts."""
        api = self

        class Handler(_Handler):
            fake = api

        with served(Handler) as address:
            self.address = address
            yield self


class _Handler(QuietHandler):
    protocol_version = "HTTP/1.1"
    fake: MessagesApi

    def do_GET(self) -> None:
        self._answer(404, _error("not_found_error"))

    do_HEAD = do_GET

    def do_POST(self) -> None:
        raw = self.content()
        path = self.path.partition("?")[0]
        if path == "/v1/messages/count_tokens":
            self._answer(200, {"input_tokens": len(raw) // 4})
        elif path == "/v1/messages":
            self._message(json.loads(raw))
        else:
            self._answer(404, _error("not_found_error"))

    def _message(self, body: dict[str, Any]) -> None:
        name, turn = self.fake.turn(body)
        if isinstance(turn, Refuse | Cut) and turn.then and not self.fake.is_first(name, turn):
            turn = turn.then
        self.fake.requests.append(Request(name, body, isinstance(turn, Refuse | Cut)))
        if isinstance(turn, Refuse):
            self._answer(turn.status, _error(turn.kind), may_retry=turn.then is not None)
            return
        cut, secs = isinstance(turn, Cut), turn.secs if isinstance(turn, Slow) else 0.0
        turn = turn.then if isinstance(turn, Cut | Slow) else turn
        number = next(self.fake.numbers)
        known = _known(json.dumps(body))
        content = [_block(piece, number, at, known) for at, piece in enumerate(turn)]
        is_call = any(block["type"] == "tool_use" for block in content)
        message = {
            "id": f"msg_{number:06}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model"),
            "content": content,
            "stop_reason": "tool_use" if is_call else "end_turn",
            "stop_sequence": None,
            "usage": USAGE,
        }
        if body.get("stream"):
            self._stream(message, number, cut, secs)
        else:
            self._answer(200, message, number)

    def _answer(
        self, status: int, value: dict[str, Any], number: int = 0, *, may_retry: bool = False
    ) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.send_header("request-id", f"req_{number:06}")
        if status >= 400:
            self.send_header("x-should-retry", str(may_retry).lower())
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _stream(self, message: dict[str, Any], number: int, cut: bool, secs: float) -> None:
        """Send the events of an answer; cut the stream or pause after each delta."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("request-id", f"req_{number:06}")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for kind, event in _events(message):
            line = f"event: {kind}\ndata: {json.dumps({'type': kind, **event})}\n\n"
            try:
                self.wfile.write(line.encode())
            except ConnectionError:
                return  # The client was interrupted or killed.
            if kind == "content_block_delta":
                if cut:
                    return
                time.sleep(secs)


def _events(message: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the stream events of a message."""
    begun = {**message, "content": [], "stop_reason": None}
    yield "message_start", {"message": {**begun, "usage": {**USAGE, "output_tokens": 1}}}
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield "content_block_start", {"index": index, "content_block": empty}
        yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"delta": end, "usage": USAGE}
    yield "message_stop", {}


def _known(body: str) -> dict[str, str]:
    """Return the placeholders of call inputs with their values in this request."""
    folder, agents = _FOLDER.search(body), _AGENT.findall(body)
    return {CWD: folder[1] if folder else "/", AGENT_ID: agents[-1] if agents else "none"}


def _block(piece: Say | Call, number: int, at: int, known: Mapping[str, str]) -> dict[str, Any]:
    if isinstance(piece, Say):
        return {"type": "text", "text": piece.text}
    text = json.dumps(piece.input)
    for name, value in known.items():
        text = text.replace(name, value)
    arguments = json.loads(text)
    id = f"toolu_{number:06}_{at:02}"
    return {"type": "tool_use", "id": id, "name": piece.tool, "input": arguments}


def _error(kind: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": "by the fake"}}


def _said_by_user(message: dict[str, Any]) -> str:
    said = _text(message.get("content")) if message.get("role") == "user" else ""
    return _REMINDER.sub("", said)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = content or []
    return "\n".join(str(block.get("text", "")) for block in blocks if block["type"] == "text")
