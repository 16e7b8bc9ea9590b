"""A text that is to be forgotten is found however it was written down."""

import json
import os

import orjson
import pytest

from hivepipe.jobs.forget_query import ForgetQuery

TEXT = 'say "naïve"\nor \\ not'


@pytest.mark.parametrize(
    "written",
    [
        TEXT.encode(),
        json.dumps({"a": TEXT}).encode(),
        orjson.dumps({"a": TEXT}),
        json.dumps({"a": json.dumps({"b": TEXT})}).encode(),
        orjson.dumps({"a": orjson.dumps({"b": TEXT}).decode()}),
        json.dumps({"a": orjson.dumps({"b": TEXT}).decode()}).encode(),
    ],
)
def test_every_spelling_is_known_and_can_be_replaced(written: bytes) -> None:
    wanted = ForgetQuery.text(TEXT)
    assert wanted.contains_text(b"before " + written)
    assert not wanted.contains_text(written.replace(b"say", b"sAy"))
    assert not wanted.contains_text(wanted.replaced(written.decode(), "*").encode())


def test_what_cannot_be_read_is_known_by_an_id_too() -> None:
    wanted = ForgetQuery.text("secret").with_sessions({"one"})
    assert wanted.names(b"of one")
    assert wanted.names(b"a secret")
    assert not wanted.names(b"of two")


def test_a_text_that_is_no_utf8_is_looked_for_as_it_was_typed() -> None:
    typed = os.fsdecode(b"caf\xe9")
    assert ForgetQuery.text(typed).contains_text(b"a caf\xe9")
