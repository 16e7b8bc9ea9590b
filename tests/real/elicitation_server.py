"""An MCP server on stdio, one tool of which asks the user for a day; its answer is what they said.

Run by the client as a program, hence nothing but the standard library.
"""

import json
import sys
from typing import Any

ASKED = "asked-1"
DAY = {"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]}
TOOL = {"name": "book", "description": "Book a day", "inputSchema": {"type": "object"}}


def main() -> None:
    """Answer until stdin ends."""
    call: object = None
    for line in sys.stdin:
        message = json.loads(line)
        method, id = message.get("method"), message.get("id")
        if method == "initialize":
            version = message["params"]["protocolVersion"]
            about = {"name": "desk", "version": "1"}
            answer(id, protocolVersion=version, capabilities={"tools": {}}, serverInfo=about)
        elif method == "tools/list":
            answer(id, tools=[TOOL])
        elif method == "tools/call":
            call = id
            asked = {"message": "Which day?", "requestedSchema": DAY}
            send({"id": ASKED, "method": "elicitation/create", "params": asked})
        elif id == ASKED:
            said = json.dumps(message.get("result"))
            answer(call, content=[{"type": "text", "text": said}])
        elif method and id is not None:
            answer(id)


def answer(id: object, **result: Any) -> None:
    """Answer a request."""
    send({"id": id, "result": result})


def send(message: dict[str, Any]) -> None:
    """Write a message."""
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


if __name__ == "__main__":
    main()
