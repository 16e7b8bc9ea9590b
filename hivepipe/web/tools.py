"""The tools of `hivepipe mcp` over HTTP: one JSON message per POST, stateless."""

import json

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from hivepipe.home import Place
from hivepipe.mcp_server.protocol import LONGEST_MESSAGE, answer_to
from hivepipe.mcp_server.server import tool_server


async def tools(here: Place, request: Request) -> Response:
    """Answer an MCP message; the status is 202 if the message needs no answer."""
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > LONGEST_MESSAGE:
            return PlainTextResponse("too long\n", 413)
    answer = await run_in_threadpool(answer_to, tool_server(lambda: here), bytes(raw))
    if answer is None:
        return Response(status_code=202)
    return Response(json.dumps(answer), media_type="application/json")
