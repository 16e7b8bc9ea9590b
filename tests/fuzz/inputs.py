"""Inputs of the fuzz tests: any JSON, damaged bytes, and a corpus of former failures.

Each input that has failed is a file in corpus/<reader>/ and is replayed in every run. The generated
examples are the same in every run. HIVEPIPE_TEST_ROUNDS sets their number and makes new ones.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.rounds import ASKED_ROUNDS

CORPUS = Path(__file__).with_name("corpus")
FEW = 60

fuzzed = settings(
    max_examples=ASKED_ROUNDS or FEW,
    derandomize=not ASKED_ROUNDS,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def replayed(reader: str) -> pytest.MarkDecorator:
    """Parametrize `data` with every file of a reader's corpus."""
    files = sorted((CORPUS / reader).iterdir())
    return pytest.mark.parametrize(
        "data", [path.read_bytes() for path in files], ids=[path.name for path in files]
    )


ODD_TEXTS = ("", "\0", "\ud800", "½", "²", "\u202e", "../../x", "a" * 5000, "\r\n", '"', "\\")
ODD_NUMBERS = (0, -1, 1 << 31, 1 << 63, -(1 << 63) - 1, 10**30, 1.5, -0.0, 1e308)


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


texts = st.text(max_size=20) | st.sampled_from(ODD_TEXTS)
DEEP = (nested(12), nested(60), nested(500))
plain = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | texts
    | st.sampled_from(ODD_NUMBERS + DEEP)
)
values: st.SearchStrategy[Any] = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)


@st.composite
def altered(draw: st.DrawFn, samples: list[Any]) -> Any:
    """Return a good value with something else at a random place."""
    return _altered(draw, draw(st.sampled_from(samples)))


def _altered(draw: st.DrawFn, value: Any) -> Any:
    if isinstance(value, dict) and not draw(st.integers(0, 9)):
        return value | {draw(texts): draw(values)}
    if isinstance(value, dict) and value and draw(st.integers(0, 4)):
        key = draw(st.sampled_from(sorted(value)))
        return value | {key: _altered(draw, value[key])}
    if isinstance(value, list) and value and draw(st.integers(0, 2)):
        at = draw(st.integers(0, len(value) - 1))
        return [*value[:at], _altered(draw, value[at]), *value[at + 1 :]]
    return draw(values)


def as_json(value: Any) -> bytes:
    """Return the JSON as JavaScript writes it, with escaped lone surrogates."""
    return json.dumps(value).encode()


@st.composite
def broken(draw: st.DrawFn, good: st.SearchStrategy[bytes]) -> bytes:
    """Return good bytes that are cut, repeated, partly replaced or unchanged."""
    data = draw(good)
    at, end = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
    breaks: list[Callable[[], bytes]] = [
        lambda: data,
        lambda: data[:at],
        lambda: data[end:],
        lambda: data[:at] + data[end:],
        lambda: data[:end] + data[at:],
        lambda: data[:at] + draw(st.binary(max_size=8)) + data[at:],
        lambda: data[:at] + bytes(end - at) + data[end:],
    ]
    return draw(st.sampled_from(breaks))()
