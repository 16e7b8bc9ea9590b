"""Parse the output of `claude -p --output-format stream-json`: calls, texts, costs.

The `result` lines of one run have a running total, so only the last line counts. For several runs
in one transcript, the totals are added up. Up to 2.1.197 each run has its own total. In some later
version the total of a resumed session includes its earlier runs, which `own_costs` subtracts. In a
transcript without recorded runs, an `init` after a result begins a new run, unless Claude Code
continued by itself (then its next result has an `origin`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from hivepipe.orchestrator.plain_file import lines_in, open_regular
from hivepipe.redact import redact_text
from hivepipe.transcripts.lines import (
    CAP_TEXT,
    Fields,
    blocks,
    count,
    id_of,
    message_text,
    part,
    read_line,
    text,
)

_COUNTS = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
_COUNTS_OF_RUN = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)
_TOTALS_OF_RUNS = (2, 1, 197)  # the last version known to have one total per run
Counts = tuple[int, ...]  # tokens, in the order of _COUNTS


class Result(NamedTuple):
    """The last result line of a run."""

    total_usd: Decimal  # cost of this run, or of the whole session
    outcome: str  # success, or the kind of error
    words: str
    session: str = ""
    used: Counts = ()  # tokens of the main loop in this run only
    by_model: Mapping[str, Counts] = MappingProxyType({})  # the usage that total_usd covers
    version: tuple[int, ...] = ()  # version of Claude Code

    def continues(self, before: "Result") -> bool:
        """Tell whether these totals include those of `before`, an earlier run of the session."""
        if not self.by_model or () < self.version <= _TOTALS_OF_RUNS:
            return False
        held = all(
            name in self.by_model and _is_at_least(self.by_model[name], counts)
            for name, counts in before.by_model.items()
        )
        added = _minus(_sum(self.by_model.values()), _sum(before.by_model.values()))
        return held and self.total_usd >= before.total_usd and _is_at_least(added, self.used)


class Step(NamedTuple):
    """One event of a transcript: a tool call, a failed call, a text by Claude or a result."""

    kind: str
    words: str


class Stream:
    """A parser that gets the lines of a transcript one by one."""

    def __init__(self) -> None:
        self.results: list[Result] = []  # the last result of each run that had one
        self._may_be_new_run = False
        self._version: tuple[int, ...] = ()

    def feed(self, raw: bytes) -> Iterator[Step]:
        """Read one line and yield its events."""
        line = read_line(raw)
        if line is None:
            return
        kind = line.get("type")
        if kind == "system" and line.get("subtype") == "init":
            self._may_be_new_run = bool(self.results)
            self._version = _numbers(text(line, "claude_code_version"))
        elif kind == "result":
            result = _result(line, self._version)
            if self.results and not (self._may_be_new_run and not part(line, "origin")):
                self.results[-1] = result
            else:
                self.results.append(result)
            self._may_be_new_run = False
            yield Step("result", f"{result.outcome}, {result.total_usd} USD: {result.words}")
        else:
            yield from _steps(line)

    @property
    def cost_usd(self) -> Decimal:
        return sum(own_costs(self.results), Decimal(0))

    @property
    def last(self) -> Result | None:
        """Return the last result of the last run, or None."""
        return None if self._may_be_new_run or not self.results else self.results[-1]


def own_costs(results: Iterable[Result]) -> list[Decimal]:
    """Return the cost in USD of each run alone, in the order of the runs."""
    last: dict[str, Result] = {}
    costs = []
    for result in results:
        before = last.get(result.session)
        goes_on = before is not None and result.continues(before)
        costs.append(
            result.total_usd - before.total_usd if before and goes_on else result.total_usd
        )
        if result.by_model:
            last[result.session] = result
    return costs


def read_stream(path: Path, start: int = 0, end: int | None = None) -> Stream:
    """Return a parser that has read a transcript between two byte offsets."""
    stream = Stream()
    for raw in lines_of(path, start, end):
        list(stream.feed(raw))
    return stream


def steps(lines: Iterable[bytes]) -> Iterator[Step]:
    """Yield the events in the lines of a transcript, with secrets redacted."""
    stream = Stream()
    for raw in lines:
        for step in stream.feed(raw):
            yield Step(step.kind, redact_text(step.words))


def lines_of(path: Path, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """Yield the lines of a transcript between two byte offsets; no lines if it is unreadable."""
    try:
        with open(path, "rb", opener=open_regular) as file:
            at = file.seek(start)
            for raw in lines_in(file, path):
                at += len(raw)
                if end is not None and at > end:
                    return
                yield raw
    except OSError:
        return


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d{1,9}", version)[:3]))


def _result(line: Fields, version: tuple[int, ...]) -> Result:
    failed = line.get("is_error") is True
    kind = text(line, "subtype") or "unknown"
    words = text(line, "result", CAP_TEXT) or _errors(line)
    outcome = "error" if failed and kind == "success" else kind
    models = part(line, "modelUsage")
    return Result(
        _cost(line),
        outcome,
        words,
        id_of(line, "session_id"),
        _counts(part(line, "usage"), _COUNTS_OF_RUN),
        {name: _counts(part(models, name), _COUNTS) for name in models},
        version,
    )


def _counts(used: Fields, names: tuple[str, ...]) -> Counts:
    return tuple(count(used, name) for name in names)


def _sum(counts: Iterable[Counts]) -> Counts:
    return tuple(map(sum, zip(*counts, strict=True)))


def _minus(one: Counts, other: Counts) -> Counts:
    return tuple(mine - theirs for mine, theirs in zip(one, other or (0,) * len(one), strict=True))


def _is_at_least(one: Counts, other: Counts) -> bool:
    return all(mine >= theirs for mine, theirs in zip(one, other, strict=True))


def _errors(line: Fields) -> str:
    found = line.get("errors")
    return "; ".join(map(str, found))[:CAP_TEXT] if isinstance(found, list) else ""


def _cost(line: Fields) -> Decimal:
    """Return the cost in USD, if possible as the sum over all models, which includes subagents."""
    models = part(line, "modelUsage")
    costs = [_amount(part(models, name).get("costUSD")) for name in models]
    by_model = sum(costs, Decimal(0))
    return by_model or _amount(line.get("total_cost_usd"))


def _amount(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        return Decimal(0)
    return round(Decimal(repr(value)), 6)


def _steps(line: Fields) -> Iterator[Step]:
    message = part(line, "message")
    if line.get("type") == "assistant":
        words = message_text(message)
        if words:
            yield Step("says", words)
        for call in blocks(message, "tool_use"):
            yield Step("calls", f"{text(call, 'name')} {_shown(part(call, 'input'))}".rstrip())
    results = list(blocks(message, "tool_result"))
    if line.get("type") == "tool_result":  # older versions write the result on its own line
        results.append(line)
    for result in results:
        if result.get("is_error") is True:
            yield Step("fails", message_text(result) or str(result.get("content"))[:CAP_TEXT])


def _shown(arguments: Fields) -> str:
    """Return the argument of a tool call that tells most about it, or ""."""
    for name in ("file_path", "notebook_path", "command", "pattern", "description", "skill", "url"):
        if value := text(arguments, name, 300):
            return value
    return ""
