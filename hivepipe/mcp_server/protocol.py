"""The part of the Model Context Protocol that a server of tools needs: one message in, one out.

The supported versions are 2024-11-05 to 2025-11-25, which have a handshake, and 2026-07-28, which
has none. The package `mcp` is not used, because its import takes longer than a first answer may
take. For a fast start, this module imports only the standard library.
"""

import json
from collections.abc import Callable, Iterator
from math import isfinite
from typing import Any, BinaryIO, NamedTuple

HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
VERSIONS = (*HANDSHAKES, "2026-07-28")
LONGEST_MESSAGE = 1 << 20  # bytes of one message

_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_SERVER_KEY = "io.modelcontextprotocol/serverInfo"
_NOT_JSON, _NO_REQUEST, _NO_METHOD, _BAD_PARAMS = -32700, -32600, -32601, -32602
_NO_VERSION = -32022

Fields = dict[str, Any]


class Outcome(NamedTuple):
    """The text of a tool's answer, which is an error message if `failed` is set."""

    text: str
    failed: bool = False


class Served(NamedTuple):
    """A server.

    `call` runs a tool by name with its arguments, or raises KeyError if no tool has this name.
    """

    version: str
    instructions: str
    tools: list[Fields]
    call: Callable[[str, Fields], Outcome]


class _RefusedError(Exception):
    def __init__(self, code: int, message: str, data: Fields | None = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}


def messages(stream: BinaryIO) -> Iterator[bytes]:
    """Yield each line, or b"" for a line that is too long; b"" counts as an invalid message."""
    while line := stream.readline(LONGEST_MESSAGE):
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = stream.readline(LONGEST_MESSAGE)
            line = b"" if rest.strip() else line
        yield line


def answer_to(served: Served, raw: bytes) -> Fields | list[Fields] | None:
    """Return the answer to a message, or None for a notification or a response.

    A list of messages (2025-03-26) gets a list of their answers.
    """
    try:
        message = json.loads(raw)
    except (ValueError, RecursionError):
        reason = "not JSON" if raw else f"longer than {LONGEST_MESSAGE} bytes"
        return _answer(None, error={"code": _NOT_JSON, "message": reason})
    if not isinstance(message, list) or not message:
        return _answer_to(served, message)
    return [found for each in message if (found := _answer_to(served, each))] or None


def _answer_to(served: Served, message: object) -> Fields | None:
    if not isinstance(message, dict):
        return _answer(None, error={"code": _NO_REQUEST, "message": "not one request"})
    number, method = message.get("id"), message.get("method")
    if number is None or ("method" not in message and message.keys() & {"result", "error"}):
        return None
    if not _is_id(number) or not isinstance(method, str):
        known = number if _is_id(number) else None
        return _answer(known, error={"code": _NO_REQUEST, "message": "no id or no method"})
    try:
        return _answer(number, result=_result(served, method, message.get("params")))
    except _RefusedError as refused:
        return _answer(number, error=refused.error)


def _is_id(value: object) -> bool:
    """Tell whether a value can be an id: a text or a finite number."""
    if isinstance(value, float):
        return isfinite(value)
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _answer(number: object, **body: Fields) -> Fields:
    return {"jsonrpc": "2.0", "id": number, **body}


def _result(served: Served, method: str, params: object) -> Fields:
    found = params if isinstance(params, dict) else {}
    _refuse_other_versions(found)
    match method:
        case "initialize":
            return _initialized(served, found.get("protocolVersion"))
        case "server/discover":
            return _complete(served, {"supportedVersions": [*VERSIONS], **_about(served)}, 0)
        case "tools/list":
            return _complete(served, {"tools": served.tools}, 0)
        case "tools/call":
            return _complete(served, _called(served, found))
        case "ping":
            return {}
    raise _RefusedError(_NO_METHOD, f"no method {method[:100]}")


def _refuse_other_versions(params: Fields) -> None:
    meta = params.get("_meta")
    version = meta.get(_VERSION_KEY) if isinstance(meta, dict) else None
    if version is not None and version not in VERSIONS:
        data = {"supported": [*VERSIONS], "requested": str(version)[:100]}
        raise _RefusedError(_NO_VERSION, "unsupported protocol version", data)


def _initialized(served: Served, requested: object) -> Fields:
    version = requested if requested in HANDSHAKES else HANDSHAKES[-1]
    return {"protocolVersion": version, "serverInfo": _identity(served), **_about(served)}


def _about(served: Served) -> Fields:
    return {"capabilities": {"tools": {}}, "instructions": served.instructions}


def _identity(served: Served) -> Fields:
    return {"name": "hivepipe", "version": served.version}


def _complete(served: Served, content: Fields, kept_ms: int | None = None) -> Fields:
    """Return `content` with protocol 2026-07-28's fields; a client may keep it for `kept_ms`."""
    caching = {} if kept_ms is None else {"ttlMs": kept_ms, "cacheScope": "private"}
    meta = {"_meta": {_SERVER_KEY: _identity(served)}}
    return {**content, "resultType": "complete", **caching, **meta}


def _called(served: Served, params: Fields) -> Fields:
    name, arguments = params.get("name"), params.get("arguments") or {}
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise _RefusedError(_BAD_PARAMS, "a call has a name and an object of arguments")
    try:
        found = served.call(name, arguments)
    except KeyError:
        raise _RefusedError(_BAD_PARAMS, f"no tool {name[:100]}") from None
    return {"content": [{"type": "text", "text": found.text}], "isError": found.failed}
