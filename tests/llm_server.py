"""Fake LLM providers on loopback that speak the real protocols and play a script."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import Any

from tests.loopback import QuietHandler

SUMMARY = {
    "summary": "The parser was mended, and its tests are green again.",
    "key_learnings": ["The parser reads a line at a time."],
    "files": ["src/parser.py"],
    "open_ends": ["The changelog lacks a line."],
}
INPUT_TOKENS, OUTPUT_TOKENS = 1_000, 100

Answer = Callable[["Handler"], None]


class Handler(QuietHandler):
    """One request, answered by the script."""

    protocol_version = "HTTP/1.1"
    body: dict[str, Any]

    def do_POST(self) -> None:
        """Store the request and answer it by the script."""
        server = self.server
        assert isinstance(server, Provider)
        self.body = json.loads(self.content())
        with server.lock:
            server.requests.append((self.path, dict(self.headers), self.body))
            answer = server.script.pop(0) if server.script else server.otherwise
        answer(self)


class Provider(ThreadingHTTPServer):
    """The server: it plays `script` answer by answer, then repeats `otherwise`."""

    daemon_threads = True

    def __init__(self) -> None:
        """Listen on a free port."""
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.script: list[Answer] = []
        self.otherwise: Answer = success()
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.ended = threading.Event()

    @property
    def url(self) -> str:
        """The base URL of Anthropic's protocol; OpenAI's is below `/v1`."""
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_: object) -> None:
        """Ignore a client that was killed."""


@contextmanager
def provider() -> Iterator[Provider]:
    """Run a provider."""
    server = Provider()
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        server.server_close()


def is_anthropic(handler: Handler) -> bool:
    return handler.path.endswith("/messages")


def reply(handler: Handler, answer: Any) -> dict[str, Any]:
    """Return an answer in the form of the request's protocol."""
    if is_anthropic(handler):
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": handler.body["model"],
            "content": [
                {"type": "tool_use", "id": "toolu_1", "name": "write_summary", "input": answer}
            ],
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS},
        }
    message = {"role": "assistant", "content": json.dumps(answer)}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "provider": "somebody",
        "model": handler.body["model"],
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": "stop",
                "native_finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": INPUT_TOKENS,
            "completion_tokens": OUTPUT_TOKENS,
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        },
    }


def stream(handler: Handler, answer: Any) -> bytes:
    """Return an answer as the event stream of the Codex service."""
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "write_summary",
        "arguments": json.dumps(answer),
        "status": "completed",
    }
    usage = {
        "input_tokens": INPUT_TOKENS,
        "output_tokens": OUTPUT_TOKENS,
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    whole = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": handler.body["model"],
        "status": "completed",
        "output": [call],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
    }
    begun_call = {**call, "arguments": "", "status": "in_progress"}
    begun = {**whole, "status": "in_progress", "output": []}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": begun_call},
        {
            "type": "response.function_call_arguments.done",
            "item_id": "fc_1",
            "output_index": 0,
            "name": call["name"],
            "arguments": call["arguments"],
        },
        {"type": "response.output_item.done", "output_index": 0, "item": call},
        {"type": "response.completed", "response": whole},
    ]
    lines = (
        f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': number})}\n\n"
        for number, event in enumerate(events)
    )
    return "".join(lines).encode()


def success(answer: Any = None) -> Answer:
    """Return an answer that succeeds."""
    said = SUMMARY if answer is None else answer

    def send(handler: Handler) -> None:
        if handler.path.endswith("/responses"):
            handler.send(200, stream(handler, said), content_type="text/event-stream")
        else:
            handler.send(200, json.dumps(reply(handler, said)).encode())

    return send


def error(status: int, kind: str, message: str, **headers: str) -> Answer:
    """Return an answer that fails, in the form of both protocols."""
    said = {"type": kind, "code": kind, "message": message}
    body = json.dumps({"type": "error", "error": said}).encode()
    return lambda handler: handler.send(status, body, **headers)


def raw(body: bytes) -> Answer:
    return lambda handler: handler.send(200, body)


def hang(handler: Handler) -> None:
    server = handler.server
    assert isinstance(server, Provider)
    server.ended.wait(300)


def flood(handler: Handler) -> None:
    """Send a summary of 30 MB."""
    handler.send_response(200)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", str(30 << 20))
    handler.end_headers()
    for _ in range(30):
        handler.wfile.write(b" " * (1 << 20))


def cut_off(handler: Handler) -> None:
    """Begin an answer and close the connection."""
    handler.send_response(200)
    handler.send_header("content-length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"id"')
    handler.close_connection = True


def slow(secs: float) -> Answer:
    """Return an answer that succeeds after a delay."""

    def answer(handler: Handler) -> None:
        time.sleep(secs)
        success()(handler)

    return answer
