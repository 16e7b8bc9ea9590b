"""The reason of a failed call as a sentence for users, without class names and library output."""

from collections.abc import Sequence
from typing import Any

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


def sentence(kind: str, chain: Sequence[BaseException]) -> str:
    """Return the reason; `chain` contains the error and its causes."""
    details = (_of_answer(chain), _of_provider(chain), _of_system(kind, chain))
    detail = next(filter(None, details), "")
    return f"{_SENTENCES[kind]}: {detail}" if detail else _SENTENCES[kind]


def _of_answer(chain: Sequence[BaseException]) -> str:
    """Return the error of hivepipe's check of the answer, or ""."""
    return next((str(each) for each in chain if isinstance(each, AnswerError)), "")


def _of_provider(chain: Sequence[BaseException]) -> str:
    """Return the HTTP status and the provider's message, or ""."""
    for each in chain:
        status = getattr(each, "status_code", None)
        if isinstance(status, int):
            words = _message(getattr(each, "body", None))
            return f"HTTP {status}: {words}" if words else f"HTTP {status}"
    return ""


def _message(body: Any) -> str:
    if isinstance(body, dict):
        inner = body.get("error", body)
        words = inner.get("message") if isinstance(inner, dict) else inner
        return " ".join(words.split()) if isinstance(words, str) else ""
    return ""


def _of_system(kind: str, chain: Sequence[BaseException]) -> str:
    """Return the original error of the operating system or Python, or ""."""
    words = str(chain[-1]).strip().splitlines()
    return words[0] if words and kind in _BY_THE_SYSTEM else ""
