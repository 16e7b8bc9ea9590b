"""One question to a language model, asked in a separate process: `asker`, or `claude` itself.

The process leads its own process group. The process gets the question and the credential through
stdin, never as arguments. Its environment is a fixed list. The process is killed with its children
after the time limit, after too much output, and when its parent is told to stop.
"""

import json
import textwrap
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from hivepipe.errors import AnswerError
from hivepipe.programs import module, running
from hivepipe.redact import redact_text
from hivepipe.settings import inherited
from hivepipe.summaries.providers import Offer
from hivepipe.summaries.question import ANSWER_TOKENS, Answer, Question, read_answer
from hivepipe.transcripts.lines import read_object

MOST_REQUESTS = 2  # the second request corrects a malformed answer
MOST_TOKENS = 10_000_000  # per request: more than any model can read or write
MOST_DOLLARS = 1_000  # per request: more than MOST_TOKENS tokens cost
LONGEST_ANSWER_BYTES = 1 << 20
GRACE_SECS = 5.0  # after the limit; then a process whose parent was killed ends itself
REASON_CHARACTERS = 300
SHORTEST_SECRET = 8  # a shorter secret protects nothing, and may be part of any text

# Kind of failure -> whether a retry may succeed
FAILURES = {
    "rate limit": True,
    "server": True,
    "unreachable": True,
    "cut off": True,  # the request was sent: the model may have answered
    "timeout": True,
    "stopped": True,
    "quota": False,
    "auth": False,
    "refused": False,
    "answer": False,
    "too large": False,
    "broken": False,
}


# Failures before a model has read the request, for which providers do not charge.
UNBILLED = ("rate limit", "server", "unreachable", "quota", "auth", "refused")


class Used(NamedTuple):
    """The usage of a call; a value that the provider does not report is None."""

    requests: int
    input_tokens: int | None
    output_tokens: int | None
    unsaid: int = 0  # requests whose usage is unknown
    cost_usd: float | None = None  # None if the provider does not report it

    def or_unknown(self) -> "Used":
        """Return this usage, or an unknown usage if a value is negative or impossibly high."""
        most = max(self.requests, 1)
        counts = (self.input_tokens, self.output_tokens)
        is_possible = all(0 <= (tokens or 0) <= MOST_TOKENS * most for tokens in counts)
        if is_possible and 0 <= (self.cost_usd or 0) <= MOST_DOLLARS * most:  # false for NaN
            return self
        return Used(self.requests, None, None, self.requests)


class Reply(NamedTuple):
    """The result of a call: an answer, or the kind of failure and its reason."""

    answer: Answer | None
    used: Used
    failure: str = ""
    reason: str = ""
    retry_after_secs: float | None = None

    @property
    def may_succeed_later(self) -> bool:
        return FAILURES.get(self.failure, False)


def ask(
    offer: Offer,
    question: Question,
    *,
    requests: int,
    timeout_secs: float,
    dollars: float,
    should_stop: Callable[[], bool] = lambda: False,
) -> Reply:
    """Ask a model once, within the given limits; return its reply, which may be an error."""
    granted = min(requests, MOST_REQUESTS)
    request = {
        "kind": offer.provider.kind,
        "model": offer.model,
        "url": offer.url,
        "is_local": offer.is_local,
        "secret": offer.secret,
        "account": offer.account,
        "instructions": question.instructions,
        "text": question.text,
        "names": list(question.names),
        "schema": question.schema,
        "requests": granted,
        "answer_tokens": ANSWER_TOKENS,
        "timeout_secs": timeout_secs,
        "ends_after_secs": timeout_secs + GRACE_SECS,
        "dollars": dollars,
    }
    output = _run(json.dumps(request).encode(), timeout_secs, should_stop)
    if output.failure:
        nothing = Used(granted, None, None, granted)
        return Reply(None, nothing, output.failure, _REASONS[output.failure])
    reply = _read(output, offer, question, granted)
    return reply._replace(reason=_without(reply.reason, offer))


_REASONS = {
    "timeout": "no answer in time; the process was killed",
    "stopped": "stopped during the request; the process was killed",
    "too large": "the answer is longer than any summary; the process was killed",
}


class _Output(NamedTuple):
    """The output of the process that asked the model."""

    printed: bytes
    errors: bytes  # the end of the process's stderr
    failure: str = ""  # the kind of failure if hivepipe killed the process
    exit_code: int = 0

    @property
    def ending(self) -> str:
        """Describe the end of a process that printed no result, with its last line of output."""
        words = "the process of the request ended without a result"
        if self.exit_code:
            code = self.exit_code
            words += f" (killed by signal {-code})" if code < 0 else f" (exit code {code})"
        lines = (self.printed + b"\n" + self.errors).decode("utf-8", "replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "")
        return f"{words}: {last}" if last else words


def _run(data: bytes, timeout_secs: float, should_stop: Callable[[], bool]) -> _Output:
    """Run the process that asks the model; return its output."""
    deadline = time.monotonic() + timeout_secs
    words = module("hivepipe.summaries.asker")
    with running(words, data, env=inherited()) as child:
        while not child.has_ended():
            if should_stop():
                return _Output(b"", child.errors, "stopped")
            if time.monotonic() > deadline:
                return _Output(b"", child.errors, "timeout")
            if len(child.output) > LONGEST_ANSWER_BYTES:
                return _Output(b"", child.errors, "too large")
        return _Output(child.output, child.errors, exit_code=child.code or 0)


def _read(output: _Output, offer: Offer, question: Question, granted: int) -> Reply:
    fields = read_object(output.printed)
    if fields is None:
        return Reply(None, Used(granted, None, None, granted), "broken", output.ending)
    if offer.provider.kind == "claude":
        return _reply_of_claude(fields, question)
    return _reply_of(fields, question)


def _reply_of(fields: dict[str, Any], question: Question) -> Reply:
    used = Used(
        fields["requests"],
        fields.get("input_tokens"),
        fields.get("output_tokens"),
        fields.get("unsaid", 0),
    ).or_unknown()
    if fields.get("failure"):
        return Reply(
            None, used, fields["failure"], fields["reason"], fields.get("retry_after_secs")
        )
    try:
        return Reply(read_answer(fields.get("answer"), question.names), used)
    except AnswerError as error:
        return Reply(None, used, "answer", str(error))


def _reply_of_claude(fields: dict[str, Any], question: Question) -> Reply:
    """Parse the output of `claude -p --output-format json`, or an error of `asker`."""
    if "requests" in fields:
        return _reply_of(fields, question)
    usages = fields.get("modelUsage")
    counted = list(usages.values()) if isinstance(usages, dict) else []
    counted = [usage for usage in counted if isinstance(usage, dict)]
    cost = fields.get("total_cost_usd")
    used = Used(
        max(1, _whole(fields, "num_turns")),
        sum(_whole(usage, *_CLAUDES_INPUT) for usage in counted),
        sum(_whole(usage, "outputTokens") for usage in counted),
        cost_usd=float(cost) if isinstance(cost, int | float) else None,
    ).or_unknown()
    if fields.get("is_error") or fields.get("subtype") != "success":
        return _failed_claude(fields, used)
    try:
        return Reply(read_answer(fields.get("structured_output"), question.names), used)
    except AnswerError as error:
        return Reply(None, used, "answer", str(error))


_CLAUDES_INPUT = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
_CLAUDES_FAILURES = {401: "auth", 403: "auth", 402: "quota", 429: "rate limit", 404: "refused"}


def _failed_claude(fields: dict[str, Any], used: Used) -> Reply:
    status = fields.get("api_error_status")
    if isinstance(status, int):
        failure = _CLAUDES_FAILURES.get(status, "server" if status >= 500 else "refused")
    else:
        failure = "answer" if "structured" in str(fields.get("subtype")) else "refused"
    words = fields.get("errors") or fields.get("result") or fields.get("subtype")
    return Reply(None, used, failure, f"claude: {words}")


def _whole(fields: dict[str, Any], *names: str) -> int:
    values = (fields.get(name) for name in names)
    return sum(value for value in values if type(value) is int and value > 0)


def _without(reason: str, offer: Offer) -> str:
    """Return an error text without secrets: some providers repeat the request in an error."""
    secrets = (offer.secret, offer.account)
    for secret in (it for it in secrets if len(it) >= SHORTEST_SECRET):
        reason = reason.replace(secret, "***REDACTED***")
    return textwrap.shorten(redact_text(reason), REASON_CHARACTERS, placeholder=" ...")
