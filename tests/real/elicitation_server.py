"""MCP server on stdio: its tool asks the user for a day and returns the user's answer.

The client runs this file as a program, so it imports nothing but the standard library.
"""

import json
import sys
from typing import Any

ASKED = "asked-1"
DAY = {"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]}
TOOL = {"name": "book", "description": "Book a day", "inputSchema": {"type": "object"}}


def main() -> None:
    """Answer requests until stdin ends."""
    call: object = None
    for line in sys.stdin:
        message = json.loads(line)
        method, id = message.get("method"), message.get("id")
        if method == "initialize":
            version = message["params"]["protocolVersion"]
            about = {"name": "calendar", "version": "1"}
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
    send({"id": id, "result": result})


def send(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


if __name__ == "__main__":
    main()
