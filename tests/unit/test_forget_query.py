"""A text to forget is found in every encoding in which it may be stored."""

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
def test_every_encoding_is_found_and_can_be_replaced(written: bytes) -> None:
    query = ForgetQuery.text(TEXT)
    assert query.contains_text(b"before " + written)
    assert not query.contains_text(written.replace(b"say", b"sAy"))
    assert not query.contains_text(query.replaced(written.decode(), "*").encode())


def test_unreadable_data_is_found_by_a_session_id_too() -> None:
    query = ForgetQuery.text("secret").with_sessions({"one"})
    assert query.names(b"of one")
    assert query.names(b"a secret")
    assert not query.names(b"of two")


def test_a_text_that_is_not_utf8_is_found_as_typed() -> None:
    typed = os.fsdecode(b"caf\xe9")
    assert ForgetQuery.text(typed).contains_text(b"a caf\xe9")
