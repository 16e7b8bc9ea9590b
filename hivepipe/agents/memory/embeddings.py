"""Embeddings: vectors of texts, from an endpoint with OpenAI's API (POST <url>/embeddings).

Nothing is sent unless the user configured the endpoint; texts are redacted before they are sent.
"""

import json
import time
import urllib.error
import urllib.request
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from math import isfinite, sqrt

from hivepipe.alerts.notify import opener
from hivepipe.errors import EmbeddingError
from hivepipe.text.urls import KIND, is_web_address

TIMEOUT_SECS = 30.0
LONGEST_SECS = 120.0  # time limit for the body of a response
MOST_RESPONSE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Provider:
    """An endpoint for embeddings. `key` may be empty for a local endpoint."""

    url: str
    model: str
    key: str


# Errors of the network, the protocol and the response.
_FAILURES = (
    OSError,
    HTTPException,
    ValueError,
    LookupError,
    TypeError,
    ArithmeticError,
    RecursionError,
)


def embed(provider: Provider, texts: Sequence[str]) -> list[bytes]:
    """Return a unit vector of 32-bit floats for each text, or raise EmbeddingError."""
    if not is_web_address(provider.url):
        raise EmbeddingError(f"embeddings_url must be {KIND}")
    body = json.dumps({"model": provider.model, "input": list(texts)}).encode()
    headers = {"Content-Type": "application/json"}
    if provider.key:
        headers["Authorization"] = f"Bearer {provider.key}"
    request = urllib.request.Request(f"{provider.url.rstrip('/')}/embeddings", body, headers)
    try:
        with opener(provider.url).open(request, timeout=TIMEOUT_SECS) as reply:
            answer = json.loads(_body(reply))
        found = sorted(answer["data"], key=lambda entry: entry["index"])
        vectors = [_normal(entry["embedding"]) for entry in found]
    except urllib.error.HTTPError as error:
        error.close()
        raise EmbeddingError(f"{provider.url} answers {error.code}") from None
    except _FAILURES as error:  # `from None`, because the error's text may contain a header
        raise EmbeddingError(f"{provider.url}: {type(error).__name__}") from None
    if len(vectors) != len(texts):
        raise EmbeddingError(f"{provider.url} returned {len(vectors)} vectors for {len(texts)}")
    return vectors


def _body(reply: HTTPResponse) -> bytearray:
    """Return the body of a response. Raise TimeoutError if the body is too long or too slow.

    The socket's own timeout limits only single reads.
    """
    body = bytearray()
    until = time.monotonic() + LONGEST_SECS
    while chunk := reply.read1(1 << 16):
        body += chunk
        if len(body) > MOST_RESPONSE_BYTES or time.monotonic() > until:
            raise TimeoutError
    return body


def _normal(values: Sequence[float]) -> bytes:
    length = sqrt(sum(value * value for value in values)) or 1.0
    if not isfinite(length):
        raise ValueError("not a vector")
    return array("f", [value / length for value in values]).tobytes()


def similarity(one: bytes, other: bytes) -> float:
    """Return the cosine of two unit vectors, or 0 if their sizes differ."""
    if len(one) != len(other):
        return 0.0
    return sum(a * b for a, b in zip(array("f", one), array("f", other), strict=True))
