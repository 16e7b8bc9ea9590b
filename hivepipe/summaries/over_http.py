"""Ask over HTTP with pydantic-ai: providers, structured output, corrections, kinds of errors.

Only `asker` imports this module. The HTTP client limits requests and bytes, independently of the
library and the server.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
from pydantic_ai import Agent, ModelRetry, NativeOutput, StructuredDict, ToolOutput, exceptions
from pydantic_ai.models import Model
from pydantic_ai.usage import RunUsage, UsageLimits

from hivepipe.errors import AnswerError
from hivepipe.summaries.question import read_answer
from hivepipe.summaries.reasons import sentence

Request = dict[str, Any]

LONGEST_RESPONSE_BYTES = 1 << 20

# The first matching class gives the kind of failure.
_KINDS: tuple[tuple[type[Exception], str], ...] = (
    (exceptions.ModelQuotaExceededError, "quota"),
    (exceptions.ModelAuthenticationError, "auth"),
    (exceptions.ModelRateLimitError, "rate limit"),
    (exceptions.ModelRequestRejectedError, "refused"),
    (exceptions.ModelTimeoutError, "timeout"),
    (exceptions.ModelRequestTimeout, "timeout"),
    (exceptions.ModelConnectionError, "unreachable"),
    (exceptions.ModelUnavailableError, "server"),
    (exceptions.ModelServerError, "server"),
    (exceptions.ModelHTTPError, "refused"),  # for a status without a class, such as 413
    (exceptions.AgentRunError, "answer"),
)
_BEFORE_IT_IS_SENT = ("pool", "connect")
_REQUEST_TIMEOUT = 408  # the provider's own time limit: no model has answered


class TooLargeError(Exception):
    """A response is longer than any summary."""


class NoMoreRequestsError(Exception):
    """The library tried to send more requests than it was allowed."""


def ask_over_http(request: Request) -> dict[str, Any]:
    """Ask the model; retry after a malformed answer. Return the answer or the failure."""
    return asyncio.run(_ask(request))


async def _ask(request: Request) -> dict[str, Any]:
    wire = _Wire(request["requests"])
    usage, limits = RunUsage(), UsageLimits(request_limit=request["requests"])
    client = httpx2.AsyncClient(
        timeout=request["timeout_secs"],
        trust_env=not request["is_local"],  # the user did not agree to a proxy as receiver
        # No compression, so that the size limit applies to the decoded response
        headers={"Accept-Encoding": "identity"},
        event_hooks={"request": [wire.count], "response": [wire.limit]},
    )
    async with client:
        try:
            answer = await _agent(request, client).run(
                request["text"], usage=usage, usage_limits=limits
            )
            fields: dict[str, Any] = {"answer": dict(answer.output)}
        except Exception as error:  # noqa: BLE001  an error is returned as the reply
            fields = _failure(error, was_sent=wire.sent > 0)
    known = bool(usage.input_tokens or usage.output_tokens)
    tokens = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    unsaid = wire.sent - usage.requests if known else wire.sent
    return {**fields, "requests": wire.sent, "unsaid": unsaid, **(tokens if known else {})}


def _agent(request: Request, client: httpx2.AsyncClient) -> Agent[object, Any]:
    model, is_native = _model(request, client)
    form = StructuredDict(request["schema"])
    agent = Agent(
        model,
        output_type=NativeOutput(form) if is_native else ToolOutput(form, name="write_summary"),
        instructions=request["instructions"],
        retries={"output": request["requests"] - 1},
        model_settings={
            "max_tokens": request["answer_tokens"],
            "timeout": request["timeout_secs"],
        },
    )

    @agent.output_validator
    def check(answer: dict[str, Any]) -> dict[str, Any]:
        try:
            read_answer(answer, tuple(request["names"]))
        except AnswerError as error:
            raise ModelRetry(str(error)) from error
        return answer

    return agent


def _model(request: Request, client: httpx2.AsyncClient) -> tuple[Model[Any], bool]:
    """Return pydantic-ai's model, and whether its provider supports answers by a schema.

    Only the library of the chosen provider is imported, because each takes half a second and 30 MB.
    """
    if request["kind"] == "anthropic":
        from hivepipe.summaries.by_anthropic import anthropic_model  # noqa: PLC0415

        return anthropic_model(request, client), False
    from hivepipe.summaries.by_openai import openai_model  # noqa: PLC0415

    return openai_model(request, client), request["kind"] != "codex"


class _Wire:
    """Counts the requests, and limits the size of responses."""

    def __init__(self, granted: int) -> None:
        self.sent = 0
        self._granted = granted

    async def count(self, _request: httpx2.Request) -> None:
        if self.sent >= self._granted:
            raise NoMoreRequestsError("no more requests were granted")
        self.sent += 1

    async def limit(self, response: httpx2.Response) -> None:
        stream = response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        response.stream = _Limited(stream)


class _Limited(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > LONGEST_RESPONSE_BYTES:
                raise TooLargeError(f"the response is longer than {LONGEST_RESPONSE_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _failure(error: BaseException, *, was_sent: bool) -> dict[str, Any]:
    """Return kind and reason of a failure; an unknown error after sending has the kind "answer"."""
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) and len(chain) < 10:
        chain.append(cause)
    for each in chain:
        if isinstance(each, TooLargeError | NoMoreRequestsError):
            kind = "too large" if isinstance(each, TooLargeError) else "answer"
            return {"failure": kind, "reason": str(each)}
    unforeseen = "answer" if was_sent else "broken"
    kind = next((kind for known, kind in _KINDS if isinstance(error, known)), unforeseen)
    if kind == "unreachable" and getattr(error, "phase", None) not in _BEFORE_IT_IS_SENT:
        kind = "cut off"
    if getattr(error, "status_code", None) == _REQUEST_TIMEOUT:
        kind = "server"
    after = getattr(error, "retry_after", None)
    return {
        "failure": kind,
        "reason": sentence(kind, chain),
        "retry_after_secs": after if isinstance(after, int | float) else None,
    }
