"""Read the end of a growing transcript: last tool, size of the context, prompt cache."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from hivepipe.archive.sources import Source, open_source
from hivepipe.errors import HivepipeError
from hivepipe.times import ns_of, stored_time
from hivepipe.transcripts.lines import Fields, blocks, part, read_line, text
from hivepipe.transcripts.usage import usage_of

TAIL_BYTES = 256 << 10
WINDOW, LARGE_WINDOW = 200_000, 1_000_000
_MINUTES_NS = 5 * 60 * 10**9
_HOUR_NS = 60 * 60 * 10**9


@dataclass(frozen=True)
class Latest:
    """The newest values in the last lines of a transcript; an unknown value is "" or None.

    `cache_until` is the time, in the store's form, at which the prompt cache expires if no prompt
    uses it.
    """

    tool: str = ""
    context_tokens: int | None = None
    cache_until: str = ""


def latest(path: str) -> Latest:
    """Return the latest values of a transcript; all are unknown if it cannot be read."""
    found, lasts_ns = Latest(), _MINUTES_NS
    # ValueError: a path with a null byte
    with suppress(HivepipeError, OSError, ValueError), open_source(path) as source:
        for line in _last_lines(source):
            for block in blocks(part(line, "message"), "tool_use"):
                found = replace(found, tool=text(block, "name"))
            usage = usage_of(line)
            if usage is None or usage.is_sidechain:
                continue
            tokens = usage.tokens
            if tokens.cache_write_1h or tokens.cache_write_5m:
                lasts_ns = _HOUR_NS if tokens.cache_write_1h else _MINUTES_NS
            is_cached = usage.time and (tokens.cache_read or tokens.prompt > tokens.input)
            until = stored_time(ns_of(usage.time) + lasts_ns) if is_cached else ""
            context = tokens.prompt + tokens.output
            found = replace(found, context_tokens=context, cache_until=until)
    return found


def context_window(model: str, tokens: int | None) -> int | None:
    """Return the size of a model's context window in tokens, or None if it is not a Claude model.

    The size is 200,000 tokens. A model has a larger window if its name has the suffix `[1m]`, or if
    the context has more than 200,000 tokens.
    """
    if "claude" not in model:
        return None
    return LARGE_WINDOW if "[1m]" in model or (tokens or 0) > WINDOW else WINDOW


def _last_lines(source: Source) -> Iterator[Fields]:
    begin = max(source.status.st_size - TAIL_BYTES, 0)
    lines = os.pread(source.descriptor, TAIL_BYTES, begin).split(b"\n")
    for raw in lines[1:] if begin else lines:
        yield read_line(raw) or {}
