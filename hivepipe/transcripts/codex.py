"""Translate the lines of Codex CLI's transcripts into the format of Claude Code, line by line.

    {"timestamp": ..., "type": "response_item", "payload": {"type": "function_call", ...}}

So readers of transcripts need to know only one format. A line without a counterpart keeps its type
and has no content. Source: transcripts of Codex CLI 0.104 to 0.171.
"""

import re
from collections.abc import Callable
from typing import Any

import orjson

Fields = dict[str, Any]

INTERRUPTED = "[Request interrupted by user]"
_TYPES = (
    "session_meta",
    "turn_context",
    "response_item",
    "event_msg",
    "compacted",
    "token_usage_record",
)
_SHELLS = ("exec_command", "shell", "shell_command", "local_shell_call")
_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (\d+)", re.MULTILINE)
_HEAD_CHARS = 300  # start of an output, which contains the exit code
# Codex itself writes texts as the user. From 0.150 on, a text's kind tells these from prompts;
# before that, its prefix does.
_OF_USER = ("user.", "unknown")
_OF_CODEX = (
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "<skill>",
    "<subagent_notification>",
    "# AGENTS.md",
)


def is_codex(line: Fields) -> bool:
    return isinstance(line.get("payload"), dict) and line.get("type") in _TYPES


def translated(line: Fields) -> Fields:
    """Return a line of Codex CLI in the format of Claude Code."""
    payload = line["payload"]
    kind = line["type"] if line["type"] != "response_item" else str(payload.get("type"))
    translate = _TRANSLATORS.get(kind)
    fields = translate(payload) if translate else {"type": line["type"]}
    return {"timestamp": line.get("timestamp"), **fields}


def _session(payload: Fields) -> Fields:
    git = payload.get("git")
    return {
        "type": "session_meta",
        "sessionId": payload.get("id"),
        "threadParent": payload.get("forked_from_id"),
        "cwd": payload.get("cwd"),
        "version": payload.get("cli_version"),
        "gitBranch": git.get("branch") if isinstance(git, dict) else None,
    }


def _turn(payload: Fields) -> Fields:
    given = {"cwd": payload.get("cwd"), "model": payload.get("model")}
    return {"type": "turn_context", "threadTurn": payload.get("turn_id"), **given}


def _message(payload: Fields) -> Fields:
    content = payload.get("content")
    pieces = content if isinstance(content, list) else []
    texts = [piece["text"] for piece in pieces if isinstance(piece, dict) and "text" in piece]
    blocks = [{"type": "text", "text": text} for text in texts]
    if payload.get("role") == "assistant":
        return {"type": "assistant", "message": _answer(payload, blocks)}
    is_users = payload.get("role") == "user" and not _is_of_codex(payload, texts)
    return {"type": "user", "isMeta": not is_users, "message": {"role": "user", "content": blocks}}


def _is_of_codex(payload: Fields, texts: list[Any]) -> bool:
    metadata = payload.get("internal_chat_message_metadata_passthrough")
    kinds = metadata.get("content_item_kinds") if isinstance(metadata, dict) else None
    if kinds and isinstance(kinds, list):
        return not any(str(kind).startswith(_OF_USER) for kind in kinds)
    return bool(texts) and str(texts[0]).startswith(_OF_CODEX)


def _call(payload: Fields) -> Fields:
    name = payload.get("name", payload.get("type"))
    given = _object(payload.get("arguments", payload.get("input", payload.get("action"))))
    if name in _SHELLS:  # hooks of Codex CLI use the name Bash for these tools
        name, given = "Bash", {"command": given.get("cmd", given.get("command")), **given}
    block = {"type": "tool_use", "id": payload.get("call_id"), "name": name, "input": given}
    return {"type": "assistant", "message": _answer(payload, [block])}


def _object(arguments: object) -> Fields:
    """Return a call's arguments, perhaps JSON text, as an object, else as {"input": arguments}."""
    if isinstance(arguments, str):
        try:
            arguments = orjson.loads(arguments)
        except orjson.JSONDecodeError:
            return {"input": arguments}
    return arguments if isinstance(arguments, dict) else {"input": arguments}


def _result(payload: Fields) -> Fields:
    output = payload.get("output")
    text = output if isinstance(output, str) else _as_json(output)
    code = _EXIT.search(text[:_HEAD_CHARS])
    block = {
        "type": "tool_result",
        "tool_use_id": payload.get("call_id"),
        "content": text,
        "is_error": code is not None and code[1] != "0",
    }
    return {"type": "user", "message": {"role": "user", "content": [block]}}


def _as_json(output: object) -> str:
    """Return a value as JSON, or "" if it is nested too deeply or has a lone surrogate."""
    try:
        return orjson.dumps(output).decode()
    except orjson.JSONEncodeError:
        return ""


def _used(payload: Fields) -> Fields:
    """Return the usage of an answer as a line in Claude Code's format."""
    answer = _usage(payload, "usage", of_thread="thread_token_usage")
    answer["message"]["id"] = payload.get("response_id")
    return {**answer, "sessionId": payload.get("session_id")}


def _usage(usages: Fields, of_answer: str, *, of_thread: str) -> Fields:
    """Return a usage as a line of Claude Code: cached tokens are not counted as input tokens.

    `of_answer` and `of_thread` are the names of two fields of `usages`: the tokens of the answer,
    and of the whole thread so far.
    """
    used = _counts(usages, of_answer)
    cached, written = used.get("cached_input_tokens", 0), used.get("cache_write_input_tokens", 0)
    tokens = {
        "input_tokens": used.get("input_tokens", 0) - cached - written,
        "output_tokens": used.get("output_tokens", 0),
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
    }
    total = _counts(usages, of_thread).get("total_tokens")
    message = {"role": "assistant", "usage": tokens}
    return {"type": "assistant", "threadTokens": total, "message": message}


def _counts(usages: Fields, name: str) -> dict[str, int]:
    usage = usages.get(name)
    given = usage.items() if isinstance(usage, dict) else ()
    return {key: tokens for key, tokens in given if type(tokens) is int}


def _compacted(payload: Fields) -> Fields:
    return {"type": "system", "subtype": "compact_boundary", "content": payload.get("message")}


def _event(payload: Fields) -> Fields:
    info = payload.get("info")
    if payload.get("type") == "token_count" and isinstance(info, dict):
        return _usage(info, "last_token_usage", of_thread="total_token_usage")
    if payload.get("type") == "task_started":
        return {"type": "event_msg", "threadTurn": payload.get("turn_id")}
    if payload.get("type") != "turn_aborted":
        return {"type": "event_msg"}
    return {"type": "user", "message": {"role": "user", "content": INTERRUPTED}}


def _answer(payload: Fields, blocks: list[Fields]) -> Fields:
    return {"id": payload.get("id"), "role": "assistant", "content": blocks}


_TRANSLATORS: dict[str, Callable[[Fields], Fields]] = {
    "session_meta": _session,
    "turn_context": _turn,
    "message": _message,
    "function_call": _call,
    "custom_tool_call": _call,
    "local_shell_call": _call,
    "web_search_call": _call,
    "function_call_output": _result,
    "custom_tool_call_output": _result,
    "token_usage_record": _used,
    "compacted": _compacted,
    "event_msg": _event,
}
