"""A fake of OpenAI's Responses API on loopback that plays one script for Codex CLI.

The number of call results in a request selects the next turn.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.loopback import QuietHandler, served
from tests.real.script import Call, Say

USAGE = {
    "input_tokens": 1000,
    "input_tokens_details": {"cached_tokens": 300},
    "output_tokens": 50,
    "output_tokens_details": {"reasoning_tokens": 10},
    "total_tokens": 1050,
}
PATCH = "apply_patch"  # The input of this tool is a plain text.


@dataclass
class ResponsesApi:
    """The fake API: its turns, each a call or a text, and the number of requests served."""

    turns: Sequence[Say | Call]
    served: int = 0
    address: str = ""

    @contextmanager
    def serving(self) -> Iterator["ResponsesApi"]:
        """Serve on loopback while the context lasts."""
        api = self

        class Handler(_Handler):
            fake = api

        with served(Handler) as address:
            self.address = f"{address}/v1"
            yield self


class _Handler(QuietHandler):
    fake: ResponsesApi

    def do_GET(self) -> None:
        self.send_error(404)

    def do_POST(self) -> None:
        body = json.loads(self.content())
        done = sum(str(each.get("type")).endswith("_output") for each in body["input"])
        self.fake.served += 1
        id = f"resp_{self.fake.served:06}"
        item = _item(self.fake.turns[min(done, len(self.fake.turns) - 1)], self.fake.served)
        whole = {"id": id, "usage": USAGE, "output": [item]}
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for kind, event in (
            ("response.created", {"response": {"id": id}}),
            ("response.output_item.done", {"output_index": 0, "item": item}),
            ("response.completed", {"response": whole}),
        ):
            line = f"event: {kind}\ndata: {json.dumps({'type': kind, **event})}\n\n"
            self.wfile.write(line.encode())


def _item(piece: Say | Call, number: int) -> dict[str, Any]:
    if isinstance(piece, Say):
        content = [{"type": "output_text", "text": piece.text}]
        return {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": content}
    call = {"id": f"fc_{number}", "call_id": f"call_{number}", "name": piece.tool}
    if piece.tool == PATCH:
        return {"type": "custom_tool_call", **call, "input": piece.input["input"]}
    return {"type": "function_call", **call, "arguments": json.dumps(piece.input)}
