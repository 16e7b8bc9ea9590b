"""The reason of a failed call as a sentence for users, without class names and library output."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic_ai import exceptions

from hivepipe.errors import AnswerError

_SENTENCES = {
    "quota": "the account has no credit left",
    "auth": "the key was not accepted",
    "rate limit": "too many requests were made",
    "refused": "the provider refused the request",
    "timeout": "no answer within the time limit",
    "unreachable": "the server could not be reached",
    "cut off": "the connection ended before the answer was complete",
    "server": "the provider had an error",
    "answer": "the answer did not match the schema",
    "broken": "the question could not be sent",
}
_BY_THE_SYSTEM = ("unreachable", "cut off", "broken")
_WITHOUT_ANSWER: tuple[tuple[type[Exception], str], ...] = (
    (exceptions.ContentFilterError, "the model declined to answer"),
    (exceptions.OutputTokenLimitExceeded, "the answer was cut off at the limit of its tokens"),
)
_MARKUP = re.compile(r"<[^<>]*>")  # takes linear time


def sentence(kind: str, chain: Sequence[BaseException]) -> str:
    """Return the reason of a failure as a sentence; `chain` has the error and its causes."""
    for known, words in _WITHOUT_ANSWER:
        if isinstance(chain[0], known):
            return words
    details = (_of_answer(chain), _of_provider(chain), _of_system(kind, chain))
    detail = next(filter(None, details), "")
    return f"{_SENTENCES[kind]}: {detail}" if detail else _SENTENCES[kind]


def _of_answer(chain: Sequence[BaseException]) -> str:
    """Return the error that hivepipe's own check of the answer found, or ""."""
    return next((str(each) for each in chain if isinstance(each, AnswerError)), "")


def _of_provider(chain: Sequence[BaseException]) -> str:
    """Return the HTTP status and the message of a provider's error response, or ""."""
    for each in chain:
        status = getattr(each, "status_code", None)
        if isinstance(status, int):
            words = _message(getattr(each, "body", None))
            return f"HTTP {status}: {words}" if words else f"HTTP {status}"
    return ""


def _message(body: Any) -> str:
    """Return the texts in the message of a response body, or all its texts if it has no message."""
    inner = (body.get("error") or body) if isinstance(body, dict) else body
    fields = inner if isinstance(inner, dict) else {}
    metadata = fields.get("metadata")  # OpenRouter puts the answer of the model's provider here
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    words = [*_texts(fields.get("message")), *_texts(raw)] or [*_texts(inner)]
    return " ".join(_MARKUP.sub(" ", " ".join(words)).split())


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _of_system(kind: str, chain: Sequence[BaseException]) -> str:
    """Return the original error of the operating system or Python, or ""."""
    words = str(chain[-1]).strip().splitlines()
    return words[0] if words and kind in _BY_THE_SYSTEM else ""
