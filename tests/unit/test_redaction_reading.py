"""Strings of JSON are read without their escapes, and every part maps to its escaped bytes."""

import json
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hivepipe.redact.escapes import Reading
from hivepipe.redact.json_line import leaves, plainly_quoted

LONG = "caf\u00e9 \\ \"x\"\n\t\U0001f600 words and \u65e5\u672c 'y' / " * 900


def reading(spelled: bytes) -> Reading:
    return Reading(spelled, [(1, len(spelled) - 1)], math.inf)


def quoted(text: str) -> bytes:
    return b'"%s"' % text.encode("utf-8", "surrogatepass")


@settings(max_examples=60)
@given(st.text(max_size=80).map(lambda text: text * 80), st.booleans(), st.randoms())
def test_every_part_of_a_text_maps_to_its_escaped_bytes(
    text: str, in_ascii: bool, chance: random.Random
) -> None:
    spelled = json.dumps(text, ensure_ascii=in_ascii).encode()
    read = reading(spelled)
    assert read.text == quoted(text)
    for _ in range(5):
        first, last = sorted(chance.choices(range(len(text) + 1), k=2))
        if first < last:
            before = len(quoted(text[:first])) - 1
            start, end = read.origin(before, before + len(text[first:last].encode()))
            assert json.loads(b'"%s"' % spelled[start:end]) == text[first:last]


@pytest.mark.parametrize("in_ascii", [True, False])
@pytest.mark.parametrize("broken", ["\\ud83d", "\\q", "\\u12", "\x01"])
def test_an_invalid_escape_hides_nothing_around_it(broken: str, in_ascii: bool) -> None:
    spelled = json.dumps(LONG, ensure_ascii=in_ascii)[1:-1]
    read = reading(f'"{spelled}{broken}needle{spelled}"'.encode())
    assert LONG.encode() in read.text
    at = read.text.index(b"needle")
    start, end = read.origin(at, at + 6)
    assert f'"{spelled}{broken}needle{spelled}"'.encode()[start:end] == b"needle"


@settings(max_examples=60)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_all_strings_of_a_json_value_are_found(value: object) -> None:
    line = json.dumps(value).encode()
    plain = plainly_quoted(line)
    assert plain is not None
    found = [
        json.loads(line[start - 1 : end + 1])
        for leaf in leaves(line, plain)
        for start, end in leaf.strings
    ]
    assert found == list(strings(value))


def strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for key, inner in value.items() for text in (key, *strings(inner))]
    return [text for inner in value for text in strings(inner)] if isinstance(value, list) else []


@pytest.mark.parametrize(
    "line", [b'{"a": x}', b'{"a": "b}', rb'{"a": "b\"}', rb"\"a\"", rb'"a"\\"b"', b'{"a" "b"} c']
)
def test_malformed_json_is_not_plainly_quoted(line: bytes) -> None:
    assert plainly_quoted(line) is None
